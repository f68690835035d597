"""The meaning of atoms: a NumPy function by the id that a call names.

In: the operands of a call. Out: its results; a token for each result that is one. The table holds
those that a machine's catalogue offers, and nothing here asks the catalogue.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

import numpy as np

from tilenest.dialects import AtomCall
from tilenest.errors import AssertionFailed, InternalError
from tilenest.interp.frame import Frame, Handler
from tilenest.interp.functions import apply
from tilenest.interp.values import Array, RuntimeValue, Token
from tilenest.ir import Operation, TokenType, element_dtype

Meaning = Callable[[AtomCall, list[Array]], list[Array]]


def call(frame: Frame, op: AtomCall) -> list[RuntimeValue]:
    """What the entry computes; its tokens carry nothing."""
    meaning = MEANINGS.get(op.atom)
    if meaning is None:
        raise InternalError(f"the atom {op.atom} has no meaning in the interpreter")
    given = frame.arrays([v for v in op.arguments if not isinstance(v.type, TokenType)])
    produced = iter(meaning(op, given))
    return [
        Token() if isinstance(result.type, TokenType) else next(produced) for result in op.results
    ]


def print_values(_: AtomCall, given: list[Array]) -> list[Array]:
    sys.stdout.write(" ".join(map(str, given)) + "\n")
    return []


def assert_true(_: AtomCall, given: list[Array]) -> list[Array]:
    if not all(condition.all() for condition in given):
        raise AssertionFailed(
            "a condition that the program asserts does not hold",
            remedy="look at the values that make it false, or drop the assertion",
        )
    return []


def transpose_lanes(_: AtomCall, given: list[Array]) -> list[Array]:
    return list(np.ascontiguousarray(np.stack(given).T))


def reduce_lanes(op: AtomCall, given: list[Array]) -> list[Array]:
    """Lane l meets lane l + lanes/2, again and again."""
    (lanes,) = given
    function = op.semantic.removeprefix("combine.")
    while lanes.size > 1:
        half = lanes.size // 2
        lanes = apply(function, element_dtype(op.result.type), [lanes[:half], lanes[half:]])
    return [lanes.reshape(())]


MEANINGS: Mapping[str, Meaning] = {
    "cpu.print": print_values,
    "cpu.assert": assert_true,
    "cpu.lanes.transpose": transpose_lanes,
    "cpu.lanes.reduce": reduce_lanes,
    "cpu.lanes.extreme": reduce_lanes,
    "cpu.lanes.number": reduce_lanes,
    "cpu.lanes.bits": reduce_lanes,
}
HANDLERS: dict[type[Operation], Handler] = {AtomCall: call}
