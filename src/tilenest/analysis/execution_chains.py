"""A run of nests, each directly inside the one before, as levels that can be rearranged.

In: the innermost nest. Out: the nests around it whose domains are the same in every instance, from
the outside in, with their levels; an extent known at run time only is a name. A condition between
two nests, or a domain that depends on the coordinates of a nest, ends the run there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from tilenest.analysis.effects import is_computation
from tilenest.analysis.execution_structure import NestAxis
from tilenest.analysis.structure import constant_of, is_defined_above
from tilenest.dialects import Nest, Parallel
from tilenest.execution import ExecLevel, ExecStructure
from tilenest.ir import Induction, Operation, OpResult, Value
from tilenest.machine import OPEN_SCOPE
from tilenest.records import record


@record
class ExecChain:
    """Nests from the outside in. `starts[i]` is the depth of the first level of nest i; the last
    entry is the depth below all of them."""

    nests: tuple[Nest, ...]
    structure: ExecStructure
    axes: tuple[NestAxis, ...]
    starts: tuple[int, ...]
    counted: Mapping[str, NestAxis]
    """for each name of an extent, an axis that makes as many trips"""

    def induction(self, axis: NestAxis) -> Induction[Value]:
        """The domain of an axis."""
        return axis.nest.inductions()[axis.axis]


def chain_to(leaf: Nest) -> ExecChain:
    """The run of nests that ends with `leaf`."""
    nests = [leaf]
    while True:
        holder = nests[0].parent_op
        if not isinstance(holder, Nest) or not all(_is_steady(nest, holder) for nest in nests):
            return _Chain(nests).chain()
        nests.insert(0, holder)


def chain_along(nests: Sequence[Nest]) -> ExecChain | None:
    """The run of these nests and no others, where they are one."""
    whole = chain_to(nests[-1]).nests
    return _Chain(list(nests)).chain() if whole[-len(nests) :] == tuple(nests) else None


def chains_of(operations: Iterator[Operation]) -> Iterator[ExecChain]:
    """The runs that end with a nest in which no further nest stands directly."""
    for op in operations:
        if isinstance(op, Nest) and not any(
            isinstance(inner, Nest) for region in op.regions for inner in region.operations()
        ):
            yield chain_to(op)


def levels_of(nest: Nest) -> tuple[ExecLevel, ...]:
    """The levels of one nest by itself."""
    return _Chain([nest]).chain().structure.levels


def _is_steady(nest: Nest, holder: Nest) -> bool:
    """Whether the domain of a nest is the same in all instances of one around it."""
    parts = (*nest.lower, *nest.upper, *nest.step)
    return len(holder.regions) == 1 and all(is_steady(value, holder) for value in parts)


def is_steady(value: Value, nest: Operation) -> bool:
    """Whether a value can be computed before a nest runs."""
    if is_defined_above(value, nest):
        return True
    return (
        isinstance(value, OpResult)
        and is_computation(value.owner)
        and all(is_steady(operand, nest) for operand in value.owner.operands)
    )


class _Chain:
    """Levels while they are collected."""

    def __init__(self, nests: list[Nest]) -> None:
        self.nests = nests
        self.levels: list[ExecLevel] = []
        self.axes: list[NestAxis] = []
        self.counted: dict[str, NestAxis] = {}
        self._names: dict[tuple[object, Value, object], str] = {}

    def chain(self) -> ExecChain:
        starts = [0]
        for place, nest in enumerate(self.nests):
            for axis in range(nest.rank):
                self._add(NestAxis(nest, axis), f"{nest.LEVELS}{place}")
            starts.append(len(self.levels))
        structure = ExecStructure(tuple(self.levels))
        return ExecChain(
            tuple(self.nests), structure, tuple(self.axes), tuple(starts), self.counted
        )

    def _add(self, axis: NestAxis, nest: str) -> None:
        argument = axis.nest.body.arguments[axis.axis]
        name = _word(argument.name or f"i{len(self.levels)}")
        level = ExecLevel(
            _unused(name, {level.identity for level in self.levels}),
            name,
            axis.nest.LEVELS,
            self._extent(axis, name),
            axis.nest.scope if isinstance(axis.nest, Parallel) else OPEN_SCOPE,
            nest,
            axis.nest.policy,
        )
        self.levels.append(level)
        self.axes.append(axis)

    def _extent(self, axis: NestAxis, level: str) -> int | str:
        bounds = axis.nest.inductions()[axis.axis]
        lower, upper, step = (constant_of(v) for v in (bounds.lower, bounds.upper, bounds.step))
        if lower is not None and upper is not None and step is not None:
            return len(range(int(lower), int(upper), int(step))) if step else 0
        key = (bounds.lower if lower is None else lower, bounds.upper, step or bounds.step)
        if key not in self._names:
            name = _unused(_word(bounds.upper.name or f"n_{level}"), set(self._names.values()))
            self._names[key] = name
            self.counted[name] = axis
        return self._names[key]


def _word(name: str) -> str:
    """A name of letters, digits and underscores."""
    word = re.sub(r"\W", "_", name, flags=re.ASCII)
    return word if re.match(r"[A-Za-z_]", word) else f"_{word}"


def _unused(name: str, taken: set[str]) -> str:
    unique, suffix = name, 1
    while unique in taken:
        unique, suffix = f"{name}_{suffix}", suffix + 1
    return unique
