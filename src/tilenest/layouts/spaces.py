"""Spaces of integer coordinates, and index sets inside them.

In: named axes with extents, a number or the name of one known at run time. Out: frozen spaces and
sets, compared by value. A point of a space has one coordinate an axis, each in [0, extent); an
index set keeps the points at which every constraint holds. The names of run-time extents, sorted,
are the symbols of a space: `Sym(i)` in a formula over it is the i-th of them.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from tilenest.errors import ShapeError, shown
from tilenest.layouts.index_expr import IndexExpr
from tilenest.layouts.kinds import (
    MOST_PLACES,
    check_kind,
    tuple_of,
    whole_number,
    whole_numbers,
)
from tilenest.records import record

MOST_EXTENT = 1 << 63
"""Coordinates are signed 64-bit, so the last one of an axis may be 2**63 - 1."""
_FEW = 1 << 16
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_set = object.__setattr__


@record
class Axis:
    """One axis of a space; a text as extent is a number known at run time, at least 0."""

    name: str
    extent: int | str

    def __post_init__(self) -> None:
        check_kind(self.name, str, "the name of an axis")
        if isinstance(self.extent, str):
            if not _NAME.fullmatch(self.extent):
                raise ShapeError(
                    f"axis {self.name!r} has the run-time extent {shown(self.extent)}",
                    remedy="name it with letters, digits and underscores",
                )
            return
        _set(self, "extent", whole_number(self.extent, f"the extent of axis {self.name!r}"))
        if not 0 <= int(self.extent) <= MOST_EXTENT:
            raise ShapeError(
                f"axis {self.name!r} has the extent {self.extent}",
                remedy="use at least 0 and at most 2**63",
            )

    def __str__(self) -> str:
        name = self.name if _NAME.fullmatch(self.name) else json.dumps(self.name)
        return f"{name}={self.extent}"


@record
class Space:
    """A box of coordinates, row-major where it is linearised. Equal axes make equal spaces."""

    axes: tuple[Axis, ...] = ()

    def __post_init__(self) -> None:
        _set(self, "axes", tuple_of(self.axes, Axis, "the axes of a space", MOST_PLACES))

    @staticmethod
    def box(*extents: int | str, prefix: str = "x") -> Space:
        """A space with axes named x0, x1, ..."""
        return Space(tuple(Axis(f"{prefix}{i}", extent) for i, extent in enumerate(extents)))

    @property
    def rank(self) -> int:
        return len(self.axes)

    @property
    def extents(self) -> tuple[int | str, ...]:
        return tuple(axis.extent for axis in self.axes)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the extents known at run time, sorted."""
        return tuple(sorted({axis.extent for axis in self.axes if isinstance(axis.extent, str)}))

    @property
    def is_static(self) -> bool:
        return all(isinstance(axis.extent, int) for axis in self.axes)

    @property
    def size(self) -> int | None:
        """How many points there are, in unbounded integers; 0 is known beside unknown extents."""
        known = [extent for extent in self.extents if isinstance(extent, int)]
        if len(known) == self.rank or 0 in known:
            return prod(known)
        return None

    def shape(self, values: Mapping[str, int]) -> tuple[int, ...]:
        """The extents where the run-time ones have these values."""
        extents = self.extents
        names = [extent for extent in extents if isinstance(extent, str)]
        known = iter(values_of(names, values))
        return tuple(next(known) if isinstance(extent, str) else extent for extent in extents)

    def points(self, values: Mapping[str, int] | None = None) -> Iterator[tuple[int, ...]]:
        """Every point, in row-major order."""
        shape = self.shape({} if values is None else values)
        # The standard product copies every range before it starts.
        if 0 in shape:
            return iter(())
        return itertools.product(*map(range, shape)) if prod(shape) <= _FEW else _lattice(shape)

    def holds(self, point: Sequence[int], values: Mapping[str, int] | None = None) -> bool:
        """Whether the coordinates lie in the box."""
        shape = self.shape({} if values is None else values)
        try:
            return len(point) == len(shape) and all(
                0 <= x < n for x, n in zip(point, shape, strict=True)
            )
        except TypeError:
            whole_numbers(point, "a point")
            raise

    def product(self, other: Space) -> Space:
        """The axes of both, side by side."""
        check_kind(other, Space, "the other space")
        return Space(self.axes + other.axes)

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.axes))}]"


