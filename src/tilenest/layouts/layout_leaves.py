"""Layout maps with numbers of their own: strides, offsets, bits, formulas, tables, functions.

In: spaces and numbers. Out: frozen maps (`layout_map.LayoutMap`). Where a formula says the map the
engines can prove things about it; a table and a registered transform are only known by value.
`strided`, `row_major` and `of_affine_map` make the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from math import prod

from tilenest.errors import ShapeError
from tilenest.layouts.affine_map import AffineMap
from tilenest.layouts.formula_algebra import Formulas, merged_symbols, plain_formula
from tilenest.layouts.index_bits import bit_and, shift_left, shift_right, xor
from tilenest.layouts.index_expr import Const, DimRef, IndexExpr, Sym
from tilenest.layouts.kinds import (
    MOST_ITEMS,
    check_kind,
    tuple_of,
    whole_number,
    whole_numbers,
)
from tilenest.layouts.layout_map import LayoutMap, Point, Values, check_spaces, tuple_text
from tilenest.layouts.spaces import Space, values_of
from tilenest.records import record

_MOST_BITS = 256
_set = object.__setattr__


@record
class MixedRadix(LayoutMap):
    """Linear results: coordinate r is the sum of `strides[r][i]` times coordinate i."""

    domain: Space
    codomain: Space
    strides: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        rows = tuple_of(self.strides, object, "the strides")
        _set(self, "strides", tuple(whole_numbers(row, "a row of strides") for row in rows))
        _check_rank(self, len(self.strides))
        for row in self.strides:
            if len(row) != self.domain.rank:
                raise ShapeError(
                    f"the strides {tuple_text(row)} do not fit the axes of {self.domain}",
                    remedy="give one stride an axis",
                )

    def value(self, point: Point, _values: Values) -> Point:
        return tuple(
            sum(stride * x for stride, x in zip(row, point, strict=True)) for row in self.strides
        )

    def build_formulas(self) -> Formulas | None:
        return _one_formula(self, lambda: [_weighted(row) for row in self.strides])

    def __str__(self) -> str:
        rows = ", ".join(map(tuple_text, self.strides))
        return f"strides({self.domain} -> {self.codomain}, ({rows}))"


@record
class Translate(LayoutMap):
    """Every coordinate moved by an offset of its own."""

    domain: Space
    codomain: Space
    offset: tuple[int, ...]

    def __post_init__(self) -> None:
        _set(self, "offset", whole_numbers(self.offset, "the offset"))
        _check_rank(self, len(self.offset))
        _check_rank(self, self.domain.rank)

    def value(self, point: Point, _values: Values) -> Point:
        return tuple(x + offset for x, offset in zip(point, self.offset, strict=True))

    def build_formulas(self) -> Formulas | None:
        return _one_formula(
            self, lambda: [DimRef(i) + offset for i, offset in enumerate(self.offset)]
        )

    def __str__(self) -> str:
        return f"translate({self.domain} -> {self.codomain}, {tuple_text(self.offset)})"


@record
class BitLinear(LayoutMap):
    """Exclusive ors of bits: `constant ^ bases[k] ^ ...` for every bit k of the packed coordinates.

    Packing puts coordinates side by side, the last axis in the lowest bits, each in as many bits as
    its last coordinate needs (`bit_widths`). The result is unpacked the same way. An extent that is
    no power of two makes a box that is a prefix of the packed numbers' box along its axis.
    """

    domain: Space
    codomain: Space
    bases: tuple[int, ...]
    constant: int = 0

    def __post_init__(self) -> None:
        check_spaces(self)
        _set(self, "bases", whole_numbers(self.bases, "the bases"))
        _set(self, "constant", whole_number(self.constant, "the constant"))
        n_inputs, n_outputs = (sum(bit_widths(s)) for s in (self.domain, self.codomain))
        if len(self.bases) != n_inputs:
            raise ShapeError(
                f"{self.domain} has {n_inputs} bits and there are {len(self.bases)} bases",
                remedy="give one basis a bit, the lowest bit of the last axis first",
            )
        if any(number < 0 or number >> n_outputs for number in (*self.bases, self.constant)):
            raise ShapeError(
                f"a basis or the constant does not fit the {n_outputs} bits of {self.codomain}",
                remedy="use numbers of as many bits as the codomain has",
            )

    def value(self, point: Point, _values: Values) -> Point:
        bits = pack_bits(self.domain, point)
        result = self.constant
        for place, basis in enumerate(self.bases):
            if bits >> place & 1:
                result ^= basis
        return unpack_bits(self.codomain, result)

    def build_formulas(self) -> Formulas | None:
        return _one_formula(self, self._results)

    def _results(self) -> list[IndexExpr]:
        """Each result as an exclusive or of masked, shifted coordinates."""
        inputs = _places(self.domain)
        results: list[IndexExpr] = []
        for start, width in _places(self.codomain):
            field = (1 << width) - 1
            result: IndexExpr = Const(self.constant >> start & field)
            for axis, (place, count) in enumerate(inputs):
                bases = [b >> start & field for b in self.bases[place : place + count]]
                for part in _diagonals(DimRef(axis), bases):
                    result = xor(result, part)
            results.append(result)
        return results

    def __str__(self) -> str:
        return f"bits({self.domain} -> {self.codomain}, {tuple_text(self.bases)}, {self.constant})"


@record
class Recast(LayoutMap):
    """The point at the same place in the row-major order of another space of equal size."""

    domain: Space
    codomain: Space

    def __post_init__(self) -> None:
        check_spaces(self)
        sizes = [_size_factors(space.extents) for space in (self.domain, self.codomain)]
        if sizes[0] != sizes[1] and not self.domain.size == self.codomain.size == 0:
            raise ShapeError(
                f"{self.domain} and {self.codomain} have no equal number of points",
                remedy="recast between spaces whose extents have equal products",
            )

    def value(self, point: Point, values: Values) -> Point:
        place = 0
        for x, extent in zip(point, self.domain.shape(values), strict=True):
            place = place * extent + x
        found: list[int] = []
        for extent in reversed(self.codomain.shape(values)):
            place, x = divmod(place, extent)
            found.append(x)
        return tuple(reversed(found))

    def build_formulas(self) -> Formulas | None:
        return _one_formula(self, self._results)

    def _results(self) -> list[IndexExpr]:
        """Group by group of axes with equal products, so that what is known stays readable."""
        if self.domain.size == 0:
            return [Const(0)] * self.codomain.rank
        symbols = self.symbols
        results: list[IndexExpr] = []
        for inputs, outputs in _recast_groups(self.domain.extents, self.codomain.extents):
            place: IndexExpr = Const(0)
            for axis in inputs:
                place = place * _factor(self.domain.extents[axis], symbols) + DimRef(axis)
            parts: list[IndexExpr] = []
            for axis in reversed(outputs):
                extent = _factor(self.codomain.extents[axis], symbols)
                is_first = axis == outputs[0]
                parts.append(place if is_first else place % extent)
                place = place if is_first else place // extent
            results += reversed(parts)
        return results

    def __str__(self) -> str:
        return f"recast({self.domain} -> {self.codomain})"


@record
class Expressions(LayoutMap):
    """One index expression a result; `Sym(i)` is the i-th of all names, `extra` ones included."""

    domain: Space
    codomain: Space
    results: tuple[IndexExpr, ...]
    extra: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _set(self, "results", tuple_of(self.results, IndexExpr, "the results"))
        _set(self, "extra", tuple_of(self.extra, str, "the names of a map"))
        _check_rank(self, len(self.results))
        n_symbols = len(self.symbols)
        for result in self.results:
            if result.dim_mask >> self.domain.rank or result.sym_mask >> n_symbols:
                raise ShapeError(
                    f"{result} uses a coordinate or symbol that {self.domain} does not have",
                    remedy="number coordinates by axis, and symbols by sorted name",
                )

    @property
    def symbols(self) -> tuple[str, ...]:
        return merged_symbols(self.domain.symbols, self.codomain.symbols, self.extra)

    @property
    def n_nodes(self) -> int:
        return sum(result.size for result in self.results)

    def value(self, point: Point, values: Values) -> Point:
        uses_symbols = any(result.sym_mask for result in self.results)
        symbols = values_of(self.symbols, values) if uses_symbols else ()
        return tuple(result.evaluate(point, symbols) for result in self.results)

    def build_formulas(self) -> Formulas | None:
        return _one_formula(self, lambda: self.results, self.extra)

    def __str__(self) -> str:
        named = f" with {' '.join(self.extra)}" if self.extra else ""
        results = tuple_text(self.results)
        return f"expressions({self.domain} -> {self.codomain}{named}, {results})"


@record
class FiniteTable(LayoutMap):
    """Where each point goes, in row-major order; None where the map is undefined."""

    domain: Space
    codomain: Space
    entries: tuple[Point | None, ...]

    def __post_init__(self) -> None:
        check_spaces(self)
        entries = tuple_of(self.entries, object, "the entries")
        listed = (entry if entry is None else whole_numbers(entry, "an entry") for entry in entries)
        _set(self, "entries", tuple(listed))
        size = self.domain.size
        if not self.domain.is_static or size is None or size > MOST_ITEMS:
            raise ShapeError(
                f"a table cannot list the points of {self.domain}",
                remedy=f"use known extents with at most {MOST_ITEMS} points, or a formula",
            )
        if len(self.entries) != size:
            raise ShapeError(
                f"a table of {len(self.entries)} entries does not fit {self.domain}",
                remedy=f"give {size} entries, None where the map is undefined",
            )
        rank = self.codomain.rank
        for entry in self.entries:
            if entry is not None and len(entry) != rank:
                _check_rank(self, len(entry))

    def value(self, point: Point, values: Values) -> Point | None:
        place = 0
        for x, extent in zip(point, self.domain.shape(values), strict=True):
            place = place * extent + x
        return self.entries[place]

    def formulas(self) -> None:
        return None

    def __str__(self) -> str:
        entries = ["none" if entry is None else tuple_text(entry) for entry in self.entries]
        return f"table({self.domain} -> {self.codomain}, {tuple_text(entries)})"


@record
class Registered:
    """A bijection known by name: two functions, each the other's inverse, on every point."""

    name: str
    forward: Callable[[Point], Point]
    backward: Callable[[Point], Point]


