"""Random legal edits against a naive model of lists, with the identity of every use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.unit.ir.mirror import Mirror
from tests.unit.ir.photograph import photograph
from tilenest.dialects import Apply, If
from tilenest.ir import BOOL, INDEX, Block, Function, Module, Region, verify

WEIGHTS = {
    "insert": 26,
    "detach": 4,
    "reinsert": 6,
    "move": 14,
    "set_operand": 14,
    "replace_all_uses": 5,
    "erase": 14,
    "clone": 3,
    "set_attribute": 4,
    "split": 3,
    "redirect": 4,
    "erase_block": 2,
    "move_block": 2,
    "change_arguments": 3,
    "edit_functions": 1,
}


class Session:
    """A mirror under edits; now and then a few of them are a transaction."""

    def __init__(self, seed: int, most: int) -> None:
        self.mirror = Mirror(seed, most)
        self.done: Counter[str] = Counter()

    def grow(self) -> None:
        """Insert until the module is as large as it may be."""
        while self.mirror.size() < self.mirror.most:
            for _ in range(100):
                self.mirror.insert()

    def edit(self) -> None:
        """One edit that was legal."""
        mirror = self.mirror
        if mirror.chance.random() < 0.02:
            self.transaction()
            return
        is_full = mirror.size() > mirror.most
        name = ""
        is_done = False
        while not is_done:
            name = mirror.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            if is_full and name in ("insert", "clone"):
                name = "erase"
            edit: Callable[[], bool] = getattr(mirror, name)
            is_done = edit()
        self.done[name] += 1

    def transaction(self) -> None:
        """Some edits, at times with a transaction inside; half of them are undone."""
        mirror = self.mirror
        before, saved = photograph(mirror.module), mirror.lists.copy()
        with mirror.rewriter.transaction() as opened:
            for _ in range(mirror.chance.randrange(1, 8)):
                self.edit()
            if mirror.chance.random() < 0.5:
                opened.rollback()
                mirror.lists = saved
                assert photograph(mirror.module) == before
                self.done["rollback"] += 1

    def run(self, count: int) -> None:
        for step in range(count):
            self.edit()
            if step % 100 == 99:
                self.mirror.check()
                assert verify(self.mirror.module) == []
        self.mirror.check()


def test_five_thousand_edits_keep_lists_and_uses() -> None:
    small, large = Session(7, 60), Session(8, 2000)
    small.run(4000)
    assert min(small.done[name] for name in (*WEIGHTS, "rollback")) > 3
    large.grow()
    large.run(1000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_thousand_edits_keep_lists_and_uses(seed: int) -> None:
    session = Session(seed, (60, 300, 2000)[seed % 3])
    session.grow()
    session.run(10_000)


def test_a_reinserted_operation_brings_the_same_uses_back() -> None:
    module = Module()
    function = module.add(Function("f", [INDEX]))
    op = Apply(function="neg", arguments=function.arguments * 2, result_types=[INDEX])
    uses = list(op.operand_uses)
    assert not function.arguments[0].has_uses
    function.body.append(op)
    assert list(function.arguments[0].uses) == uses
    op.detach()
    assert not function.arguments[0].has_uses
    op.set_operand(0, function.arguments[0])
    assert not function.arguments[0].has_uses
    function.body.append(op)
    assert all(a is b for a, b in zip(function.arguments[0].uses, uses, strict=True))


def test_nested_uses_follow_the_outermost_operation() -> None:
    module = Module()
    function = module.add(Function("f", [INDEX, BOOL]))
    index, condition = function.arguments
    inner = Block()
    inner.append(Apply(function="neg", arguments=[index], result_types=[INDEX]))
    op = If(condition=condition, regions=[Region([inner])])
    assert not index.has_uses
    function.body.append(op)
    assert len(index.uses) == 1
    op.detach()
    assert not index.has_uses
    assert not condition.has_uses
    second = Block()
    second.append(Apply(function="neg", arguments=[index], result_types=[INDEX]))
    function.body.append(op)
    op.regions[0].append(second)
    assert len(index.uses) == 2
