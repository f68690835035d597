"""The rewriter: what each edit does, what it refuses, whom it tells; passes in a row."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.unit.ir.test_structure_rules import find, good
from tilenest.dialects import Apply, Constant, If, Load, Return, Yield
from tilenest.errors import SourceLocation
from tilenest.ir import (
    BOOL,
    INDEX,
    Change,
    ChangeKind,
    Function,
    Module,
    Operation,
    PassRecord,
    Rewriter,
    ScalarType,
    float32,
    operand,
    print_module,
    run_passes,
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
    after = rewriter.insert_after(constant(2), anchor)
    assert (before.location, after.location) == (PLACE, PLACE)
    assert (before.next, after.previous) == (anchor, anchor)
    elsewhere = SourceLocation("h.py", 1, 1, 2, "f", "x")
    kept = constant(3)
    kept.location = elsewhere
    assert rewriter.insert_before(kept, anchor).location is elsewhere
    assert verify(module) == []


def test_insertion_at_the_end_of_a_region_inherits_from_its_owner() -> None:
    module = good()
    branch = find(module, If)
    branch.location = PLACE
    block = branch.regions[0].block
    block.terminator.erase()
    rewriter = Rewriter()
    inserted = rewriter.insert_at_end(constant(1), block)
    rewriter.insert_at_end(Yield(values=[inserted.result]), block)
    assert inserted.location is PLACE
    assert verify(module) == []


def test_builders_of_the_rewriter_tell_it() -> None:
    module = good()
    rewriter = Rewriter()
    anchor = find(module, Load)
    anchor.location = PLACE
    for builder in (rewriter.builder_before(anchor), rewriter.builder_after(anchor)):
        assert builder.insert(constant(1)).location is PLACE
    block = find(module, If).regions[0].block
    terminator = block.terminator
    terminator.detach()
    rewriter.builder_at_end(block).insert(terminator)
    assert rewriter.changes == 3
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
    assert (print_module(module), rewriter.changes) == (before, 0)


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


def test_moves_keep_the_uses() -> None:
    module = good()
    rewriter = Rewriter()
    constant_op, sum_, load = find(module, Constant), find(module, Apply), find(module, Load)
    uses = list(sum_.operand_uses)
    rewriter.move_before(load, find(module, Return))
    rewriter.move_after(sum_, constant_op)
    assert (constant_op.next, sum_.operand_uses) == (sum_, uses)
    inner = find(module, Apply, 1)
    rewriter.move_after(inner, sum_)
    assert inner.parent is sum_.parent
    rewriter.move_to_end(load, module.function("main").body)
    rewriter.move_before(load, find(module, Return))
    assert verify(module) == []


def test_moves_into_the_own_region_are_refused() -> None:
    module = good()
    branch = find(module, If)
    with pytest.raises(AssertionError, match="own region"):
        Rewriter().move_before(branch, find(module, Yield))
    with pytest.raises(AssertionError):
        Rewriter().move_before(branch, branch)
    with pytest.raises(AssertionError):
        Rewriter().move_after(branch, branch)
    assert verify(module) == []


def test_a_block_is_inlined_before_its_owner() -> None:
    module = good()
    rewriter = Rewriter()
    branch = find(module, If)
    inner = find(module, Apply, 1)
    values = rewriter.inline_block_before(branch.regions[0].block, [], branch)
    assert values == [inner.result]
    rewriter.replace_op(branch, values)
    assert inner.parent is module.function("main").body
    assert verify(module) == []


def test_inlined_arguments_become_the_given_values() -> None:
    module = good()
    rewriter = Rewriter()
    branch = find(module, If)
    block = branch.regions[0].block
    argument = rewriter.add_argument(block, INDEX, "k")
    rewriter.set_operand(find(module, Apply, 1), 0, argument)
    with pytest.raises(AssertionError, match="cannot stand for"):
        rewriter.inline_block_before(block, [module.function("main").arguments[2]], branch)
    given = find(module, Constant).result
    rewriter.inline_block_before(block, [given], branch)
    assert find(module, Apply, 1).arguments[0] is given
    rewriter.remove_argument(block, 0)
    assert block.arguments == []


def test_listeners_hear_every_change() -> None:
    module = good()
    rewriter = Rewriter()
    heard: list[Change] = []
    rewriter.subscribe(heard.append)
    load = find(module, Load)
    inserted = rewriter.insert_before(constant(1), load)
    rewriter.set_attribute(load, "bounds", "check")
    rewriter.move_after(inserted, load)
    rewriter.erase(inserted)
    rewriter.replace_all_uses(find(module, Apply).result, module.function("main").arguments[1])
    function = rewriter.add_function(module, Function("third"))
    rewriter.remove_function(module, function)
    kinds = [change.kind for change in heard]
    assert kinds[:4] == [
        ChangeKind.INSERTED,
        ChangeKind.ATTRIBUTES,
        ChangeKind.MOVED,
        ChangeKind.ERASED,
    ]
    assert kinds[4:-2] == [ChangeKind.OPERANDS] * 3
    assert kinds[-2:] == [ChangeKind.FUNCTIONS] * 2
    assert rewriter.changes == len(heard)
    assert verify(module) == []


@dataclass(frozen=True, slots=True)
class Rename:
    """Makes every scalar function another one."""

    to: str

    @property
    def name(self) -> str:
        return f"rename to {self.to}"

    def run(self, module: Module, rewriter: Rewriter) -> None:
        for op in module.walk():
            if isinstance(op, Apply):
                rewriter.set_attribute(op, "function", self.to)


def test_passes_run_in_order_and_the_caller_sees_each() -> None:
    module = good()
    seen: list[tuple[str, str]] = []

    def after(module: Module, record: PassRecord) -> None:
        seen.append((record.name, find(module, Apply).function))

    records = run_passes(module, [Rename("sub"), Rename("mul")], Rewriter(), after)
    assert seen == [("rename to sub", "sub"), ("rename to mul", "mul")]
    assert [record.changes for record in records] == [2, 2]
    assert all(record.seconds >= 0 for record in records)


def test_fields_may_not_hide_members() -> None:
    with pytest.raises(AssertionError, match="hide"):
        type("Bad", (Operation,), {"NAME": "bad", "results": operand()})


def test_types_are_interned() -> None:
    assert ScalarType(float32) is ScalarType(float32)
    assert ScalarType(float32) is not BOOL
