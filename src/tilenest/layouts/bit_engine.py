"""Proofs about maps that are linear over single bits: exclusive or, masks, shifts.

In: one formula on a static box without constraints, and index sets. Out: answers by elimination,
exact for extents that are powers of two and, for most questions, for all others: a box is a
disjoint union of blocks in which the low bits are free, and each block is judged by itself. None
where a formula is not bit-linear, or where it may leave 64 bits and the question needs that it does
not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, product

from tilenest.errors import ShapeError
from tilenest.layouts.answers import Answer, proven, unknown
from tilenest.layouts.bit_form import BitForm, Packing, bit_expression, bit_form, packing_of
from tilenest.layouts.bit_matrix import BitMatrix, Elimination
from tilenest.layouts.formula import Formula
from tilenest.layouts.formula_algebra import Formulas
from tilenest.layouts.spaces import Constraint, IndexSet, Space
from tilenest.layouts.witnesses import (
    Point,
    at_rest,
    collision_at,
    different_at,
    meeting_at,
    missed_at,
    out_of_bounds_at,
    undefined_at,
)
from tilenest.records import record

ENGINE = "bits"
_WORD = 64
_MOST_BLOCKS = 256
# A block of a box in packed bits: fixed ones, and the places of the free ones.
Block = tuple[int, tuple[int, ...]]


@record
class BitMap:
    """A formula of linear forms, one a result."""

    extents: tuple[int, ...]
    packing: Packing
    forms: tuple[BitForm, ...]

    @property
    def is_whole(self) -> bool:
        """Whether every pattern of bits is a point."""
        widths = zip(self.extents, self.packing.widths, strict=True)
        return all(extent == 1 << width for extent, width in widths)

    @property
    def fits(self) -> bool:
        """Whether every result surely fits signed 64 bits."""
        limit = 1 << (_WORD - 1)
        return all(-limit <= low and high < limit for low, high in self.intervals)

    @property
    def intervals(self) -> list[tuple[int, int]]:
        return [form.interval() for form in self.forms]

    def joint(self) -> BitForm:
        """All results as one number, the first lowest, each as a pattern of 64 bits."""
        return _joined(self.forms, self.packing.size)

    def holds(self, bits: int) -> bool:
        point = self.packing.unpack(bits)
        return all(x < extent for x, extent in zip(point, self.extents, strict=True))

    def blocks(self) -> Iterator[Block]:
        """The box as disjoint blocks, those of the largest coordinates last."""
        axes = [
            list(_prefix_blocks(extent, start))
            for extent, start in zip(self.extents, self.packing.starts, strict=True)
        ]
        for parts in product(*axes):
            yield sum(base for base, _ in parts), tuple(p for _, free in parts for p in free)


def _prefix_blocks(extent: int, start: int) -> Iterator[Block]:
    """The numbers below an extent: one block for each of its bits."""
    base = 0
    for place in reversed(range(extent.bit_length())):
        if extent >> place & 1:
            yield base << start, tuple(range(start, start + place))
            base |= 1 << place


def _joined(forms: Sequence[BitForm], size: int) -> BitForm:
    total = BitForm(0, (0,) * size)
    for place, form in enumerate(forms):
        total ^= (form & ((1 << _WORD) - 1)).times(1 << _WORD * place)
    return total


@lru_cache(maxsize=512)
def bit_map(formula: Formula) -> BitMap | None:
    """A formula as a bit-linear map of a static box that is not empty, or None."""
    extents = formula.domain.space.extents
    known = tuple(extent for extent in extents if isinstance(extent, int))
    if len(known) < len(extents) or 0 in known or formula.domain.constraints:
        return None
    packing = packing_of(known)
    forms = [bit_form(result, packing) for result in formula.results]
    found = tuple(form for form in forms if form is not None)
    return BitMap(known, packing, found) if len(found) == len(forms) else None


def _only(formulas: Formulas) -> BitMap | None:
    return bit_map(formulas[0]) if len(formulas) == 1 else None


def _fitting(formulas: Formulas) -> BitMap | None:
    whole = _only(formulas)
    return whole if whole is not None and whole.fits else None


def is_total(formulas: Formulas) -> Answer | None:
    """Whether every result fits signed 64 bits."""
    found = _only(formulas)
    if found is None:
        return None
    limit = 1 << (_WORD - 1)
    for form in found.forms:
        inside = _stays(found, form, -limit, limit)
        if isinstance(inside, tuple):
            reason = "a result beyond 64 bits"
            return undefined_at(ENGINE, formulas, inside, at_rest(formulas), reason)
        if not inside:
            return unknown(ENGINE, "too many blocks to find the largest result")
    return proven(ENGINE, "the largest and smallest results fit 64 bits")


def is_bounded(formulas: Formulas) -> Answer | None:
    """Whether every value lies in the codomain."""
    found, shape = _fitting(formulas), _static(formulas[0].codomain)
    if found is None or shape is None:
        return None
    for form, extent in zip(found.forms, shape, strict=True):
        inside = _stays(found, form, 0, extent)
        if isinstance(inside, tuple):
            reason = "a value out of the codomain"
            return out_of_bounds_at(ENGINE, formulas, inside, at_rest(formulas), reason)
        if not inside:
            return unknown(ENGINE, "too many blocks to find the largest result")
    return proven(ENGINE, "the largest and smallest results are in the codomain")


def is_injective(formulas: Formulas) -> Answer | None:
    """Whether the columns are independent, which decides it for ragged boxes too: if they are not,
    some two points inside the box differ by what sums to 0."""
    found = _fitting(formulas)
    if found is None:
        return None
    kernel = Elimination(found.joint().columns).kernel
    if not kernel:
        return proven(ENGINE, f"{found.packing.size} independent columns")
    pair = _pair_apart(found, kernel[0])
    return collision_at(ENGINE, formulas, pair, at_rest(formulas), "columns that sum to 0")


def is_surjective(formulas: Formulas) -> Answer | None:
    """Whether every point of the codomain is a value."""
    return covers(formulas, IndexSet(formulas[0].codomain))


def covers(formulas: Formulas, wanted: IndexSet) -> Answer | None:
    """Whether every place of a static box without constraints is a value."""
    found, shape = _fitting(formulas), _static(wanted.space)
    if found is None or shape is None or wanted.constraints or 0 in shape:
        return None
    joint, places = found.joint(), packing_of(shape)
    elimination = Elimination(joint.columns)
    for place in (0, *(1 << bit for bit in range(places.size))):
        # The values of all bit patterns are an affine space: 0 and the single bits tell it.
        target = places.unpack(place)
        if elimination.solve(_pattern(target) ^ joint.constant) is None:
            return missed_at(ENGINE, wanted, target, at_rest(formulas), "a place outside the image")
    if found.is_whole:
        return proven(ENGINE, "the image holds 0 and every single bit")
    if elimination.kernel:
        return None
    return _covers_from_inside(formulas, found, wanted, places)


def _covers_from_inside(
    formulas: Formulas, found: BitMap, wanted: IndexSet, places: Packing
) -> Answer | None:
    """Whether the only points that could go to the places are inside a ragged box."""
    shape = _static(wanted.space) or ()
    back = BitMap(shape, places, _inverse_forms(found, places))
    for form, extent in zip(back.forms, found.extents, strict=True):
        inside = _stays(back, form, 0, extent)
        if isinstance(inside, tuple):
            reason = "a place whose only source is outside"
            return missed_at(ENGINE, wanted, inside, at_rest(formulas), reason)
        if not inside:
            return unknown(ENGINE, "too many blocks to find the largest source")
    return proven(ENGINE, "every place has its source inside the box")


def equal(f: Formulas, g: Formulas) -> Answer | None:
    """Whether two maps of one space have the same forms."""
    left, right = _fitting(f), _fitting(g)
    if left is None or right is None or left.extents != right.extents:
        return None
    gap = left.joint() ^ right.joint()
    if not gap.support:
        return proven(ENGINE, "the same constants and columns")
    bits = 0 if gap.constant else next(1 << at for at, column in enumerate(gap.columns) if column)
    point = left.packing.unpack(bits)
    return different_at(ENGINE, f, g, point, at_rest(f, g), "different bits")


def are_disjoint(f: Formulas, g: Formulas) -> Answer | None:
    """Whether no value of one map is a value of the other."""
    left, right = _fitting(f), _fitting(g)
    if left is None or right is None or len(left.forms) != len(right.forms):
        return None
    a, b = left.joint(), right.joint()
    blocks = islice(product(left.blocks(), right.blocks()), _MOST_BLOCKS + 1)
    whole = tuple(range(len(a.columns))), tuple(range(len(b.columns)))
    if _meeting(a, b, (0, whole[0]), (0, whole[1])) is None:
        return proven(ENGINE, "no bits reach a common value")
    for count, (first, second) in enumerate(blocks):
        if count == _MOST_BLOCKS:
            return unknown(ENGINE, "too many blocks to compare")
        met = _meeting(a, b, first, second)
        if met is not None:
            pair = left.packing.unpack(met[0]), right.packing.unpack(met[1])
            return meeting_at(ENGINE, f, g, pair, at_rest(f, g), "two points that meet")
    return proven(ENGINE, "no two blocks reach a common value")


def image(formulas: Formulas) -> tuple[Answer, tuple[IndexSet, ...]] | None:
    """The points of the codomain that are values: those that satisfy the parity checks, and whose
    source is in the box."""
    found, shape = _fitting(formulas), _static(formulas[0].codomain)
    if found is None or shape is None:
        return None
    is_single = not Elimination(found.joint().columns).kernel
    if not is_single and not found.is_whole:
        return None
    try:
        constraints = _parity_checks(found, packing_of(shape))
        if not found.is_whole:
            constraints += _source_checks(found, packing_of(shape))
    except ShapeError as error:
        return unknown(ENGINE, str(error)), ()
    reason = f"{len(constraints)} checks"
    return proven(ENGINE, reason), (IndexSet(formulas[0].codomain, constraints),)


def inverse(formulas: Formulas) -> tuple[Answer, Formulas] | None:
    """The map from values in the codomain to their points; the disproof where it has none."""
    answer, ranges = is_injective(formulas), image(formulas)
    if answer is None or ranges is None:
        return None
    found = _only(formulas)
    if not answer.is_proven or not ranges[0].is_proven or found is None:
        return (answer if not answer.is_proven else ranges[0]), ()
    places = packing_of(_static(formulas[0].codomain) or ())
    results = tuple(bit_expression(form, places) for form in _inverse_forms(found, places))
    return answer, (Formula(ranges[1][0], formulas[0].domain.space, results),)


def fibre(
    formulas: Formulas, place: Sequence[int], most: int
) -> tuple[Answer, tuple[Point, ...]] | None:
    """The points that go to a place, in order: one solution and what may be added to it. Where more
    than `most` bit patterns go there, that is all that is said."""
    found = _fitting(formulas)
    if found is None:
        return None
    joint = found.joint()
    elimination = Elimination(joint.columns)
    start = elimination.solve(_pattern(place) ^ joint.constant)
    if start is None:
        return proven(ENGINE, "no bits go there"), ()
    if 1 << len(elimination.kernel) > most:
        return unknown(ENGINE, f"over {most} bit patterns go there"), ()
    patterns = [start]
    for difference in elimination.kernel:
        patterns += [pattern ^ difference for pattern in patterns]
    points = sorted(found.packing.unpack(pattern) for pattern in patterns if found.holds(pattern))
    return proven(ENGINE, "one solution and the kernel"), tuple(points)


def _stays(found: BitMap, form: BitForm, low: int, end: int) -> bool | tuple[int, ...]:
    """Whether a form lies in [low, end) over the box: True, a point where it does not, or False
    for not known."""
    smallest, largest = form.interval()
    if low <= smallest and largest < end:
        return True
    for count, (base, free) in enumerate(found.blocks()):
        if count == _MOST_BLOCKS:
            return False
        for is_largest in (True, False):
            value, bits = form.extreme(base, free, is_largest)
            if not low <= value < end:
                return found.packing.unpack(bits)
    return True


def _pair_apart(found: BitMap, difference: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two points of the box that differ by these bits: whichever extent, a coordinate may have its
    highest bit alone, and any of the lower ones."""
    first, second = [], []
    for bits, width in zip(found.packing.unpack(difference), found.packing.widths, strict=True):
        top = 1 << (width - 1) if width else 0
        first.append(top if bits & top else bits)
        second.append(bits & ~top if bits & top else 0)
    return tuple(first), tuple(second)


