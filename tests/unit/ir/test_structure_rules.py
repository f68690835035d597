"""The structural rules: what each accepts, what it finds, and that only it finds it."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.ir.branches import diamond
from tilenest.dialects import Apply, Constant, If, Load, Return, Yield, registry
from tilenest.errors import SourceLocation, VerifyError
from tilenest.ir import (
    BOOL,
    INDEX,
    STRUCTURE_RULES,
    Block,
    BufType,
    Function,
    Module,
    Operation,
    ScalarType,
    TileType,
    Type,
    VectorType,
    ViewType,
    check,
    float32,
    index,
    parse_module,
    verify,
)
from tilenest.layouts import positional_dim

GOOD = """
module "candidate"

func @main(%A: view<f32, [?], [1]>, %i: index, %b: bool) -> index with (level = 1) {
  %0 = scalar.constant 1 : index
  %1 = scalar.apply "add"(%i, %0) : index
  %2 = exec.if(%b) : index {
    %3 = scalar.apply "mul"(%1, %1) : index
    exec.yield(%3)
  } {
    exec.yield(%1)
  }
  %4 = tile.load(%A, [%2]) : f32
  func.return(%2)
}

func @other() {
  func.return
}
"""
Damage = Callable[[Module], None]


def good() -> Module:
    return parse_module(GOOD, registry())


def find(module: Module, cls: type[Operation], place: int = 0) -> Any:
    return [op for op in module.walk() if isinstance(op, cls)][place]


def unlink_forward(module: Module) -> None:
    module.function("main").body.operations._count += 1


def wrong_back_link(module: Module) -> None:
    find(module, Return)._previous = None


def foreign_operation(module: Module) -> None:
    find(module, Load)._list = Block().operations


def orphan_region(module: Module) -> None:
    find(module, If).regions[0].parent = None


def foreign_block(module: Module) -> None:
    find(module, If).regions[1].block._list = None


def foreign_function(module: Module) -> None:
    module.function("other")._list = None


def twin_operations(module: Module) -> None:
    find(module, Load).id = find(module, Constant).id


def twin_values(module: Module) -> None:
    find(module, Load).result.id = module.function("main").arguments[0].id


def twin_functions(module: Module) -> None:
    module.function("other").id = module.function("main").id


def twin_blocks(module: Module) -> None:
    find(module, If).regions[1].block.id = find(module, If).regions[0].block.id


def same_name(module: Module) -> None:
    module.function("other").name = "main"


def no_name(module: Module) -> None:
    module.function("other").name = ""


def used_before_defined(module: Module) -> None:
    find(module, Apply).move(module.function("main").body, find(module, Constant))


def used_outside_of_its_region(module: Module) -> None:
    find(module, Return).set_operand(0, find(module, Apply, 1).result)


def used_in_the_sibling_region(module: Module) -> None:
    find(module, Yield, 1).set_operand(0, find(module, Apply, 1).result)


def defined_outside_of_the_module(module: Module) -> None:
    find(module, Return).set_operand(0, Constant(value=1, result_types=[INDEX]).result)


def used_by_its_own_region(module: Module) -> None:
    find(module, Yield, 1).set_operand(0, find(module, If).result)


def wrong_slot_number(module: Module) -> None:
    find(module, Apply).operand_uses[1].index = 0


def wrong_slot_owner(module: Module) -> None:
    find(module, Return).operand_uses[0].operation = find(module, Load)


def unlinked_slot(module: Module) -> None:
    find(module, Return).operand_uses[0]._unlink()


def slot_among_other_uses(module: Module) -> None:
    use = find(module, Return).operand_uses[0]
    use._unlink()
    module.function("main").arguments[1].uses.append(use)


def use_of_a_detached_operation(module: Module) -> None:
    extra = Apply(function="neg", arguments=[find(module, Constant).result], result_types=[INDEX])
    extra.operand_uses[0]._link()


def use_that_no_slot_holds(module: Module) -> None:
    apply = find(module, Apply)
    stray = type(apply.operand_uses[0])(apply, 0, apply.arguments[0])
    stray._link()


def broken_use_list(module: Module) -> None:
    find(module, Constant).result.uses._count += 1


def no_terminator(module: Module) -> None:
    find(module, Yield).erase()


def empty_block(module: Module) -> None:
    module.function("other").body.terminator.erase()


def early_terminator(module: Module) -> None:
    module.function("other").body.append(Return())


def foreign_result(module: Module) -> None:
    find(module, Constant).result.owner = find(module, Load)


def wrong_result_number(module: Module) -> None:
    find(module, Constant).result.index = 1


def foreign_argument(module: Module) -> None:
    module.function("main").arguments[0].block = module.function("other").body


def wrong_argument_number(module: Module) -> None:
    module.function("main").arguments[2].index = 1


def used_on_one_way_only(module: Module) -> None:
    blocks = diamond(module)
    blocks.join.terminator.set_group("values", [blocks.then.operations.first.result])


def used_before_its_block(module: Module) -> None:
    blocks = diamond(module)
    blocks.entry.operations.first.set_operand(0, blocks.join.arguments[0])


def successor_in_another_region(module: Module) -> None:
    blocks = diamond(module)
    blocks.then.terminator.set_successor(0, find(module, If).regions[0].block)


def successor_is_first(module: Module) -> None:
    blocks = diamond(module)
    blocks.then.terminator.set_group("target", blocks.entry.arguments)
    blocks.then.terminator.set_successor(0, blocks.entry)


def successor_gets_too_little(module: Module) -> None:
    diamond(module).then.terminator.set_group("target", [])


def successor_gets_another_type(module: Module) -> None:
    blocks = diamond(module)
    blocks.then.terminator.set_group("target", [blocks.entry.arguments[1]])


def unlinked_edge(module: Module) -> None:
    diamond(module).then.terminator.edges[0]._unlink()


def edge_among_others(module: Module) -> None:
    blocks = diamond(module)
    edge = blocks.then.terminator.edges[0]
    edge._unlink()
    blocks.otherwise.incoming.append(edge)


def edge_of_another_operation(module: Module) -> None:
    blocks = diamond(module)
    blocks.then.terminator.edges[0].operation = blocks.otherwise.terminator


def edge_that_no_terminator_holds(module: Module) -> None:
    blocks = diamond(module)
    end = blocks.then.terminator
    type(end.edges[0])(end, blocks.join)._link()


def broken_edges(module: Module) -> None:
    diamond(module).join.incoming._count += 1


def missing_edge(module: Module) -> None:
    end = diamond(module).then.terminator
    end.edges[0]._unlink()
    end.edges.clear()


def missing_operand(module: Module) -> None:
    load = find(module, Load)
    load.segments = (0, 2, 0, 0)


def two_optional_operands(module: Module) -> None:
    condition = module.function("main").arguments[2]
    find(module, Load).set_group("mask", [condition, condition])


def uncounted_operand(module: Module) -> None:
    find(module, Apply).segments = (1,)


def missing_attribute(module: Module) -> None:
    del find(module, Apply).attributes["function"]


def undeclared_attribute(module: Module) -> None:
    find(module, Apply).attributes["speed"] = 3


def attribute_of_other_kind(module: Module) -> None:
    find(module, Load).attributes["bounds"] = 3


def mutable_attribute(module: Module) -> None:
    find(module, Constant).attributes["value"] = [1]


def mutable_function_attribute(module: Module) -> None:
    module.function("main").attributes["level"] = {}


class StrangeType(Type):
    """A class that the ir does not know."""


def strange_type(module: Module) -> None:
    find(module, Load).result.type = StrangeType()


def tile_without_dims(module: Module) -> None:
    find(module, Load).result.type = TileType(float32, ())


def tile_with_a_dim_twice(module: Module) -> None:
    dim = positional_dim(0, 4)
    find(module, Load).result.type = TileType(float32, (dim, dim))


def view_without_strides(module: Module) -> None:
    module.function("main").arguments[0].type = ViewType(float32, (3,), ())


def negative_extent(module: Module) -> None:
    module.function("main").arguments[0].type = BufType(float32, (-1,))


def vector_without_lanes(module: Module) -> None:
    module.function("other").result_types = (VectorType(float32, 0),)


DAMAGES: dict[str, tuple[Damage, ...]] = {
    "IR01": (
        unlink_forward,
        wrong_back_link,
        foreign_operation,
        orphan_region,
        foreign_block,
        foreign_function,
    ),
    "IR02": (twin_operations, twin_values, twin_functions, twin_blocks),
    "IR03": (same_name, no_name),
    "IR04": (
        used_before_defined,
        used_outside_of_its_region,
        used_in_the_sibling_region,
        used_by_its_own_region,
        defined_outside_of_the_module,
        used_on_one_way_only,
        used_before_its_block,
    ),
    "IR05": (wrong_slot_number, wrong_slot_owner, unlinked_slot, slot_among_other_uses),
    "IR06": (use_of_a_detached_operation, use_that_no_slot_holds, broken_use_list),
    "IR07": (no_terminator, empty_block, early_terminator),
    "IR08": (foreign_result, wrong_result_number, foreign_argument, wrong_argument_number),
    "IR09": (missing_operand, two_optional_operands, uncounted_operand),
    "IR10": (
        missing_attribute,
        undeclared_attribute,
        attribute_of_other_kind,
        mutable_attribute,
        mutable_function_attribute,
    ),
    "IR11": (
        strange_type,
        tile_without_dims,
        tile_with_a_dim_twice,
        view_without_strides,
        negative_extent,
        vector_without_lanes,
    ),
    "IR12": (
        successor_in_another_region,
        successor_is_first,
        successor_gets_too_little,
        successor_gets_another_type,
        unlinked_edge,
        edge_among_others,
        edge_of_another_operation,
        edge_that_no_terminator_holds,
        broken_edges,
        missing_edge,
    ),
}
# What these break is also broken in the eyes of a second rule.
ALSO: dict[Damage, set[str]] = {wrong_slot_owner: {"IR06"}}
CASES = [(rule, damage) for rule, damages in DAMAGES.items() for damage in damages]
EACH_DAMAGE = pytest.mark.parametrize(
    ("rule", "damage"), CASES, ids=lambda item: getattr(item, "__name__", item)
)


def test_every_rule_has_negatives() -> None:
    assert [rule.id for rule in STRUCTURE_RULES] == list(DAMAGES)
    assert min(map(len, DAMAGES.values())) >= 2


def test_a_good_module_breaks_nothing() -> None:
    module = good()
    assert verify(module) == []
    check(module)


@pytest.mark.parametrize("rule", STRUCTURE_RULES, ids=lambda rule: rule.id)
def test_each_rule_alone_accepts_a_good_module(rule: Any) -> None:
    assert verify(good(), [rule]) == []


@EACH_DAMAGE
def test_a_rule_finds_the_damage(rule: str, damage: Damage) -> None:
    module = good()
    damage(module)
    found = verify(module)
    assert {diagnostic.rule for diagnostic in found} == {rule} | ALSO.get(damage, set())
    assert all(diagnostic.message and diagnostic.remedy for diagnostic in found)
    assert not [d.message for d in found if re.search(r"tilenest\.|\w\(\w+=", d.message)]


@EACH_DAMAGE
def test_without_the_rule_nobody_finds_it(rule: str, damage: Damage) -> None:
    off = {rule} | ALSO.get(damage, set())
    module = good()
    damage(module)
    assert verify(module, [other for other in STRUCTURE_RULES if other.id not in off]) == []


def test_one_diagnostic_for_each_place() -> None:
    module = good()
    attribute_of_other_kind(module)
    missing_attribute(module)
    found = verify(module)
    assert [diagnostic.operation for diagnostic in found] == [
        find(module, Apply),
        find(module, Load),
    ]


def test_the_error_shows_the_place_in_the_text_and_in_the_source() -> None:
    module = good()
    load = find(module, Load)
    load.location = SourceLocation("k.py", 7, 5, 8, "main", "    x = A.at(i).load()")
    attribute_of_other_kind(module)
    with pytest.raises(VerifyError) as caught:
        check(module)
    text = str(caught.value)
    assert text.startswith("IR10 tile.load: `bounds` must be of kind str\n")
    assert "\n>   12 |   %4 = tile.load(%A, [%2], bounds = 3) : f32\n" in text
    assert "k.py:7:5 in main" in text
    assert "help: give it a value of kind str" in text


def test_the_error_of_a_broken_foundation_shows_no_text() -> None:
    module = good()
    unlink_forward(module)
    with pytest.raises(VerifyError, match="IR01") as caught:
        check(module)
    assert " | " not in str(caught.value)


def test_a_module_without_functions_is_fine() -> None:
    assert verify(Module()) == []


def test_detached_operations_do_not_count() -> None:
    module = good()
    value = find(module, Constant).result
    Apply(function="neg", arguments=[value], result_types=[INDEX])
    assert verify(module) == []


def test_ir04_and_ir12_accept_branches() -> None:
    module = good()
    blocks = diamond(module)
    assert verify(module) == []
    values = blocks.entry.operations.first.results
    blocks.join.terminator.set_group("values", values)
    assert verify(module) == []


def test_ir04_accepts_what_never_runs() -> None:
    module = good()
    blocks = diamond(module)
    blocks.entry.terminator.set_successor(0, blocks.otherwise)
    blocks.join.terminator.set_group("values", [blocks.otherwise.operations.first.result])
    assert verify(module) == []
    blocks.then.operations.first.set_operand(0, blocks.join.arguments[0])
    assert verify(module) == []


def test_types_of_the_ir_are_known() -> None:
    types = [BOOL, ScalarType(index), TileType(float32, (positional_dim(0, 0),))]
    module = Module()
    function = module.add(Function("f", types))
    function.body.append(Return())
    assert verify(module) == []
