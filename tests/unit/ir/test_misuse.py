"""Whatever the rewriter is misused for is an assertion, and leaves everything as it was.

A misuse is a call of one public method with something that is of another kind, that stands
elsewhere, or that is still needed. The module and another one are photographed around each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from tests.unit.ir.branches import Diamond, diamond
from tests.unit.ir.photograph import of_block, of_operation, of_region, photograph
from tests.unit.ir.test_structure_rules import find, good
from tilenest.dialects import Alloc, Apply, Constant, If, Load, Return, Yield
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    BufType,
    Function,
    Module,
    Operation,
    Region,
    Rewriter,
    Type,
    Value,
    clone_function,
    float32,
    float64,
    verify,
)


class World(NamedTuple):
    """A module with branches and nests, another one, and what hangs in neither."""

    rewriter: Rewriter
    module: Module
    blocks: Diamond
    elsewhere: Module
    free: Constant
    free_block: Block
    nest: If
    """detached"""
    lost: Block
    """in no region, with an operation that has some"""
    below: Block
    """in an operation of the last block of the diamond"""
    twin: Function
    """of @other, in no module"""
    bufs: tuple[Value, Value]
    """of float32 and float64"""

    @property
    def main(self) -> Function:
        return self.module.function("main")

    @property
    def other(self) -> Function:
        return self.module.function("other")

    @property
    def foreign(self) -> Function:
        return self.elsewhere.function("other")

    def find(self, cls: type[Operation], place: int = 0) -> Any:
        return find(self.module, cls, place)

    def photograph(self) -> tuple[object, ...]:
        modules = photograph(self.module), photograph(self.elsewhere)
        blocks = of_block(self.free_block), of_block(self.lost)
        free = of_operation(self.free), of_operation(self.nest), of_region(self.twin.region)
        return *modules, *blocks, *free


def branch(condition: Value, types: Sequence[Type] = ()) -> If:
    """A conditional whose two regions do nothing."""
    made = If(condition=condition, result_types=types, regions=2)
    for region in made.regions:
        region.append(Block()).append(Yield())
    return made


def new_world() -> World:
    module, elsewhere = good(), good()
    main, blocks = module.function("main"), diamond(module)
    condition = main.arguments[2]
    lost = Block()
    lost.append(branch(condition))
    below = branch(blocks.function.arguments[1])
    blocks.join.insert(below, blocks.join.operations.first)
    single, double = (Alloc(result_types=[BufType(dtype, (4,))]) for dtype in (float32, float64))
    for made in (single, double):
        main.body.insert(made, main.body.operations.first)
    return World(
        rewriter=Rewriter(),
        module=module,
        blocks=blocks,
        elsewhere=elsewhere,
        free=Constant(value=7, result_types=[INDEX]),
        free_block=Block(),
        nest=branch(condition),
        lost=lost,
        below=below.body,
        twin=clone_function(module.function("other"), {}, "twin"),
        bufs=(single.result, double.result),
    )


Misuse = Callable[[World], object]
NOTHING: Any = None
MISUSES: dict[str, list[Misuse]] = {
    "transaction": [
        lambda w: w.rewriter.transaction(3).__enter__(),  # type: ignore[arg-type]  # a misuse
    ],
    "builder_before": [
        lambda w: w.rewriter.builder_before(NOTHING),
        lambda w: w.rewriter.builder_before(w.free),
        lambda w: w.rewriter.builder_before(w.find(Load)).add_argument(NOTHING),
    ],
    "builder_after": [
        lambda w: w.rewriter.builder_after(NOTHING),
        lambda w: w.rewriter.builder_after(w.free),
        lambda w: w.rewriter.builder_after(w.find(Load)).insert(w.find(Apply)),
    ],
    "builder_at_end": [
        lambda w: w.rewriter.builder_at_end(NOTHING),
        lambda w: w.rewriter.builder_at_end(w.free_block).insert(NOTHING),
        lambda w: w.rewriter.builder_at_end(w.nest.regions[0].block).insert(w.nest),
        lambda w: w.rewriter.builder_at_end(w.blocks.join).order_arguments([]),
        lambda w: w.rewriter.builder_at_end(w.blocks.join).order_arguments([w.main.arguments[1]]),
    ],
    "insert_before": [
        lambda w: w.rewriter.insert_before(NOTHING, w.find(Load)),
        lambda w: w.rewriter.insert_before(w.find(Apply), w.find(Load)),
        lambda w: w.rewriter.insert_before(w.free, w.nest),
        lambda w: w.rewriter.insert_before(w.nest, w.nest.body.terminator),
    ],
    "clone_before": [
        lambda w: w.rewriter.clone_before(NOTHING, w.find(Load), {}),
        lambda w: w.rewriter.clone_before(w.find(Load), w.free, {}),
        lambda w: w.rewriter.clone_before(
            w.find(Apply), w.find(Load), {w.find(Constant).result: NOTHING}
        ),
    ],
    "detach": [lambda w: w.rewriter.detach(NOTHING), lambda w: w.rewriter.detach(w.free)],
    "move_before": [
        lambda w: w.rewriter.move_before(NOTHING, w.find(Load)),
        lambda w: w.rewriter.move_before(w.free, w.find(Load)),
        lambda w: w.rewriter.move_before(w.find(Load), w.free),
        lambda w: w.rewriter.move_before(w.find(Load), w.find(Load)),
        lambda w: w.rewriter.move_before(w.find(If), w.find(Apply, 1)),
    ],
    "splice": [
        lambda w: w.rewriter.splice(w.free, w.free, w.free_block),
        lambda w: w.rewriter.splice(w.find(Load), w.find(Apply), w.free_block),
        lambda w: w.rewriter.splice(w.find(Apply), w.find(Load), NOTHING),
        lambda w: w.rewriter.splice(w.find(Apply), w.find(Load), w.free_block, w.find(Return)),
        lambda w: w.rewriter.splice(w.find(Apply), w.find(Load), w.main.body, w.find(If)),
        lambda w: w.rewriter.splice(w.find(Apply), w.find(Load), w.find(If).body),
        lambda w: w.rewriter.splice(w.find(Apply), find(w.elsewhere, Load), w.free_block),
    ],
    "erase": [
        lambda w: w.rewriter.erase(NOTHING),
        lambda w: w.rewriter.erase(w.free),
        lambda w: w.rewriter.erase(w.find(Apply)),
    ],
    "replace_op": [
        lambda w: w.rewriter.replace_op(NOTHING, []),
        lambda w: w.rewriter.replace_op(w.free, [w.main.arguments[1]]),
        lambda w: w.rewriter.replace_op(w.find(Apply), []),
        lambda w: w.rewriter.replace_op(w.find(Apply), [NOTHING]),
        lambda w: w.rewriter.replace_op(w.find(Apply), [w.main.arguments[2]]),
        lambda w: w.rewriter.replace_op(w.find(Apply), [w.find(Apply).result]),
        lambda w: w.rewriter.replace_op(w.find(If), [w.find(Apply, 1).result]),
    ],
    "replace_keeping_regions": [
        lambda w: w.rewriter.replace_keeping_regions(NOTHING, w.find(If)),
        lambda w: w.rewriter.replace_keeping_regions(w.nest, w.find(If)),
        lambda w: w.rewriter.replace_keeping_regions(w.find(Load), w.find(If)),
        lambda w: w.rewriter.replace_keeping_regions(w.free, w.nest),
        lambda w: w.rewriter.replace_keeping_regions(other_if(w, []), w.find(If)),
        lambda w: w.rewriter.replace_keeping_regions(other_if(w, [BOOL]), w.find(If)),
        lambda w: w.rewriter.replace_keeping_regions(other_if(w, [INDEX, INDEX]), w.find(If)),
    ],
    "replace_all_uses": [
        lambda w: w.rewriter.replace_all_uses(NOTHING, w.main.arguments[1]),
        lambda w: w.rewriter.replace_all_uses(w.main.arguments[1], NOTHING),
        lambda w: w.rewriter.replace_all_uses(w.main.arguments[1], w.main.arguments[2]),
    ],
    "replace_by_storage": [
        lambda w: w.rewriter.replace_by_storage(w.main.arguments[1], w.find(Apply).result),
        lambda w: w.rewriter.replace_by_storage(w.main.arguments[1], w.bufs[0]),
        lambda w: w.rewriter.replace_by_storage(w.bufs[0], w.bufs[0]),
        lambda w: w.rewriter.replace_by_storage(*w.bufs),
        lambda w: w.rewriter.replace_by_storage(NOTHING, NOTHING),
    ],
    "set_operand": [
        lambda w: w.rewriter.set_operand(NOTHING, 0, w.main.arguments[1]),
        lambda w: w.rewriter.set_operand(w.find(Apply), -1, w.main.arguments[1]),
        lambda w: w.rewriter.set_operand(w.find(Apply), 2, w.main.arguments[1]),
        lambda w: w.rewriter.set_operand(w.find(Apply), NOTHING, w.main.arguments[1]),
        lambda w: w.rewriter.set_operand(w.find(Apply), 0, NOTHING),
        lambda w: w.rewriter.set_operand(w.find(Apply), 0, w.main.arguments[2]),
    ],
    "set_operands": [
        lambda w: w.rewriter.set_operands(NOTHING, "mask", []),
        lambda w: w.rewriter.set_operands(w.find(Load), "masks", []),
        lambda w: w.rewriter.set_operands(w.find(Load), "view", []),
        lambda w: w.rewriter.set_operands(w.find(Load), "mask", w.main.arguments),
        lambda w: w.rewriter.set_operands(w.find(Load), "origins", [NOTHING]),
        lambda w: w.rewriter.set_operands(w.find(Load), "origins", w.main.arguments[1]),  # type: ignore[arg-type]  # a misuse
    ],
    "set_successor": [
        lambda w: w.rewriter.set_successor(NOTHING, "to", w.blocks.join),
        lambda w: w.rewriter.set_successor(w.blocks.entry.terminator, "else", w.blocks.join),
        lambda w: w.rewriter.set_successor(w.blocks.entry.terminator, "then", NOTHING),
    ],
    "add_result": [
        lambda w: w.rewriter.add_result(NOTHING, INDEX),
        lambda w: w.rewriter.add_result(w.find(Apply), NOTHING),
        lambda w: w.rewriter.add_result(w.find(Apply), INDEX, 5),  # type: ignore[arg-type]  # a misuse
    ],
    "remove_result": [
        lambda w: w.rewriter.remove_result(NOTHING, 0),
        lambda w: w.rewriter.remove_result(w.find(Load), 3),
        lambda w: w.rewriter.remove_result(w.find(Load), -1),
        lambda w: w.rewriter.remove_result(w.find(Apply), 0),
    ],
    "set_attribute": [
        lambda w: w.rewriter.set_attribute(NOTHING, "bounds", "zero"),
        lambda w: w.rewriter.set_attribute(w.find(Load), "speed", 1),
        lambda w: w.rewriter.set_attribute(w.find(Load), "bounds", 1),
    ],
    "set_location": [
        lambda w: w.rewriter.set_location(NOTHING, ()),
        lambda w: w.rewriter.set_location(w.find(Load), NOTHING),
        lambda w: w.rewriter.set_location(w.find(Load), (None, "k.py")),  # type: ignore[arg-type]  # a misuse
    ],
    "set_name": [
        lambda w: w.rewriter.set_name(NOTHING, "x"),
        lambda w: w.rewriter.set_name(w.main.arguments[1], 5),  # type: ignore[arg-type]  # a misuse
    ],
    "add_argument": [
        lambda w: w.rewriter.add_argument(NOTHING, INDEX),
        lambda w: w.rewriter.add_argument(w.blocks.join, NOTHING),
        lambda w: w.rewriter.add_argument(w.blocks.join, INDEX, 5),  # type: ignore[arg-type]  # a misuse
    ],
    "remove_argument": [
        lambda w: w.rewriter.remove_argument(NOTHING, 0),
        lambda w: w.rewriter.remove_argument(w.main.body, -1),
        lambda w: w.rewriter.remove_argument(w.main.body, 3),
        lambda w: w.rewriter.remove_argument(w.main.body, 0),
    ],
    "insert_block": [
        lambda w: w.rewriter.insert_block(NOTHING, w.main.region),
        lambda w: w.rewriter.insert_block(w.free_block, NOTHING),
        lambda w: w.rewriter.insert_block(w.blocks.join, w.main.region),
        lambda w: w.rewriter.insert_block(w.free_block, w.main.region, w.blocks.join),
        lambda w: w.rewriter.insert_block(w.free_block, NOTHING, w.main.body),
        lambda w: w.rewriter.insert_block(w.lost, below_lost(w)),
    ],
    "split_block": [
        lambda w: w.rewriter.split_block(NOTHING),
        lambda w: w.rewriter.split_block(w.free),
        lambda w: w.rewriter.split_block(w.lost.operations.first or NOTHING),
    ],
    "erase_block": [
        lambda w: w.rewriter.erase_block(NOTHING),
        lambda w: w.rewriter.erase_block(w.free_block),
        lambda w: w.rewriter.erase_block(w.blocks.join),
    ],
    "move_block": [
        lambda w: w.rewriter.move_block(NOTHING, w.main.region),
        lambda w: w.rewriter.move_block(w.free_block, w.main.region),
        lambda w: w.rewriter.move_block(w.blocks.join, NOTHING),
        lambda w: w.rewriter.move_block(w.blocks.join, w.main.region, w.blocks.entry),
        lambda w: w.rewriter.move_block(w.blocks.join, w.blocks.function.region, w.blocks.join),
        lambda w: w.rewriter.move_block(w.main.body, w.find(If).regions[0]),
        lambda w: w.rewriter.move_block(w.blocks.join, w.nest.regions[0], w.blocks.entry),
    ],
    "inline_region_before": [
        lambda w: w.rewriter.inline_region_before(NOTHING, w.blocks.join),
        lambda w: w.rewriter.inline_region_before(w.main.region, NOTHING),
        lambda w: w.rewriter.inline_region_before(w.main.region, w.free_block),
        lambda w: w.rewriter.inline_region_before(w.main.region, w.main.body),
        lambda w: w.rewriter.inline_region_before(w.main.region, w.find(If).body),
        lambda w: w.rewriter.inline_region_before(w.blocks.function.region, w.below),
    ],
    "insert_function": [
        lambda w: w.rewriter.insert_function(NOTHING, w.module),
        lambda w: w.rewriter.insert_function(w.other, w.elsewhere),
        lambda w: w.rewriter.insert_function(w.twin, NOTHING),
        lambda w: w.rewriter.insert_function(w.twin, w.module, w.foreign),
        lambda w: w.rewriter.insert_function(clone_function(w.other, {}), w.module),
    ],
    "move_function": [
        lambda w: w.rewriter.move_function(NOTHING, w.module),
        lambda w: w.rewriter.move_function(w.twin, w.module),
        lambda w: w.rewriter.move_function(w.main, NOTHING),
        lambda w: w.rewriter.move_function(w.main, w.module, w.main),
        lambda w: w.rewriter.move_function(w.main, w.module, w.foreign),
        lambda w: w.rewriter.move_function(w.main, w.module, w.twin),
        lambda w: w.rewriter.move_function(w.main, w.elsewhere),
    ],
    "remove_function": [
        lambda w: w.rewriter.remove_function(NOTHING),
        lambda w: w.rewriter.remove_function(w.twin),
    ],
    "set_function_attribute": [
        lambda w: w.rewriter.set_function_attribute(NOTHING, "level", 1),
        lambda w: w.rewriter.set_function_attribute(w.main, "no such", 1),
        lambda w: w.rewriter.set_function_attribute(w.main, NOTHING, 1),
        lambda w: w.rewriter.set_function_attribute(w.main, "level", object()),
        lambda w: w.rewriter.set_function_attribute(w.main, "level", [1]),
    ],
    "set_form": [
        lambda w: w.rewriter.set_form(NOTHING, "scheduled"),
        lambda w: w.rewriter.set_form(w.module, "nope"),
        lambda w: w.rewriter.set_form(w.module, NOTHING),
    ],
}


def below_lost(world: World) -> Region:
    (op,) = world.lost.operations
    return op.regions[0]


def other_if(world: World, types: Sequence[Type]) -> If:
    return If(condition=world.main.arguments[2], result_types=types)


def cases() -> list[Any]:
    return [
        pytest.param(place, name, id=f"{name}-{place}")
        for name, misuses in MISUSES.items()
        for place in range(len(misuses))
    ]


@pytest.mark.parametrize(("place", "name"), cases())
@pytest.mark.parametrize("is_recorded", [False, True])
def test_a_misuse_changes_nothing(name: str, place: int, is_recorded: bool) -> None:
    world, misuse = new_world(), MISUSES[name][place]
    before = world.photograph()
    with ExitStack() as stack:
        if is_recorded:
            stack.enter_context(world.rewriter.transaction())
        with pytest.raises(AssertionError):
            misuse(world)
        assert world.photograph() == before
    assert world.photograph() == before


def test_the_world_is_sound() -> None:
    world = new_world()
    assert verify(world.module) == [] and verify(world.elsewhere) == []


def test_every_method_is_misused() -> None:
    public = {name for name in dir(Rewriter) if not name.startswith("_")} - {"analyses"}
    assert public == set(MISUSES)