def _meeting(a: BitForm, b: BitForm, first: Block, second: Block) -> tuple[int, int] | None:
    """Bits of two blocks at which two forms are equal."""
    columns = [a.columns[p] for p in first[1]] + [b.columns[p] for p in second[1]]
    chosen = Elimination(columns).solve(a.at(first[0]) ^ b.at(second[0]))
    if chosen is None:
        return None
    left = sum(1 << place for at, place in enumerate(first[1]) if chosen >> at & 1)
    rest = chosen >> len(first[1])
    right = sum(1 << place for at, place in enumerate(second[1]) if rest >> at & 1)
    return first[0] ^ left, second[0] ^ right


def _pulled_back(matrix: BitMatrix, joint: BitForm, places: Packing) -> BitForm:
    """`matrix` applied to a place's pattern without the map's constant, over the place's bits."""
    bits = range(places.size)
    columns = tuple(matrix.apply(_pattern(places.unpack(1 << bit))) for bit in bits)
    return BitForm(matrix.apply(joint.constant), columns)


def _inverse_forms(found: BitMap, places: Packing) -> tuple[BitForm, ...]:
    """Each coordinate of the source of a place, which is in the image of independent columns."""
    joint = found.joint()
    solver, _ = BitMatrix(_WORD * len(found.forms), joint.columns).solver()
    source = _pulled_back(solver, joint, places)
    fields = zip(found.packing.starts, found.packing.widths, strict=True)
    return tuple(source.shifted_right(start) & ((1 << width) - 1) for start, width in fields)


