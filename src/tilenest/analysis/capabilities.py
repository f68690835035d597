"""Capabilities: the features of a machine that planned code takes for granted.

In: the operations of a function in Scheduled or Machine form. Out: the names of the features, as a
target lists them: what the chosen atoms need, and registers with as many lanes as the vectors have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tilenest.dialects import AtomCall, MapReducePost, Sched
from tilenest.ir import Operation, VectorType
from tilenest.machine import CPU_ATOMS, lanes_feature


def needed_features(operations: Iterable[Operation]) -> frozenset[str]:
    """The features that these operations need."""
    return frozenset(feature for op in operations for feature in _features(op))


def _features(op: Operation) -> Iterator[str]:
    for name in _atoms(op):
        contract = CPU_ATOMS.find(name)
        if contract is not None:
            yield from contract.needs
    lanes = max(_lanes(op), default=1)
    if lanes > 1:
        yield lanes_feature(lanes)


def _atoms(op: Operation) -> Iterator[str]:
    if isinstance(op, AtomCall):
        yield op.atom
    if isinstance(op, MapReducePost) and isinstance(op.sched, Sched):
        yield from (choice.atom for choice in op.sched.atoms)


def _lanes(op: Operation) -> Iterator[int]:
    """Of what the op works on, or will once its loops are built."""
    types = (value.type for value in (*op.operands, *op.results))
    yield from (type_.lanes for type_ in types if isinstance(type_, VectorType))
    if isinstance(op, MapReducePost) and isinstance(op.sched, Sched):
        yield from (loop.step for loop in op.sched.loops if loop.policy == "vector")
