"""TIRx tile layouts: shard, replica and offset, in and out.

In: `shard`, digits of the logical row-major place, each with a stride along a physical axis;
`replica`, further digits that place copies; `offset`, where each physical axis starts. Out: the
correspondence between logical coordinates and physical ones: a shard digit moves both sides, a
replica digit the physical side only. A correspondence goes back when its legs are proven to be sums
of strides times digits that number the logical points once, and each digit moves one axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tilenest.errors import ShapeError
from tilenest.layouts.correspondence import LayoutCorr
from tilenest.layouts.deciding import DEFAULT_BUDGET
from tilenest.layouts.kinds import check_kind, named, tuple_of, whole_number, whole_numbers
from tilenest.layouts.layout_leaves import Recast, row_major
from tilenest.layouts.layout_map import Project
from tilenest.layouts.linear_modes import LinearMode, affine, check_known, linear_modes
from tilenest.layouts.questions import is_bounded
from tilenest.layouts.spaces import Axis, Space
from tilenest.records import record

_set = object.__setattr__


@record
class Iter:
    """A digit of this extent, which moves a physical axis by `stride` a step."""

    extent: int
    stride: int
    axis: str

    def __post_init__(self) -> None:
        _set(self, "extent", whole_number(self.extent, "the extent of a digit"))
        _set(self, "stride", whole_number(self.stride, "the stride of a digit"))
        check_kind(self.axis, str, "the axis of a digit")

    def __str__(self) -> str:
        return f"{self.extent}:{self.stride}@{self.axis}"


@record
class TileLayout:
    """Shard digits from the slowest to the fastest, replica digits, and offsets by axis."""

    shard: tuple[Iter, ...]
    replica: tuple[Iter, ...] = ()
    offset: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        _set(self, "shard", tuple_of(self.shard, Iter, "the shard"))
        _set(self, "replica", tuple_of(self.replica, Iter, "the replica"))
        starts = named(self.offset, "the offsets")
        offset = tuple((name, whole_number(start, "an offset")) for name, start in starts)
        _set(self, "offset", offset)
        if any(part.extent < 1 for part in (*self.shard, *self.replica)):
            raise ShapeError(f"{self} has an extent below 1", remedy="use extents of at least 1")
        names = [name for name, _ in self.offset]
        if len(set(names)) != len(names):
            raise ShapeError(
                f"{self} gives an axis two offsets", remedy="give each axis at most one offset"
            )
        for axis, (least, _) in self.spans().items():
            if least < 0:
                raise ShapeError(
                    f"{self} starts below 0, at {least}, on axis {axis!r}",
                    remedy="raise the offset of the axis",
                )

    def spans(self) -> dict[str, tuple[int, int]]:
        """The least and the greatest coordinate of each physical axis, in order of appearance."""
        parts = (*self.shard, *self.replica)
        axes = dict.fromkeys([*(part.axis for part in parts), *(name for name, _ in self.offset)])
        starts = dict(self.offset)
        found: dict[str, tuple[int, int]] = {}
        for axis in axes:
            ends = [part.stride * (part.extent - 1) for part in parts if part.axis == axis]
            start = starts.get(axis, 0)
            found[axis] = (
                start + sum(min(end, 0) for end in ends),
                start + sum(max(end, 0) for end in ends),
            )
        return found

    def __str__(self) -> str:
        parts = [f"S[{', '.join(map(str, self.shard))}]"]
        if self.replica:
            parts.append(f"R[{', '.join(map(str, self.replica))}]")
        parts += [f"{offset}@{name}" for name, offset in self.offset]
        return " + ".join(parts)


def tile_layout(
    shard: Sequence[tuple[int, int, str]],
    replica: Sequence[tuple[int, int, str]] = (),
    offset: Mapping[str, int] | None = None,
) -> TileLayout:
    """A layout from (extent, stride, axis) triples."""
    sharded, copied = _digits(shard, "the shard"), _digits(replica, "the replica")
    starts = {} if offset is None else offset
    check_kind(starts, Mapping, "the offsets")
    return TileLayout(sharded, copied, tuple(starts.items()))


def to_correspondence(layout: TileLayout, shape: Sequence[int] | None = None) -> LayoutCorr:
    """Logical coordinates of this shape beside physical ones; by default one axis a shard digit."""
    check_kind(layout, TileLayout, "what becomes a correspondence")
    extents = [part.extent for part in layout.shard]
    wanted = extents if shape is None else whole_numbers(shape, "a shape")
    logical = Space.box(*wanted, prefix="i")
    if logical.size != prod(extents):
        raise ShapeError(
            f"{layout} shards {prod(extents)} points, and {logical} has {logical.size}",
            remedy="give a shape with as many points as the shard extents have",
        )
    digits = Space.box(*extents, prefix="s")
    copies = Space.box(*(part.extent for part in layout.replica), prefix="r")
    occurrences = digits.product(copies)
    spans = layout.spans()
    physical = Space(tuple(Axis(name, most + 1) for name, (_, most) in spans.items()))
    parts = (*layout.shard, *layout.replica)
    rows = tuple(tuple(p.stride if p.axis == name else 0 for p in parts) for name in spans)
    starts = dict(layout.offset)
    right = affine(occurrences, physical, rows, [starts.get(name, 0) for name in spans])
    left = Project(occurrences, tuple(range(digits.rank))).then(Recast(digits, logical))
    return LayoutCorr(left, right)


def from_correspondence(corr: LayoutCorr, budget: int = DEFAULT_BUDGET) -> TileLayout:
    """The tile layout that a correspondence is; its logical points count in row-major order."""
    check_kind(corr, LayoutCorr, "what becomes a tile layout")
    for leg in (corr.left, corr.right):
        check_known(leg)
        answer = is_bounded(leg, budget)
        if not answer.is_proven:
            raise ShapeError(
                f"a leg is not proven to stay in {leg.codomain}: {answer}",
                remedy="use legs that stay in their spaces at every occurrence",
            )
    names = [axis.name for axis in corr.codomain.axes]
    if not names or len(set(names)) != len(names):
        raise ShapeError(
            f"{corr.codomain} does not name physical axes, each by itself",
            remedy="give the physical side at least one axis, and every axis its own name",
        )
    found = linear_modes([corr.left.then(row_major(corr.domain)), corr.right], budget)
    shard = sorted((m for m in found.modes if m.strides[0]), key=lambda m: -m.strides[0])
    replica = [mode for mode in found.modes if not mode.strides[0]]
    _check_numbering(corr, found.constants[0], shard)
    offsets = zip(names, found.constants[1:], strict=True)
    return TileLayout(
        tuple(_iter(mode, names) for mode in shard),
        tuple(_iter(mode, names) for mode in replica),
        tuple((name, start) for name, start in offsets if start),
    )


def _check_numbering(corr: LayoutCorr, start: int, shard: Sequence[LinearMode]) -> None:
    """The shard digits number the logical points once, in row-major order."""
    below = 1
    for mode in reversed(shard):
        if mode.strides[0] != below:
            raise ShapeError(
                f"the digits of {corr.occurrences} do not number {corr.domain}: one of extent "
                f"{mode.extent} steps by {mode.strides[0]} where {below} is next",
                remedy="use occurrences that visit each logical point once a copy",
            )
        below *= mode.extent
    if start or below != corr.domain.size:
        raise ShapeError(
            f"the digits of {corr.occurrences} reach {below} of the {corr.domain.size} points of "
            f"{corr.domain}, from {start} on",
            remedy="use occurrences that visit each logical point once a copy",
        )


def _digits(group: Sequence[tuple[int, int, str]], what: str) -> tuple[Iter, ...]:
    triples = [tuple_of(one, object, f"a digit of {what}") for one in tuple_of(group, object, what)]
    if any(len(triple) != 3 for triple in triples):
        raise ShapeError(
            f"a digit of {what} has no three parts", remedy="write (extent, stride, axis)"
        )
    return tuple(Iter(*triple) for triple in triples)


def _iter(mode: LinearMode, names: Sequence[str]) -> Iter:
    moved = [(stride, name) for stride, name in zip(mode.strides[1:], names, strict=True) if stride]
    if len(moved) > 1:
        raise ShapeError(
            f"a digit of extent {mode.extent} moves {len(moved)} physical axes: "
            f"{', '.join(name for _, name in moved)}",
            remedy="a tile layout moves one axis a digit: keep the correspondence",
        )
    stride, name = moved[0] if moved else (0, names[0])
    return Iter(mode.extent, stride, name)
