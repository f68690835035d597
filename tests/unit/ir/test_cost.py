"""Edits touch what they must and no more: nodes are counted, not seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.unit.ir.branches import diamond
from tilenest.dialects import Apply, If, Return, registry
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    Function,
    LinkedList,
    Module,
    Region,
    Rewriter,
    parse_module,
)

SIZE = 300


def large_module() -> Module:
    """A chain of operations that all use the first argument, with a nest in the middle."""
    module = Module()
    function = module.add(Function("f", [INDEX, INDEX, BOOL]))
    for place in range(SIZE):
        op = Apply(function="neg", arguments=[function.arguments[0]], result_types=[INDEX])
        function.body.append(op)
        if place == SIZE // 2:
            block = Block()
            for _ in range(SIZE):
                arguments = [function.arguments[1]]
                block.append(Apply(function="neg", arguments=arguments, result_types=[INDEX]))
            function.body.append(If(condition=function.arguments[2], regions=[Region([block])]))
    function.body.append(Return())
    return module


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Counts nodes yielded by any list, linked and unlinked."""
    count = [0]
    iterate, insert, remove = LinkedList.__iter__, LinkedList.insert_before, LinkedList.remove

    def counting_iterate(self: LinkedList) -> Iterator:  # type: ignore[type-arg]  # any node
        for node in iterate(self):
            count[0] += 1
            yield node

    def counting(function: Callable[..., None]) -> Callable[..., None]:
        def wrapper(*arguments: object) -> None:
            count[0] += 1
            function(*arguments)

        return wrapper

    with monkeypatch.context() as patch:
        patch.setattr(LinkedList, "__iter__", counting_iterate)
        patch.setattr(LinkedList, "insert_before", counting(insert))
        patch.setattr(LinkedList, "remove", counting(remove))
        yield count


def test_set_operand_touches_one_use(monkeypatch: pytest.MonkeyPatch) -> None:
    function = large_module().function("f")
    op = function.body.operations.first
    assert op is not None
    with counted(monkeypatch) as count:
        op.set_operand(0, function.arguments[1])
    assert count[0] <= 2


def test_moving_a_nest_does_not_walk_it(monkeypatch: pytest.MonkeyPatch) -> None:
    function = large_module().function("f")
    nest = next(op for op in function.body.operations if isinstance(op, If))
    with counted(monkeypatch) as count:
        nest.move(function.body, function.body.operations.first)
    assert count[0] <= 2
    assert function.body.operations.first is nest


def test_replacing_walks_the_old_uses_only(monkeypatch: pytest.MonkeyPatch) -> None:
    function = large_module().function("f")
    value = function.body.operations.first
    assert value is not None
    old = value.result
    users = list(function.body.operations)[5:8]
    for user in users[:3]:
        user.set_operand(0, old)
    with counted(monkeypatch) as count:
        old.replace_all_uses_with(function.arguments[0])
    assert count[0] <= 3 * 3
    assert not old.has_uses


def test_insertion_and_erasure_touch_their_operands(monkeypatch: pytest.MonkeyPatch) -> None:
    function = large_module().function("f")
    op = Apply(function="neg", arguments=function.arguments[:2], result_types=[INDEX])
    with counted(monkeypatch) as count:
        function.body.insert(op, function.body.operations.first)
        op.erase()
    assert count[0] <= 6


def test_detaching_costs_the_operands_below(monkeypatch: pytest.MonkeyPatch) -> None:
    function = large_module().function("f")
    nest = next(op for op in function.body.operations if isinstance(op, If))
    with counted(monkeypatch) as count:
        nest.detach()
    assert SIZE <= count[0] <= 2 * SIZE + 10


def test_moving_a_run_touches_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    function = large_module().function("f")
    ops = list(function.body.operations)
    rewriter = Rewriter()
    with counted(monkeypatch) as count:
        rewriter.splice(ops[10], ops[14], function.body, ops[2])
    assert count[0] <= 2 * 5
    assert list(function.body.operations)[2:7] == ops[10:15]


def test_a_branch_goes_elsewhere_at_the_cost_of_one_edge(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = diamond(large_module())
    rewriter = Rewriter()
    with counted(monkeypatch) as count:
        rewriter.set_successor(blocks.then.terminator, "target", blocks.otherwise)
    assert count[0] <= 2
    end = blocks.otherwise.terminator
    with counted(monkeypatch) as count:
        end.move(blocks.then)
    assert count[0] <= 2
    assert blocks.then in blocks.join.predecessors


def test_undoing_touches_what_was_done(monkeypatch: pytest.MonkeyPatch) -> None:
    function = large_module().function("f")
    rewriter = Rewriter()
    first = function.body.operations.first
    assert first is not None
    following = first.next
    with counted(monkeypatch) as count, rewriter.transaction() as opened:
        rewriter.erase(first)
        opened.rollback()
    assert count[0] <= 10
    assert first.next is following
    assert function.arguments[0].uses.first is first.operand_uses[0]


def test_reading_a_function_does_not_look_at_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    functions = "".join(f"func @f{place} () {{\n  func.return\n}}\n" for place in range(SIZE))
    with counted(monkeypatch) as count:
        parse_module(f'module "candidate"\n{functions}', registry())
    assert count[0] <= 10 * SIZE
