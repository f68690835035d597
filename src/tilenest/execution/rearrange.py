"""The ways to rearrange levels: split, fuse, unite, permute, reshape, coalesce, unit levels.

In: an execution structure and what to do with its levels. Out: a remap, which names the step it
was made by. A step refuses what is no rearrangement (a level that is not there, factors that lose
instances, levels of two kinds in one); whether the observers of a program allow it is a question
for `check`. A level that is not there is a `VerifyError`, what is none or no number an
`ArgumentTypeError`; what else a step refuses, a `RemapError`, it says itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod

from tilenest.errors import RemapError
from tilenest.execution.levels import Definition, ExecLevel, ExecStructure
from tilenest.execution.remap import (
    ExecRemap,
    compose,
    extent_in,
    identity,
    names_of,
    remap_of,
)
from tilenest.layouts import (
    Const,
    Constraint,
    DimRef,
    IndexExpr,
    Sym,
    check_kind,
    tuple_of,
    whole_number,
)
from tilenest.records import replace

_HALVES = (".0", ".1")
_SIDES = ("_outer", "_inner")
_LONGEST = 64
"""Of a name that is made of names; one that were longer is cut, so that no chain of steps makes
names grow without end."""


def split(structure: ExecStructure, level: str, factor: int) -> ExecRemap:
    """A level as blocks of `factor` instances; where they do not come out even, a predicate. Raises
    a `RemapError` for a factor below 1."""
    check_kind(structure, ExecStructure, "what is rearranged")
    place, factor = structure.position(level), whole_number(factor, "the factor of a split")
    if factor < 1:
        raise RemapError(
            f"level {level!r} cannot be split into blocks of {factor}",
            remedy="use a factor of at least 1",
        )
    whole = structure.levels[place]
    blocks, definitions = _blocks(structure, whole.extent, factor)
    pair = [
        replace(whole, identity=identity, name=name, extent=extent)
        for identity, name, extent in zip(
            _parts_of(level, _HALVES, _identities(structure)),
            _parts_of(whole.name, _SIDES, _names(structure)),
            (blocks, factor),
            strict=True,
        )
    ]
    new = _with_levels(structure, _spliced(structure.levels, place, 1, pair), definitions)
    block = DimRef(place) * factor + DimRef(place + 1)
    results = [
        block if old == place else DimRef(old + (old > place)) for old in range(structure.depth)
    ]
    extent = whole.extent
    is_even = factor == 1 or (isinstance(extent, int) and extent % factor == 0)
    last = extent_in(extent, names_of(structure, new)) - 1
    predicates = () if is_even else (Constraint(last - block),)
    step = f"split {level} by {factor} into {pair[0].identity}, {pair[1].identity}"
    return remap_of(structure, new, results, predicates, [step])


def fuse(structure: ExecStructure, *levels: str) -> ExecRemap:
    """Adjacent levels as one, the last of them fastest; their nests become one as well. The halves
    of a split become the level that they are of. Raises a `RemapError` for levels that do not
    follow one another, or differ in kind, policy or scope."""
    place, run = _run(structure, levels)
    if len({level.family for level in run}) > 1:
        raise RemapError(
            f"levels of different kinds cannot be fused: {', '.join(map(str, run))}",
            remedy="fuse levels of one kind, policy and scope",
        )
    extent, definitions = _product(structure, [level.extent for level in run])
    fused = replace(
        run[0],
        identity=_whole_of(levels, _HALVES, "+", _identities(structure, run)),
        name=_whole_of([level.name for level in run], _SIDES, "_", _names(structure, run)),
        extent=extent,
    )
    joined = {level.nest for level in run}
    others = [
        replace(level, nest=fused.nest) if level.nest in joined and level.nest else level
        for level in structure.levels
    ]
    new = _with_levels(structure, _spliced(others, place, len(run), [fused]), definitions)
    names = names_of(structure, new)
    digits = _digits(DimRef(place), [extent_in(level.extent, names) for level in run])
    step = f"fuse {', '.join(levels)} into {fused.identity}"
    return remap_of(structure, new, _replaced(structure, place, digits, 1), (), [step])


def unite(structure: ExecStructure, *levels: str) -> ExecRemap:
    """Adjacent levels as axes of one nest; each of them stays the level it is. Raises a
    `RemapError` as `fuse` does."""
    _, run = _run(structure, levels)
    if len({level.family for level in run}) > 1:
        raise RemapError(
            f"levels of different kinds cannot be united: {', '.join(map(str, run))}",
            remedy="unite levels of one kind, policy and scope",
        )
    nest = run[0].nest or run[0].identity
    joined = {level.nest for level in run if level.nest} | {nest}
    new = _with_levels(
        structure,
        [
            replace(level, nest=nest) if level in run or level.nest in joined else level
            for level in structure.levels
        ],
    )
    results = map(DimRef, range(structure.depth))
    return remap_of(structure, new, results, (), [f"unite {', '.join(levels)}"])


def permute(structure: ExecStructure, order: Sequence[str]) -> ExecRemap:
    """The same levels in another order, outermost first. Raises a `RemapError` where not every
    level is named once."""
    check_kind(structure, ExecStructure, "what is rearranged")
    order = tuple_of(order, str, "the order of levels")
    places = [structure.position(level) for level in order]
    if sorted(places) != list(range(structure.depth)):
        raise RemapError(
            f"{', '.join(order)} is no order of the levels "
            f"{', '.join(level.identity for level in structure.levels)}",
            remedy="name every level once",
        )
    new = _with_levels(structure, [structure.levels[place] for place in places])
    results = [DimRef(places.index(old)) for old in range(structure.depth)]
    return remap_of(structure, new, results, (), [f"permute to {', '.join(order)}"])


def reshape(structure: ExecStructure, levels: Sequence[str], extents: Sequence[int]) -> ExecRemap:
    """Adjacent levels of one nest as levels of other extents, in the same row-major order. Raises a
    `RemapError` for levels that do not follow one another or are of several nests, for extents
    known at run time only, and for new ones without room for every instance."""
    extents = tuple(
        whole_number(extent, "an extent") for extent in tuple_of(extents, object, "extents")
    )
    place, run = _run(structure, levels)
    sizes = [level.extent for level in run if isinstance(level.extent, int)]
    if len(sizes) < len(run):
        raise RemapError(
            "only levels of known extents can be reshaped", remedy="use split and fuse instead"
        )
    if len({(level.family, level.nest) for level in run}) > 1:
        raise RemapError(
            f"levels of different nests cannot be reshaped: {', '.join(map(str, run))}",
            remedy="reshape levels of one nest, or fuse them first",
        )
    if prod(extents) < prod(sizes) or min(extents, default=1) < 0:
        raise RemapError(
            f"{prod(sizes)} instances do not fit the extents {tuple(extents)}",
            remedy="use extents whose product is at least that",
        )
    ends = [str(axis) for axis in range(len(extents))]
    identities = _parts_of("+".join(levels), [f".{end}" for end in ends], _identities(structure))
    whole = "_".join(level.name for level in run)
    names = _parts_of(whole, [f"_{end}" for end in ends], _names(structure, run))
    shaped = [
        replace(run[0], identity=identity, name=name, extent=extent)
        for identity, name, extent in zip(identities, names, extents, strict=True)
    ]
    new = _with_levels(structure, _spliced(structure.levels, place, len(run), shaped))
    linear: IndexExpr = Const(0)
    for axis, extent in enumerate(extents):
        linear = linear * extent + DimRef(place + axis)
    digits = _digits(linear, [Const(size) for size in sizes])
    results = _replaced(structure, place, digits, len(extents))
    is_even = prod(extents) == prod(sizes)
    predicates = () if is_even else (Constraint(Const(prod(sizes) - 1) - linear),)
    step = f"reshape {', '.join(levels)} to {', '.join(map(str, shaped))}"
    return remap_of(structure, new, results, predicates, [step])


def insert_unit(structure: ExecStructure, depth: int, level: ExecLevel) -> ExecRemap:
    """A further level of extent 1, above the level at `depth`. Raises a `RemapError` for another
    extent or depth, and for an identity that is taken."""
    check_kind(structure, ExecStructure, "what is rearranged")
    check_kind(level, ExecLevel, "the level put in")
    depth = whole_number(depth, "a depth")
    if level.extent != 1 or not 0 <= depth <= structure.depth:
        raise RemapError(
            f"level {level} cannot be inserted at depth {depth}",
            remedy=f"use extent 1 and a depth from 0 to {structure.depth}",
        )
    taken = [other.identity for other in structure.levels]
    if level.identity in taken:
        raise RemapError(
            f"a level {level.identity!r} is there already",
            remedy=f"give the new level a name other than {', '.join(taken)}",
        )
    new = _with_levels(structure, _spliced(structure.levels, depth, 0, [level]))
    results = [DimRef(old + (old >= depth)) for old in range(structure.depth)]
    return remap_of(structure, new, results, (), [f"insert {level.identity}"])


def remove_unit(structure: ExecStructure, level: str) -> ExecRemap:
    """The levels without one of extent 1. Raises a `RemapError` for a level of another extent."""
    check_kind(structure, ExecStructure, "what is rearranged")
    place = structure.position(level)
    if structure.levels[place].extent != 1:
        raise RemapError(
            f"level {structure.levels[place]} cannot be removed",
            remedy="remove only levels of extent 1; fuse the others",
        )
    new = _with_levels(structure, _spliced(structure.levels, place, 1, []))
    results = _replaced(structure, place, [Const(0)], 0)
    return remap_of(structure, new, results, (), [f"remove {level}"])


def coalesce(structure: ExecStructure) -> ExecRemap:
    """No level of extent 1, and the levels of a nest as one. Raises nothing but for what is no
    structure."""
    remap = identity(structure)
    for level in structure.levels:
        if level.extent == 1:
            remap = compose(remap, remove_unit(remap.new, level.identity))
    runs = groupby(remap.new.levels, key=lambda level: (level.nest, level.family))
    for (nest, _), run in [(key, list(levels)) for key, levels in runs]:
        if nest and len(run) > 1:
            remap = compose(remap, fuse(remap.new, *(level.identity for level in run)))
    return remap


def _run(structure: ExecStructure, levels: Sequence[str]) -> tuple[int, tuple[ExecLevel, ...]]:
    """Where adjacent levels begin, and they."""
    check_kind(structure, ExecStructure, "what is rearranged")
    levels = tuple_of(levels, str, "the levels")
    places = [structure.position(level) for level in levels]
    if not places:
        raise RemapError(
            "no level is named",
            remedy="name adjacent levels, outermost first, and at least two to join them",
        )
    if places != list(range(places[0], places[0] + len(places))):
        raise RemapError(
            f"the levels {', '.join(levels)} do not follow one another",
            remedy="name adjacent levels, outermost first; permute them first where that is legal",
        )
    return places[0], structure.levels[places[0] : places[0] + len(places)]


def _digits(linear: IndexExpr, extents: Sequence[IndexExpr]) -> list[IndexExpr]:
    """The coordinates of a row-major position."""
    digits: list[IndexExpr] = []
    for extent in reversed(extents[1:]):
        digits.insert(0, linear % extent)
        linear = linear // extent
    return [linear, *digits]


def _replaced(
    structure: ExecStructure, place: int, digits: Sequence[IndexExpr], n_new: int
) -> list[IndexExpr]:
    """The old coordinates, where those from `place` on are `digits` of `n_new` new levels."""
    after = range(place + len(digits), structure.depth)
    shift = n_new - len(digits)
    return [
        *(DimRef(old) for old in range(place)),
        *digits,
        *(DimRef(old + shift) for old in after),
    ]


def _spliced(
    levels: Sequence[ExecLevel], place: int, count: int, put: Sequence[ExecLevel]
) -> list[ExecLevel]:
    return [*levels[:place], *put, *levels[place + count :]]


def _with_levels(
    structure: ExecStructure,
    levels: Sequence[ExecLevel],
    definitions: tuple[Definition, ...] = (),
) -> ExecStructure:
    """Other levels, and the definitions that their extents need, arguments first."""
    known = tuple(dict.fromkeys((*structure.definitions, *definitions)))
    needed = {level.extent for level in levels}
    for entry in reversed(known):
        if entry.name in needed:
            needed.update(entry.arguments)
    return ExecStructure(tuple(levels), tuple(entry for entry in known if entry.name in needed))


def _defined(
    structure: ExecStructure, name: str, expression: IndexExpr, arguments: tuple[str, ...]
) -> tuple[str, tuple[Definition, ...]]:
    """A name for a formula that stands for nothing else in the structure."""
    known = {entry.name: entry for entry in structure.definitions}
    taken = {
        other
        for other in structure.symbols
        if known.get(other) != Definition(other, expression, arguments)
    }
    entry = Definition(_unused(name, taken), expression, arguments)
    return entry.name, (entry,)


def _blocks(
    structure: ExecStructure, extent: int | str, factor: int
) -> tuple[int | str, tuple[Definition, ...]]:
    """How many blocks of a size an extent takes."""
    if isinstance(extent, int):
        return -(-extent // factor), ()
    if factor == 1:
        return extent, ()
    blocks = (Sym(0) + (factor - 1)) // factor
    return _defined(structure, f"{extent}_by_{factor}", blocks, (extent,))


def _product(
    structure: ExecStructure, extents: Sequence[int | str]
) -> tuple[int | str, tuple[Definition, ...]]:
    """How many instances levels have together."""
    known = prod(extent for extent in extents if isinstance(extent, int))
    named = [extent for extent in extents if isinstance(extent, str)]
    if known == 0 or not named:
        return known, ()
    if known == 1 and len(named) == 1:
        return named[0], ()
    name = "_times_".join([*named, *([str(known)] if known != 1 else [])])
    arguments = tuple(dict.fromkeys(named))
    expression: IndexExpr = Const(known)
    for factor in named:
        expression = expression * Sym(arguments.index(factor))
    return _defined(structure, name, expression, arguments)


def _identities(structure: ExecStructure, without: Sequence[ExecLevel] = ()) -> set[str]:
    """The identities of other levels."""
    return {level.identity for level in structure.levels if level not in without}


def _names(structure: ExecStructure, without: Sequence[ExecLevel] = ()) -> set[str]:
    """The names of other levels."""
    return {level.name for level in structure.levels if level not in without}


def _parts_of(whole: str, ends: Sequence[str], taken: set[str]) -> list[str]:
    """Names of bounded length that are not taken, for the parts of what is called `whole`."""
    room = _LONGEST - max(map(len, ends), default=0)
    base, count = whole[:room], 0
    while any(base + end in taken for end in ends):
        count += 1
        base = whole[: room - len(f"_{count}")] + f"_{count}"
    return [base + end for end in ends]


def _whole_of(parts: Sequence[str], ends: Sequence[str], between: str, taken: set[str]) -> str:
    """A name for parts together: that of what they are parts of, where it is free."""
    whole = parts[0].removesuffix(ends[0])
    if whole and list(parts) == [whole + end for end in ends] and whole not in taken:
        return whole
    return _unused(between.join(parts), taken)


def _unused(name: str, taken: set[str]) -> str:
    """This name, or one like it that is not taken."""
    (found,) = _parts_of(name, [""], taken)
    return found