@record
class Constraint:
    """`expression >= 0`, or `expression == 0`, over the coordinates `DimRef(i)` of a space and its
    symbols `Sym(i)`."""

    expression: IndexExpr
    is_equality: bool = False

    def __post_init__(self) -> None:
        check_kind(self.expression, IndexExpr, "the expression of a constraint")

    def is_met(self, point: Sequence[int], symbols: Sequence[int] = ()) -> bool:
        value = self.expression.evaluate(point, symbols)
        return value == 0 if self.is_equality else value >= 0

    def __str__(self) -> str:
        return f"{self.expression} {'==' if self.is_equality else '>='} 0"


@record
class IndexSet:
    """The points of a space at which every constraint holds.

    `Sym(i)` in a constraint is `symbols[i]`: the run-time extents of the space and the `extra`
    names, sorted.
    """

    space: Space
    constraints: tuple[Constraint, ...] = ()
    extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_kind(self.space, Space, "the space of a set")
        _set(self, "constraints", tuple_of(self.constraints, Constraint, "the constraints"))
        _set(self, "extra", tuple_of(self.extra, str, "the names of a set"))
        if not self.constraints:
            return
        n_symbols = len(self.symbols)
        for constraint in self.constraints:
            expression = constraint.expression
            if expression.dim_mask >> self.space.rank or expression.sym_mask >> n_symbols:
                raise ShapeError(
                    f"{constraint} uses a coordinate or symbol that {self.space} does not have",
                    remedy="number coordinates by axis, and symbols by sorted name",
                )

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(sorted({*self.space.symbols, *self.extra}))

    @property
    def n_nodes(self) -> int:
        """How much work it is to try a point: the nodes of the constraints."""
        return sum(constraint.expression.size for constraint in self.constraints)

    def holds(self, point: Sequence[int], values: Mapping[str, int] | None = None) -> bool:
        """Whether a point belongs to the set."""
        given = {} if values is None else values
        if not self.constraints:
            return self.space.holds(point, given)
        symbols = values_of(self.symbols, given)
        return self.space.holds(point, given) and all(
            constraint.is_met(point, symbols) for constraint in self.constraints
        )

    def points(self, values: Mapping[str, int] | None = None) -> Iterator[tuple[int, ...]]:
        """Every point of the set, in row-major order."""
        return (point for point in self.space.points(values) if self.holds(point, values))

    def __str__(self) -> str:
        named = f" with {' '.join(self.extra)}" if self.extra else ""
        return f"{self.space}{named}{{{', '.join(map(str, self.constraints))}}}"


def values_of(names: Sequence[str], values: Mapping[str, int]) -> list[int]:
    """The values of some names, which have to be there."""
    missing = without_values(names, values)
    if missing:
        raise ShapeError(
            f"the run-time numbers {', '.join(missing)} have no values",
            remedy="give a value to every run-time number",
        )
    return [whole_number(values[name], "a run-time number") for name in names]


def without_values(names: Sequence[str], values: Mapping[str, int] | None) -> list[str]:
    """Those of some names that have no value."""
    if not names:
        return []
    given = {} if values is None else values
    check_kind(given, Mapping, "the values of run-time numbers")
    return [name for name in names if name not in given]


def _lattice(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The points of a large box, one at a time."""
    if not shape:
        yield ()
        return
    for x in range(shape[0]):
        for rest in _lattice(shape[1:]):
            yield (x, *rest)
