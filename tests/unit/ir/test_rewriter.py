"""The rewriter and the builder: what each edit does, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.ir.test_structure_rules import find, good
from tilenest.dialects import Apply, Constant, If, Load, Return, Yield
from tilenest.errors import SourceLocation
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    Builder,
    Operation,
    Rewriter,
    ScalarType,
    float32,
    operand,
    print_module,
    verify,
)

PLACE = SourceLocation("k.py", 1, 1, 2, "f", "x")


def constant(value: int) -> Constant:
    return Constant(value=value, result_types=[INDEX])


def test_insertions_inherit_the_location_of_their_anchor() -> None:
    module = good()
    rewriter = Rewriter()
    anchor = find(module, Load)
    anchor.location = PLACE
    before = rewriter.insert_before(constant(1), anchor)
    after = rewriter.builder_after(anchor).insert(constant(2))
    assert (before.location, after.location) == (PLACE, PLACE)
    assert (before.next, after.previous) == (anchor, anchor)
    elsewhere = SourceLocation("h.py", 1, 1, 2, "f", "x")
    kept = constant(3)
    kept.location = elsewhere
    assert rewriter.insert_before(kept, anchor).location is elsewhere
    assert verify(module) == []


def test_replacing_carries_name_and_location_over() -> None:
    module = good()
    rewriter = Rewriter()
    old = find(module, Apply)
    old.location, old.result.name = PLACE, "sum"
    fresh = Apply(function="sub", arguments=old.arguments, result_types=[INDEX])
    old.parent.insert(fresh, old)
    users = list(old.result.users)
    rewriter.replace_op(old, [fresh.result])
    assert list(fresh.result.users) == users
    assert (fresh.result.name, fresh.location, old.parent) == ("sum", PLACE, None)
    assert verify(module) == []


def test_replacing_refuses_other_types_and_counts() -> None:
    module = good()
    before = print_module(module)
    rewriter = Rewriter()
    condition = module.function("main").arguments[2]
    for values in ([condition], [], [find(module, Constant).result] * 2):
        with pytest.raises(AssertionError, match="cannot replace"):
            rewriter.replace_op(find(module, Apply), values)
    assert print_module(module) == before


def test_erasing_refuses_used_results() -> None:
    module = good()
    before = print_module(module)
    with pytest.raises(AssertionError, match="still used"):
        Rewriter().erase(find(module, Apply))
    assert print_module(module) == before
    Rewriter().erase(find(module, Load))
    assert not module.function("main").arguments[0].has_uses


def test_erasing_drops_the_uses_below() -> None:
    module = good()
    rewriter = Rewriter()
    branch, sum_ = find(module, If), find(module, Apply)
    rewriter.replace_op(branch, [sum_.result])
    assert {type(user) for user in sum_.result.users} == {Load, Return}
    assert verify(module) == []


def test_operands_and_attributes_change_in_place() -> None:
    module = good()
    rewriter = Rewriter()
    load, i = find(module, Load), module.function("main").arguments[1]
    rewriter.set_operand(load, 1, i)
    assert load.origins == [i]
    rewriter.set_operands(load, "mask", [module.function("main").arguments[2]])
    assert load.mask is module.function("main").arguments[2]
    rewriter.set_operands(load, "mask", [])
    assert load.operands == [module.function("main").arguments[0], i]
    rewriter.set_attribute(load, "bounds", "assume")
    assert load.bounds == "assume"
    assert verify(module) == []
    with pytest.raises(AssertionError, match="declares no attribute"):
        rewriter.set_attribute(load, "speed", 1)
    with pytest.raises(AssertionError, match="no value of"):
        rewriter.set_attribute(load, "bounds", 1)
    with pytest.raises(AssertionError):
        rewriter.set_operands(load, "view", [])


@pytest.mark.parametrize("index", [-1, 2])
def test_operands_have_a_slot_and_a_value(index: int) -> None:
    module = good()
    before = print_module(module)
    op, value = find(module, Apply), find(module, Constant).result
    with pytest.raises(AssertionError, match="no slot"):
        Rewriter().set_operand(op, index, value)
    nothing: Any = None
    with pytest.raises(AssertionError, match="no value"):
        Rewriter().set_operand(op, 0, nothing)
    assert print_module(module) == before


def test_moves_keep_the_uses() -> None:
    module = good()
    rewriter = Rewriter()
    sum_, load = find(module, Apply), find(module, Load)
    uses = list(sum_.operand_uses)
    rewriter.move_before(load, find(module, Return))
    rewriter.move_before(sum_, load)
    assert (load.previous, sum_.operand_uses) == (sum_, uses)
    rewriter.move_before(sum_, find(module, If))
    inner = find(module, Apply, 1)
    rewriter.move_before(inner, find(module, If))
    assert inner.parent is sum_.parent
    assert verify(module) == []


def test_moves_into_the_own_region_are_refused() -> None:
    module = good()
    branch = find(module, If)
    with pytest.raises(AssertionError, match="own region"):
        Rewriter().move_before(branch, find(module, Yield))
    with pytest.raises(AssertionError):
        Rewriter().move_before(branch, branch)
    assert verify(module) == []


def test_a_loop_takes_over_the_regions_of_what_it_replaces() -> None:
    module = good()
    old = find(module, If)
    old.location = PLACE
    types = [result.type for result in old.results]
    users = [list(result.users) for result in old.results]
    body, place = old.regions[0].block, old.next
    fresh = Rewriter().replace_keeping_regions(If(condition=old.condition, result_types=types), old)
    assert fresh.regions[0].block is body
    assert (fresh.next, fresh.location) == (place, PLACE)
    assert [list(result.users) for result in fresh.results] == users
    assert (old.parent, old.regions) == (None, [])
    assert verify(module) == []


def test_a_builder_orders_the_arguments_it_made() -> None:
    block = Block([INDEX])
    builder = Builder(block)
    first, second = builder.add_argument(BOOL, "p"), builder.add_argument(INDEX, "q")
    builder.order_arguments([block.arguments[0], second, first])
    assert [argument.name for argument in block.arguments] == [None, "q", "p"]
    assert [argument.index for argument in block.arguments] == [0, 1, 2]
    with pytest.raises(AssertionError):
        builder.order_arguments([first, first, second])


def test_functions_and_modules_are_marked() -> None:
    module = good()
    rewriter = Rewriter()
    rewriter.set_function_attribute(module.function("main"), "scratch_bytes", 64)
    rewriter.set_form(module, "scheduled")
    assert module.function("main").attributes["scratch_bytes"] == 64
    assert module.form == "scheduled"


def test_fields_may_not_hide_members() -> None:
    with pytest.raises(AssertionError, match="hide"):
        type("Bad", (Operation,), {"NAME": "bad", "results": operand()})


def test_types_are_interned() -> None:
    assert ScalarType(float32) is ScalarType(float32)
    assert ScalarType(float32) is not BOOL
