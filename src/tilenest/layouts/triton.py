"""Triton's linear layouts: bases over the two-element field, in and out.

In: for each input dimension (register, lane, warp, block) a list of basis vectors, one a bit, and
the sizes of the output dimensions. Out: the `BitLinear` map that gives, for each register of each
lane, the element it holds: the exclusive or of the bases whose bit is set. A map goes back when its
extents are powers of two and it is proven linear over bits with 0 going to 0. What holds an element
is the converse: `LayoutCorr.from_map(to_map(layout)).converse()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilenest.errors import ShapeError
from tilenest.layouts.deciding import DEFAULT_BUDGET
from tilenest.layouts.kinds import check_kind, named, tuple_of, whole_number, whole_numbers
from tilenest.layouts.layout_leaves import BitLinear, bit_widths, pack_bits
from tilenest.layouts.layout_map import LayoutMap, Point
from tilenest.layouts.linear_modes import check_equal, check_known
from tilenest.layouts.spaces import Axis, Space
from tilenest.records import record

_set = object.__setattr__


@record
class LinearLayout:
    """Named inputs with the basis vectors of their bits, lowest first, and outputs with sizes."""

    bases: tuple[tuple[str, tuple[Point, ...]], ...]
    outputs: tuple[tuple[str, int], ...]

    def __post_init__(self) -> None:
        sizes = (
            (name, whole_number(size, "the size of an output"))
            for name, size in named(self.outputs, "the outputs")
        )
        _set(self, "outputs", tuple(sizes))
        listed = ((name, _vectors(vectors)) for name, vectors in named(self.bases, "the bases"))
        _set(self, "bases", tuple(listed))
        for name, size in self.outputs:
            if size < 1 or size & (size - 1):
                raise ShapeError(
                    f"output {name!r} has size {size}", remedy="use sizes that are powers of two"
                )
        for name, vectors in self.bases:
            for vector in vectors:
                self._check_vector(name, vector)

    def as_bases(self) -> dict[str, list[list[int]]]:
        """The bases as Triton writes them: lists of vectors by input name."""
        return {name: [list(vector) for vector in vectors] for name, vectors in self.bases}

    def _check_vector(self, name: str, vector: Point) -> None:
        sizes = [size for _, size in self.outputs]
        if len(vector) != len(sizes) or any(
            not 0 <= x < size for x, size in zip(vector, sizes, strict=True)
        ):
            raise ShapeError(
                f"the basis {list(vector)} of input {name!r} does not lie in the sizes {sizes}",
                remedy="give every basis one number an output, from 0 to below its size",
            )

    def __str__(self) -> str:
        inputs = ", ".join(f"{name}={[list(v) for v in vectors]}" for name, vectors in self.bases)
        outputs = ", ".join(f"{name}={size}" for name, size in self.outputs)
        return f"linear({inputs} -> {outputs})"


def of_bases(
    bases: Mapping[str, Sequence[Sequence[int]]], outputs: Mapping[str, int]
) -> LinearLayout:
    """A layout from Triton's bases, in the order of the mappings."""
    check_kind(bases, Mapping, "the bases")
    check_kind(outputs, Mapping, "the outputs")
    found = tuple((name, _vectors(vectors)) for name, vectors in bases.items())
    return LinearLayout(found, tuple(outputs.items()))


def to_map(layout: LinearLayout) -> LayoutMap:
    """The map from the inputs, one axis each, to the outputs."""
    check_kind(layout, LinearLayout, "what becomes a map")
    domain = Space(tuple(Axis(name, 1 << len(vectors)) for name, vectors in layout.bases))
    codomain = Space(tuple(Axis(name, size) for name, size in layout.outputs))
    # The lowest bits belong to the last axis.
    packed = [pack_bits(codomain, v) for _, vectors in reversed(layout.bases) for v in vectors]
    return BitLinear(domain, codomain, tuple(packed))


def from_map(layout: LayoutMap, budget: int = DEFAULT_BUDGET) -> LinearLayout:
    """The linear layout that a map is, with its axes' names."""
    check_kind(layout, LayoutMap, "what becomes a linear layout")
    domain, codomain = layout.domain, layout.codomain
    check_known(layout)
    _check_powers(domain)
    _check_powers(codomain)
    origin = (0,) * domain.rank
    if layout.apply(origin) != (0,) * codomain.rank:
        raise ShapeError(
            f"the map sends 0 to {layout.apply(origin)}, and a linear layout sends it to 0",
            remedy="take the constant off first",
        )
    bases: list[tuple[str, tuple[Point, ...]]] = []
    for place, (axis, width) in enumerate(zip(domain.axes, bit_widths(domain), strict=True)):
        points = [(*origin[:place], 1 << bit, *origin[place + 1 :]) for bit in range(width)]
        bases.append((axis.name, tuple(_value(layout, point) for point in points)))
    sizes = codomain.shape({})
    names = [axis.name for axis in codomain.axes]
    found = LinearLayout(tuple(bases), tuple(zip(names, sizes, strict=True)))
    check_equal(to_map(found), layout, "linear over bits", budget)
    return found


def _vectors(given: Sequence[Sequence[int]]) -> tuple[Point, ...]:
    vectors = tuple_of(given, object, "the bases of an input")
    return tuple(whole_numbers(vector, "a basis") for vector in vectors)


def _value(layout: LayoutMap, point: Point) -> Point:
    value = layout.apply(point)
    if value is None or not layout.codomain.holds(value):
        raise ShapeError(
            f"the map sends {point} to {value}, outside {layout.codomain}",
            remedy="use a map defined everywhere and into its codomain",
        )
    return value


def _check_powers(space: Space) -> None:
    extents = space.extents
    if any(isinstance(n, str) or n < 1 or n & (n - 1) for n in extents):
        raise ShapeError(
            f"a linear layout has extents that are powers of two, and {space} has others",
            remedy="pad to powers of two, or keep the map as a layout map",
        )
    names = [axis.name for axis in space.axes]
    if len(set(names)) != len(names):
        raise ShapeError(
            f"two axes of {space} have one name", remedy="give every axis a name of its own"
        )