@record
class Transform(LayoutMap):
    """A registered bijection between two spaces, or its inverse."""

    domain: Space
    codomain: Space
    registered: Registered
    is_inverse: bool = False

    def value(self, point: Point, _values: Values) -> Point:
        rule = self.registered
        return rule.backward(point) if self.is_inverse else rule.forward(point)

    def formulas(self) -> None:
        return None

    def __str__(self) -> str:
        kind = "inverse_transform" if self.is_inverse else "transform"
        return f"{kind}({self.domain} -> {self.codomain}, {self.registered.name})"


def strided(domain: Space, strides: Sequence[int], codomain: Space | None = None) -> MixedRadix:
    """One result with these strides, by default into the least box from 0 that holds it."""
    check_kind(domain, Space, "the domain of a map")
    steps = whole_numbers(strides, "the strides")
    if codomain is None:
        extents = domain.shape({})
        pairs = zip(steps, extents, strict=len(steps) == len(extents))
        last = sum(max(s, 0) * (n - 1) for s, n in pairs)
        codomain = Space.box(0 if 0 in extents else last + 1, prefix="y")
    return MixedRadix(domain, codomain, (steps,))


def row_major(domain: Space) -> MixedRadix:
    """The place of each point in row-major order; every extent is known."""
    check_kind(domain, Space, "the domain of a map")
    extents = domain.shape({})
    reversed_strides = accumulate(reversed(extents[1:]), lambda a, b: a * b, initial=1)
    strides = tuple(reversed(list(reversed_strides)))[-len(extents) :] if extents else ()
    return MixedRadix(domain, Space.box(prod(extents), prefix="y"), (strides,))


