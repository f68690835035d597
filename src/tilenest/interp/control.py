"""The meaning of calls, returns and branches.

In: values. Out: what a callee returns, or what the next block takes as arguments. A branch tells
the frame where to go on; a callee has values of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.dialects import BlockBranch, Call, CondBranch, Return
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.values import RuntimeValue
from tilenest.ir import Block, Operation, Successor, Value


def hand_over(frame: Frame, op: Return) -> list[RuntimeValue]:
    return [frame.values[value] for value in op.values]


def call(frame: Frame, op: Call) -> Sequence[RuntimeValue]:
    return frame.call(op.callee, [frame.values[value] for value in op.arguments])


def branch(frame: Frame, op: BlockBranch) -> list[RuntimeValue]:
    return _go_on(frame, op.target)


def cond_branch(frame: Frame, op: CondBranch) -> list[RuntimeValue]:
    return _go_on(frame, op.then if frame.array(op.condition) else op.otherwise)


def _go_on(frame: Frame, taken: Successor[Block, Value]) -> list[RuntimeValue]:
    frame.following = taken.block
    return [frame.values[value] for value in taken.operands]


HANDLERS: dict[type[Operation], Handler] = {
    Return: hand_over,
    Call: call,
    BlockBranch: branch,
    CondBranch: cond_branch,
}