def _parity_checks(found: BitMap, places: Packing) -> tuple[Constraint, ...]:
    """What is 0 exactly at the values of all bit patterns."""
    joint = found.joint()
    _, residual = BitMatrix(_WORD * len(found.forms), joint.columns).solver()
    rest = _pulled_back(residual, joint, places)
    words = (rest.shifted_right(_WORD * at) & ((1 << _WORD) - 1) for at in range(len(found.forms)))
    return tuple(
        Constraint(bit_expression(_signed(word), places), is_equality=True)
        for word in words
        if word.support
    )


def _signed(word: BitForm) -> BitForm:
    """A pattern of 64 bits with its constant as a signed number: 0 at the same points."""
    is_negative = word.constant >> (_WORD - 1)
    return BitForm(word.constant - (is_negative << _WORD), word.columns)


def _source_checks(found: BitMap, places: Packing) -> tuple[Constraint, ...]:
    """What is not negative exactly where the source lies in a ragged box."""
    forms = zip(_inverse_forms(found, places), found.extents, strict=True)
    return tuple(
        Constraint(extent - 1 - bit_expression(form, places))
        for form, extent in forms
        if extent & (extent - 1)
    )


def _pattern(place: Sequence[int]) -> int:
    """A place as one number, as `BitMap.joint` has it."""
    return sum((x & ((1 << _WORD) - 1)) << _WORD * at for at, x in enumerate(place))


def _static(space: Space) -> tuple[int, ...] | None:
    known = tuple(extent for extent in space.extents if isinstance(extent, int))
    return known if len(known) == space.rank else None