def of_affine_map(
    access: AffineMap, domain: Space, codomain: Space, symbols: Sequence[str] = ()
) -> Expressions:
    """The map that an access of the IR does between two spaces; its symbol i is `symbols[i]`."""
    check_kind(access, AffineMap, "an access")
    check_kind(domain, Space, "the domain of a map")
    check_kind(codomain, Space, "the codomain of a map")
    symbols = tuple_of(symbols, str, "the names of the symbols")
    if len(symbols) != access.n_syms:
        raise ShapeError(
            f"{access} has {access.n_syms} symbols and {len(symbols)} names",
            remedy="name each symbol of the access map, in order",
        )
    extra = tuple(sorted(set(symbols).difference(domain.symbols, codomain.symbols)))
    names = merged_symbols(domain.symbols, codomain.symbols, extra)
    dims = [DimRef(place) for place in range(access.n_dims)]
    places = [Sym(names.index(name)) for name in symbols]
    results = tuple(result.substitute(dims, places) for result in access.results)
    return Expressions(domain, codomain, results, extra)


def bit_widths(space: Space) -> tuple[int, ...]:
    """How many bits each coordinate of a space with known extents takes when packed."""
    check_kind(space, Space, "a space")
    if not space.is_static:
        raise ShapeError(
            f"{space} has no number of bits", remedy="use extents known at compile time"
        )
    widths = tuple(max(extent - 1, 0).bit_length() for extent in space.shape({}))
    if sum(widths) > _MOST_BITS:
        raise ShapeError(
            f"{space} has {sum(widths)} bits", remedy=f"use a space of at most {_MOST_BITS} bits"
        )
    return widths


