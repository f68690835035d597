"""Capabilities: the features of a machine that planned code takes for granted.

In: the operations of a function in Scheduled or Machine form, and the atoms of its target. Out: the
names of the features, as the target lists them: what the chosen atoms need, and registers with as
many lanes as the vectors have.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilenest.dialects import AtomCall, MapReducePost, Sched
from tilenest.ir import Operation, VectorType
from tilenest.machine import Catalogue, lanes_feature


def needed_features(operations: Iterable[Operation], catalogue: Catalogue) -> frozenset[str]:
    """The features that these operations need; the catalogue says it of atoms."""
    atoms: set[str] = set()
    lanes: set[int] = set()
    for op in operations:
        # What an operation is given, another one made.
        lanes.update(one.type.lanes for one in op.results if isinstance(one.type, VectorType))
        if isinstance(op, AtomCall):
            atoms.add(op.atom)
        elif isinstance(op, MapReducePost) and isinstance(op.sched, Sched):
            atoms.update(choice.atom for choice in op.sched.atoms)
            lanes.update(loop.step for loop in op.sched.loops if loop.policy == "vector")
    found = filter(None, map(catalogue.find, atoms))
    registers = map(lanes_feature, lanes - {1})
    return frozenset(registers).union(*(contract.needs for contract in found))
