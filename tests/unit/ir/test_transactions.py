"""Transactions: whatever step fails, the module is what it was, to the order of every list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.unit.ir.branches import diamond
from tests.unit.ir.photograph import photograph
from tests.unit.ir.test_structure_rules import find, good
from tilenest.dialects import Apply, BlockBranch, Constant, If, Load, Return, registry
from tilenest.errors import SourceLocation, render
from tilenest.ir import (
    BOOL,
    INDEX,
    Analysis,
    Asker,
    Block,
    Edit,
    EditKind,
    Function,
    Module,
    Operation,
    Rewriter,
    Value,
    clone_function,
    fuse_locations,
    parse_module,
    print_module,
    verify,
)
from tilenest.ir.transactions import Transaction

HERE = SourceLocation("k.py", 1, 1, 2, "f", "x")
THERE = SourceLocation("k.py", 2, 1, 2, "f", "y")


class StoppedError(Exception):
    """Raised between two steps."""


class Loads(Analysis[Module, int]):
    """How many loads the functions of a module hold."""

    NAME = "loads"

    @classmethod
    def compute(cls, subject: Module, _: Asker) -> int:
        return sum(isinstance(op, Load) for f in subject.functions for op in f.walk())

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        return edit.kind in (EditKind.INSERTED, EditKind.ERASED)


def constant(value: int) -> Constant:
    return Constant(value=value, result_types=[INDEX])


def module_of_everything() -> Module:
    module = good()
    blocks = diamond(module)
    blocks.otherwise.append(blocks.otherwise.terminator.detach())
    find(module, Apply).location = HERE
    find(module, Constant).result.name = "one"
    return module


def every_primitive(module: Module, rewriter: Rewriter) -> None:
    """Each primitive at least once, and the ones built from them."""
    sum_, load, branch = find(module, Apply), find(module, Load), find(module, If)
    main, other = module.function("main"), module.function("other")
    fresh = rewriter.insert_before(constant(3), sum_)
    rewriter.set_operand(sum_, 1, fresh.result)
    rewriter.set_operands(load, "mask", [main.arguments[2]])
    rewriter.set_operands(load, "origins", [fresh.result, sum_.result])
    rewriter.set_operands(load, "origins", [main.arguments[1]])
    rewriter.set_attribute(load, "bounds", "assume")
    rewriter.set_name(fresh.result, "three")
    rewriter.set_location(load, (HERE, THERE))
    rewriter.move_before(load, sum_)
    rewriter.move_before(branch, load.next)
    rewriter.replace_op(branch, [fresh.result])
    rewriter.replace_op(sum_, [main.arguments[1]])
    rewriter.insert_before(sum_, load)
    rewriter.add_result(sum_, BOOL, "extra")
    rewriter.remove_result(sum_, 1)
    rewriter.clone_before(sum_, load, {})
    again = rewriter.insert_before(branch, find(module, Return))
    types = [result.type for result in again.results]
    rewriter.replace_keeping_regions(If(condition=again.condition, result_types=types), again)
    rewriter.set_function_attribute(main, "level", 2)
    rewriter.set_function_attribute(main, "new", 1)
    rewriter.set_form(module, "scheduled")
    change_blocks(module, rewriter)
    rewriter.move_function(other, module, main)
    rewriter.insert_function(clone_function(other, {}, "twin"), module, main)
    rewriter.remove_function(main)


def change_blocks(module: Module, rewriter: Rewriter) -> None:
    function = module.function("diamond")
    blocks: list[Any] = list(function.region.blocks)
    entry, then, otherwise, join = blocks
    builder = rewriter.builder_at_end(join)
    rewriter.add_argument(join, INDEX)
    rewriter.remove_argument(join, 1)
    builder.add_argument(INDEX, "second")
    builder.order_arguments([join.arguments[1], join.arguments[0]])
    rewriter.set_successor(then.terminator, "target", otherwise)
    rest: Any = rewriter.split_block(otherwise.operations.first)
    rewriter.insert_before(BlockBranch(target=(rest, [])), rest.operations.first)
    rewriter.move_before(
        rest.operations.first, rewriter.insert_before(constant(1), entry.terminator)
    )
    rewriter.move_block(rest, function.region, then)
    rewriter.erase_block(rewriter.insert_block(Block([INDEX]), function.region))
    nest = If(condition=function.arguments[1], regions=1)
    rewriter.insert_before(nest, entry.operations.first)
    rewriter.move_block(join, nest.regions[0])
    rewriter.inline_region_before(nest.regions[0], then)
    run = (entry.operations.first, entry.operations.first.next)
    rewriter.splice(*run, then, then.operations.first)
    detached = If(condition=function.arguments[1], regions=1)
    detached.regions[0].append(Block())
    rewriter.splice(*run, detached.body)
    rewriter.move_block(rest, detached.regions[0])
    rewriter.splice(*run, join)


def steps_of(change: Callable[[Module, Rewriter], None]) -> int:
    count = [0]

    def step() -> None:
        count[0] += 1

    rewriter = Rewriter()
    with rewriter.transaction(step):
        change(module_of_everything(), rewriter)
    return count[0]


def test_a_failure_at_every_step_leaves_no_trace() -> None:
    total = steps_of(every_primitive)
    assert total > 50
    for stop in range(total):
        module = module_of_everything()
        before = photograph(module)
        left = [stop]

        def fail(left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise StoppedError

        rewriter = Rewriter()
        with pytest.raises(StoppedError), rewriter.transaction(fail):
            every_primitive(module, rewriter)
        assert photograph(module) == before
        assert verify(module) == []


def test_a_rollback_at_the_end_leaves_no_trace() -> None:
    module = module_of_everything()
    before = photograph(module)
    rewriter = Rewriter()
    with rewriter.transaction() as opened:
        every_primitive(module, rewriter)
        assert photograph(module) != before
        opened.rollback()
        assert photograph(module) == before
        rewriter.set_form(module, "lifted")
    assert module.form == "lifted"


def test_a_transaction_that_ends_keeps_what_it_did() -> None:
    done, undone = module_of_everything(), module_of_everything()
    rewriter = Rewriter()
    every_primitive(undone, rewriter)
    with rewriter.transaction():
        every_primitive(done, rewriter)
    assert print_module(done, locations=True) == print_module(undone, locations=True)


def test_an_inner_transaction_is_a_save_point() -> None:
    module = module_of_everything()
    start = photograph(module)
    rewriter = Rewriter()
    load = find(module, Load)
    with rewriter.transaction() as outer:
        rewriter.set_attribute(load, "bounds", "check")
        middle = photograph(module)
        with pytest.raises(StoppedError):
            erase_and_stop(load, rewriter)
        assert photograph(module) == middle
        with rewriter.transaction():
            rewriter.erase(load)
        assert load.parent is None
        outer.rollback()
    assert photograph(module) == start


def erase_and_stop(op: Operation, rewriter: Rewriter) -> None:
    with rewriter.transaction():
        rewriter.erase(op)
        raise StoppedError


def undo_from_inside(outer: Transaction, module: Module, rewriter: Rewriter) -> None:
    with rewriter.transaction(), rewriter.transaction() as inner:
        outer.rollback()
        with pytest.raises(AssertionError, match="has ended"):
            inner.rollback()
        with pytest.raises(AssertionError, match="has ended"):
            rewriter.set_form(module, "lifted")
        with pytest.raises(AssertionError, match="has ended"), rewriter.transaction():
            rewriter.set_form(module, "lifted")
        raise StoppedError


def test_undoing_an_outer_transaction_ends_the_inner_ones() -> None:
    module = module_of_everything()
    rewriter = Rewriter()
    load = find(module, Load)
    rewriter.analyses.get(Loads, module)
    start = photograph(module)
    with rewriter.transaction() as outer:
        rewriter.erase(load)
        rewriter.analyses.get(Loads, module)
        with pytest.raises(StoppedError):
            undo_from_inside(outer, module, rewriter)
        assert photograph(module) == start
        rewriter.analyses.check()
        rewriter.set_form(module, "lifted")
        outer.rollback()
        assert photograph(module) == start
        rewriter.set_form(module, "lifted")
    rewriter.analyses.check()
    assert module.form == "lifted"


def test_a_transaction_that_was_left_cannot_be_rolled_back() -> None:
    module = module_of_everything()
    rewriter = Rewriter()
    with rewriter.transaction() as outer:
        with rewriter.transaction() as inner:
            rewriter.set_form(module, "lifted")
        with pytest.raises(AssertionError, match="has ended"):
            inner.rollback()
    with pytest.raises(AssertionError, match="has ended"):
        outer.rollback()
    assert module.form == "lifted"


def test_a_refused_edit_inside_changes_nothing() -> None:
    module = module_of_everything()
    rewriter = Rewriter()
    used, branch = find(module, Constant), find(module, If)
    refused: list[Callable[[], object]] = [
        lambda: rewriter.erase(used),
        lambda: rewriter.move_before(branch, branch.body.operations.first),
        lambda: rewriter.remove_argument(module.function("main").body, 1),
        lambda: rewriter.set_attribute(used, "speed", 1),
        lambda: rewriter.insert_before(branch, branch.next),
        lambda: rewriter.insert_block(branch.body, module.function("main").region),
        lambda: rewriter.insert_function(module.function("main"), module),
    ]
    for edit in refused:
        before = photograph(module)
        with pytest.raises(AssertionError), rewriter.transaction():
            edit()
        assert photograph(module) == before


def test_uses_come_back_between_the_others() -> None:
    """The order of a use list is that of its history; undoing restores it, not the set alone."""
    module = Module()
    function = module.add(Function("f", [INDEX, INDEX]))
    a, b = function.arguments
    ops: list[Operation] = [
        function.body.append(Apply(function="any", arguments=[a, b, a], result_types=[INDEX]))
        for _ in range(4)
    ]
    function.body.append(Return())

    def order(value: Value) -> list[int]:
        return [id(use) for use in value.uses]

    before = order(a), order(b)
    rewriter = Rewriter()
    with rewriter.transaction() as opened:
        rewriter.erase(ops[2])
        rewriter.set_operand(ops[1], 0, b)
        rewriter.set_operand(ops[1], 1, b)
        rewriter.replace_all_uses(b, a)
        rewriter.set_operands(ops[0], "arguments", [b])
        rewriter.insert_before(ops[2], ops[0])
        opened.rollback()
    assert (order(a), order(b)) == before


def test_replacing_stands_for_both_places() -> None:
    module = good()
    rewriter = Rewriter()
    old = find(module, Apply)
    old.location = THERE
    fresh: Any = rewriter.insert_before(
        Apply(function="sub", arguments=old.arguments, result_types=[INDEX], location=HERE), old
    )
    rewriter.replace_op(old, fresh.results)
    assert str(fresh.location) == "k.py:1:1"
    assert fresh.location.fused == (THERE,)
    text = render(fresh.location)
    assert text.index("k.py:1:1") < text.index("together with k.py:2:1 in f")


def test_fused_locations_read_back() -> None:
    module = good()
    called = SourceLocation("h.py", 3, 1, 4, "g", "z", HERE)
    find(module, Load).location = fuse_locations([called, None, THERE, HERE, called])
    text = print_module(module, locations=True)
    again = parse_module(text, registry())
    assert find(again, Load).location == find(module, Load).location
    assert print_module(again, locations=True) == text


def fused(places: Iterable[SourceLocation | None]) -> SourceLocation:
    """Of at least one place."""
    location = fuse_locations(places)
    assert location is not None
    return location


def test_fusing_keeps_every_place_once() -> None:
    assert fuse_locations([]) is None
    assert fuse_locations([None, None]) is None
    assert fuse_locations([None, HERE, HERE]) is HERE
    both = fused([HERE, THERE])
    assert fuse_locations([both, HERE, both]) == both
    assert fused([THERE, both]).fused == (HERE,)
    many = [SourceLocation("k.py", line, 1, 2, "f", "") for line in range(100)]
    assert len(fused(many).fused) == 7