def pack_bits(space: Space, point: Sequence[int]) -> int:
    """Coordinates side by side in one number, the last in the lowest bits."""
    bits, widths, place = 0, bit_widths(space), whole_numbers(point, "a point")
    if len(place) != len(widths):
        raise ShapeError(
            f"{tuple_text(place)} is no point of {space}", remedy="give one coordinate an axis"
        )
    for x, width in zip(place, widths, strict=True):
        bits = bits << width | x
    return bits


def unpack_bits(space: Space, bits: int) -> Point:
    """The coordinates that a number packs."""
    bits = whole_number(bits, "what is unpacked")
    return tuple(bits >> start & ((1 << width) - 1) for start, width in _places(space))


def _places(space: Space) -> list[tuple[int, int]]:
    """For each axis its lowest bit among the packed bits, and its width."""
    widths = bit_widths(space)
    return [(sum(widths[axis + 1 :]), width) for axis, width in enumerate(widths)]


def _diagonals(coordinate: IndexExpr, bases: Sequence[int]) -> Iterable[IndexExpr]:
    """The bits of a coordinate that move equally far, masked and moved together."""
    masks: dict[int, int] = {}
    for place, basis in enumerate(bases):
        for to in range(basis.bit_length()):
            if basis >> to & 1:
                masks[to - place] = masks.get(to - place, 0) | 1 << place
    for distance, mask in masks.items():
        chosen = bit_and(coordinate, mask)
        yield shift_left(chosen, distance) if distance >= 0 else shift_right(chosen, -distance)


def _one_formula(
    layout: LayoutMap, results: Callable[[], Sequence[IndexExpr]], extra: tuple[str, ...] = ()
) -> Formulas | None:
    """The formula of a map defined everywhere; None when a number in it leaves 64 bits."""
    try:
        return (plain_formula(layout.domain, layout.codomain, results(), extra),)
    except ShapeError:
        return None


def _weighted(strides: Sequence[int]) -> IndexExpr:
    total: IndexExpr = Const(0)
    for axis, stride in enumerate(strides):
        total += DimRef(axis) * stride
    return total


def _check_rank(layout: LayoutMap, n_results: int) -> None:
    check_spaces(layout)
    if n_results != layout.codomain.rank:
        raise ShapeError(
            f"{n_results} results do not fit {layout.codomain}",
            remedy="give one result an axis of the codomain",
        )


def _size_factors(extents: Sequence[int | str]) -> tuple[int, list[str]]:
    names = sorted(extent for extent in extents if isinstance(extent, str))
    return prod(extent for extent in extents if isinstance(extent, int)), names


def _recast_groups(
    before: Sequence[int | str], after: Sequence[int | str]
) -> Iterable[tuple[range, range]]:
    """The shortest runs of axes, from the left, whose extents have equal products."""
    start = end = left = right = 0
    while left < len(before) or right < len(after):
        # Take from the shorter side until both hold the same factors.
        one, other = _size_factors(before[start:left]), _size_factors(after[end:right])
        is_behind = (len(one[1]), one[0]) <= (len(other[1]), other[0])
        if left < len(before) and (is_behind or right == len(after)):
            left += 1
        else:
            right += 1
        if _size_factors(before[start:left]) == _size_factors(after[end:right]):
            yield range(start, left), range(end, right)
            start, end = left, right


def _factor(extent: int | str, symbols: tuple[str, ...]) -> IndexExpr:
    return Const(extent) if isinstance(extent, int) else Sym(symbols.index(extent))
