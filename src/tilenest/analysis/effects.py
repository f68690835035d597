"""What an operation reads and writes outside its own values, and what may lie between two of them.

In: operations. Out: the views and bufs they touch, and whether a read may move past what stands in
between. Views of two arguments overlap only when the function's attribute `alias_groups` puts both
into one group (one int per argument), and then they coincide exactly; without the attribute any two
views may overlap.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis.structure import ancestor_in
from tilenest.dialects import Check, Load, MapReducePost, Nest, Read, Store
from tilenest.ir import Block, BlockArgument, BufType, Function, Operation, Value, ViewType
from tilenest.records import record


@record
class Effects:
    """The views and bufs an operation reads and writes, nested operations included."""

    reads: frozenset[Value]
    writes: frozenset[Value]


def effects_of(operation: Operation) -> Effects:
    reads: set[Value] = set()
    writes: set[Value] = set()
    for op in operation.walk():
        match op:
            case Load():
                reads.add(op.view)
            case Store():
                writes.add(op.view)
            case Read():
                reads.add(op.buffer)
            case MapReducePost():
                writes.update(op.outputs)
                reads.update(v for v in (*op.inputs, *op.seeds, *op.posts) if _is_memory(v))
            case _:
                pass
    return Effects(frozenset(reads), frozenset(writes))


def is_pure(operation: Operation) -> bool:
    """Whether an operation may go when nobody uses its results."""
    if operation.TERMINATOR:
        return False
    if any(_may_fault(op) for op in operation.walk()):
        return False
    return not effects_of(operation).writes


def _may_fault(op: Operation) -> bool:
    return isinstance(op, Check) or (isinstance(op, Load) and op.bounds == "check")


def may_overlap(a: Value, b: Value) -> bool:
    """Whether two views or bufs may share memory."""
    if a is b:
        return True
    if isinstance(a.type, BufType) or isinstance(b.type, BufType):
        return False
    groups = _alias_groups(a)
    if groups is None:
        return True
    return bool(groups[a.index] == groups[b.index])


def coincide(a: Value, b: Value) -> bool:
    """Whether two views are the same elements: arguments of one group coincide exactly."""
    if a is b:
        return True
    is_view = isinstance(a.type, ViewType) and isinstance(b.type, ViewType)
    return is_view and _alias_groups(a) is not None and may_overlap(a, b)


def is_written_between(memory: Value, first: Operation, last: Operation) -> bool:
    """Whether `memory` may change after `first` runs and before `last` (later, maybe nested) does.

    When `last` is nested, everything in the operation that holds it counts: a loop's later
    iterations come after its earlier ones.
    """
    block = first.parent
    assert block is not None
    holder = ancestor_in(block, last)
    assert holder is not None, "the second operation is not in the first one's block"
    for op in _strictly_between(first, holder):
        if _may_write(op, memory):
            return True
    if holder is last:
        return False
    if any(isinstance(op, Nest) for op in _enclosing(last, block)):
        return _may_write(holder, memory)
    # Only branches enclose it: what comes before it in each of them counts.
    inner: Operation = last
    while inner.parent is not block:
        assert inner.parent is not None
        if any(_may_write(op, memory) for op in _strictly_between(None, inner)):
            return True
        owner = inner.parent_op
        assert owner is not None
        inner = owner
    return False


def _may_write(op: Operation, memory: Value) -> bool:
    return any(may_overlap(memory, written) for written in effects_of(op).writes)


def _strictly_between(first: Operation | None, last: Operation) -> Iterator[Operation]:
    op = last.previous
    while op is not None and op is not first:
        yield op
        op = op.previous


def _enclosing(op: Operation, block: Block) -> Iterator[Operation]:
    while op.parent is not block:
        owner = op.parent_op
        assert owner is not None
        yield owner
        op = owner


def _is_memory(value: Value) -> bool:
    return isinstance(value.type, ViewType | BufType)


def _alias_groups(view: Value) -> tuple[int, ...] | None:
    assert isinstance(view, BlockArgument) and view.block.parent is not None
    function = view.block.parent.parent
    assert isinstance(function, Function), "a view is an argument of its function"
    groups: tuple[int, ...] | None = function.attributes.get("alias_groups")
    return groups
