"""Whether a value that its use consumes is used exactly once on every way through the program.

In: a value. Out: nothing, or the first operation that uses it again, or too seldom, and why. The
alternatives of a conditional count as one use when each of them uses the value; what is repeated
may not use a value from outside, and takes it as a carried state instead.
"""

from __future__ import annotations

from tilenest.analysis.structure import ancestor_in
from tilenest.ir import Block, Operation, RegionUse, Value
from tilenest.records import record


@record
class Overuse:
    """What is wrong with the uses of a value; `operation` is where it shows."""

    operation: Operation | None
    fact: str
    remedy: str


def overuse_of(value: Value) -> Overuse | None:
    """What is wrong with the uses of a value, if anything is."""
    block = value.defining_block
    assert block is not None
    overuse, is_used = _in_block(value, block, list(value.users))
    if overuse is None and not is_used:
        end = block.terminator
        return Overuse(end, "is never used", "use it, as the last state of what it stands for")
    return overuse


def _in_block(value: Value, block: Block, users: list[Operation]) -> tuple[Overuse | None, bool]:
    """Whether a block uses the value, or what is wrong with it."""
    holders: dict[Operation, list[Operation]] = {}
    for user in users:
        holder = ancestor_in(block, user)
        if holder is None:
            remedy = "hand it to that block as an argument"
            return Overuse(user, "is used in another block of its region", remedy), True
        holders.setdefault(holder, []).append(user)
    if len(holders) > 1:
        later = _last(block, holders)
        return Overuse(later, "is used again, after a use consumed it", "use the next state"), True
    for holder, inside in holders.items():
        return _in_operation(value, holder, inside), True
    return None, False


def _last(block: Block, holders: dict[Operation, list[Operation]]) -> Operation:
    *_, last = (op for op in block.operations if op in holders)
    return last


def _in_operation(value: Value, op: Operation, users: list[Operation]) -> Overuse | None:
    if op in users:
        return _in_operands(value, op)
    if op.REGION_USE is not RegionUse.ALTERNATIVE:
        return Overuse(
            users[0], "is used inside a region that may run often", "carry it as a state"
        )
    for region in op.regions:
        entry = region.blocks.first
        inside = [user for user in users if _is_below(entry, user)]
        if entry is None or not inside:
            return Overuse(op, "is used on some ways only", "use it in every alternative")
        overuse, _ = _in_block(value, entry, inside)
        if overuse is not None:
            return overuse
    return None


def _in_operands(value: Value, op: Operation) -> Overuse | None:
    """One operand, or one on each way that a branch may go on."""
    groups = [op.operands]
    if op.SPEC.successors:
        parts = dict(zip((g for g, _ in op.SPEC.groups), _groups(op), strict=True))
        groups = [parts[name] for name in op.SPEC.successors]
    counts = {sum(operand is value for operand in group) for group in groups}
    if counts == {1}:
        return None
    if 0 in counts:
        return Overuse(op, "is handed on some ways only", "hand it on every way")
    return Overuse(op, "is used twice by one operation", "use the next state")


def _groups(op: Operation) -> list[list[Value]]:
    return [list(group) for group in op.SPEC.split(op.operands, op.segments)]


def _is_below(entry: Block | None, user: Operation) -> bool:
    region = None if entry is None else entry.parent
    block = user.parent
    while block is not None and block.parent is not region:
        owner = block.parent_op
        block = None if owner is None else owner.parent
    return block is not None
