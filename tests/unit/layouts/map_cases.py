"""Random layout maps with a table of what they should do, written without the package.

A case is a map and a dictionary from each point where it is defined to its value. `cases(domain)`
draws one of any kind of node; the table comes from plain Python, node by node.
"""

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple, TypeVar

from hypothesis import strategies as st

from tests.unit.layouts.oracle import Tree, build, value_of
from tilenest.layouts import (
    Axis,
    BitLinear,
    Compose,
    Constraint,
    Expressions,
    FiniteTable,
    Identity,
    IndexSet,
    LayoutMap,
    MixedRadix,
    Permute,
    Piecewise,
    Product,
    Project,
    Recast,
    Registered,
    Space,
    Transform,
    Translate,
)

Point = tuple[int, ...]
Table = dict[Point, Point]
Item = TypeVar("Item")


class Case(NamedTuple):
    map: LayoutMap
    table: Table


def negated(point: Point) -> Point:
    return tuple(-x for x in point)


NEGATED = Registered("negated", negated, negated)
REGISTRY = {NEGATED.name: NEGATED}
extents = st.sampled_from([0, 1, 1, 2, 2, 3, 3, 4, 5])


def named(sizes: Sequence[int], prefix: str = "a") -> Space:
    return Space(tuple(Axis(f"{prefix}{i}", size) for i, size in enumerate(sizes)))


spaces = st.lists(extents, min_size=0, max_size=3).map(named)


def points_of(space: Space) -> list[Point]:
    return list(product(*(range(int(extent)) for extent in space.extents)))


def inside(space: Space, point: Point) -> bool:
    return point in points_of(space)


@st.composite
def cases(draw: st.DrawFn, domain: Space | None = None, depth: int = 2) -> Case:
    space = draw(spaces) if domain is None else domain
    kinds: list[Callable[..., st.SearchStrategy[Case]]] = [*LEAVES]
    if depth:
        kinds += [composed, beside, chosen]
    kind = draw(st.sampled_from(kinds))
    found: Case = draw(kind(space, depth - 1))
    return found


def identity(domain: Space, _depth: int) -> st.SearchStrategy[Case]:
    return st.just(Case(Identity(domain), {point: point for point in points_of(domain)}))


@st.composite
def strides(draw: st.DrawFn, domain: Space, _depth: int) -> Case:
    codomain = draw(st.lists(extents, min_size=1, max_size=2).map(named))
    row = st.tuples(*[st.integers(-4, 4)] * domain.rank)
    rows = draw(st.tuples(*[row] * codomain.rank))
    table = {
        point: tuple(sum(a * x for a, x in zip(one, point, strict=True)) for one in rows)
        for point in points_of(domain)
    }
    return Case(MixedRadix(domain, codomain, rows), table)


@st.composite
def moved(draw: st.DrawFn, domain: Space, _depth: int) -> Case:
    codomain = named([int(extent) + draw(st.integers(0, 2)) for extent in domain.extents], "b")
    offset = draw(st.tuples(*[st.integers(-2, 2)] * domain.rank))
    table = {
        point: tuple(x + by for x, by in zip(point, offset, strict=True))
        for point in points_of(domain)
    }
    return Case(Translate(domain, codomain, offset), table)


def widths(space: Space) -> list[int]:
    return [len(f"{int(extent) - 1:b}") if int(extent) > 1 else 0 for extent in space.extents]


@st.composite
def bits(draw: st.DrawFn, domain: Space, _depth: int) -> Case:
    codomain = draw(st.lists(extents, min_size=1, max_size=2).map(named))
    number = st.integers(0, 2 ** sum(widths(codomain)) - 1)
    bases = draw(st.tuples(*[number] * sum(widths(domain))))
    constant = draw(number)
    table: Table = {}
    for point in points_of(domain):
        text = "".join(f"{x:0{w}b}" for x, w in zip(point, widths(domain), strict=True) if w)
        total = constant
        for digit, basis in zip(reversed(text), bases, strict=True):
            total ^= basis if digit == "1" else 0
        value: list[int] = []
        for width in reversed(widths(codomain)):
            value.insert(0, total % 2**width)
            total //= 2**width
        table[point] = tuple(value)
    return Case(BitLinear(domain, codomain, bases, constant), table)


@st.composite
def permuted(draw: st.DrawFn, domain: Space, _depth: int) -> Case:
    order = tuple(draw(st.permutations(range(domain.rank))))
    table = {point: tuple(point[i] for i in order) for point in points_of(domain)}
    return Case(Permute(domain, order), table)


@st.composite
def projected(draw: st.DrawFn, domain: Space, _depth: int) -> Case:
    order = draw(st.permutations(range(domain.rank)))
    kept = tuple(order[: draw(st.integers(0, domain.rank))])
    table = {point: tuple(point[i] for i in kept) for point in points_of(domain)}
    return Case(Project(domain, kept), table)


@st.composite
def recast(draw: st.DrawFn, domain: Space, _depth: int) -> Case:
    sizes = [int(extent) for extent in domain.extents]
    total = prod(sizes)
    first = draw(st.sampled_from([n for n in range(1, max(total, 1) + 1) if total % n == 0]))
    codomain = named(draw(st.permutations([first, total // first])), "c")
    table = dict(zip(points_of(domain), points_of(codomain), strict=True))
    return Case(Recast(domain, codomain), table)


@st.composite
def expressions(draw: st.DrawFn, domain: Space, _depth: int) -> Case:
    codomain = draw(st.lists(extents, min_size=1, max_size=2).map(named))
    trees = draw(st.tuples(*[small_trees(domain.rank)] * codomain.rank))
    layout = Expressions(domain, codomain, tuple(build(tree) for tree in trees))
    table = {
        point: tuple(value_of(tree, point, ()) for tree in trees) for point in points_of(domain)
    }
    return Case(layout, table)


def small_trees(rank: int) -> st.SearchStrategy[Tree]:
    coordinates = [("d", place) for place in range(rank)]
    atoms: st.SearchStrategy[Tree] = st.one_of(
        st.integers(-3, 5), *([st.sampled_from(coordinates)] if coordinates else [])
    )
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.tuples(st.sampled_from(["+", "-", "^", "&", "*"]), inner, inner),
            st.tuples(st.sampled_from(["//", "%", "<<", ">>"]), inner, st.integers(1, 4)),
        ),
        max_leaves=4,
    )


@st.composite
def table(draw: st.DrawFn, domain: Space, _depth: int) -> Case:
    codomain = draw(st.lists(extents, min_size=1, max_size=2).map(named))
    entry = st.tuples(*[st.integers(-1, 4)] * codomain.rank) | st.none()
    points = points_of(domain)
    entries = draw(st.tuples(*[entry] * len(points)))
    found = {p: e for p, e in zip(points, entries, strict=True) if e is not None}
    return Case(FiniteTable(domain, codomain, entries), found)


@st.composite
def transformed(draw: st.DrawFn, domain: Space, _depth: int) -> Case:
    codomain = named([int(extent) for extent in domain.extents], "t")
    layout = Transform(domain, codomain, NEGATED, draw(st.booleans()))
    return Case(layout, {point: negated(point) for point in points_of(domain)})


@st.composite
def composed(draw: st.DrawFn, domain: Space, depth: int) -> Case:
    first = draw(cases(domain, depth))
    second = draw(cases(first.map.codomain, depth))
    return joined(first, second)


def joined(first: Case, second: Case) -> Case:
    kept = {
        point: second.table[value] for point, value in first.table.items() if value in second.table
    }
    return Case(Compose(first.map, second.map), kept)


@st.composite
def beside(draw: st.DrawFn, domain: Space, depth: int) -> Case:
    cut = draw(st.integers(0, domain.rank))
    left = draw(cases(Space(domain.axes[:cut]), depth))
    right = draw(cases(Space(domain.axes[cut:]), depth))
    found = {a + b: x + y for a, x in left.table.items() for b, y in right.table.items()}
    return Case(Product(left.map, right.map), found)


@st.composite
def index_sets(draw: st.DrawFn, space: Space) -> tuple[IndexSet, list[Point]]:
    trees = draw(st.lists(st.tuples(small_trees(space.rank), st.booleans()), max_size=2))
    constraints = tuple(Constraint(build(tree), is_equality) for tree, is_equality in trees)
    found = [
        point
        for point in points_of(space)
        if all(
            value == 0 if is_equality else value >= 0
            for tree, is_equality in trees
            for value in [value_of(tree, point, ())]
        )
    ]
    return IndexSet(space, constraints), found


@st.composite
def chosen(draw: st.DrawFn, domain: Space, depth: int) -> Case:
    first = draw(cases(domain, depth))
    others = [draw(into(domain, first.map.codomain)) for _ in range(draw(st.integers(0, 2)))]
    pieces: list[tuple[IndexSet, LayoutMap]] = []
    found: Table = {}
    left = points_of(domain)
    for case in [first, *others]:
        index_set, points = draw(index_sets(domain))
        pieces.append((index_set, case.map))
        found |= {p: case.table[p] for p in left if p in points and p in case.table}
        left = [p for p in left if p not in points]
    return Case(Piecewise(domain, first.map.codomain, tuple(pieces)), found)


@st.composite
def into(draw: st.DrawFn, domain: Space, codomain: Space) -> Case:
    trees = draw(st.tuples(*[small_trees(domain.rank)] * codomain.rank))
    layout = Expressions(domain, codomain, tuple(build(tree) for tree in trees))
    found = {p: tuple(value_of(tree, p, ()) for tree in trees) for p in points_of(domain)}
    return Case(layout, found)


LEAVES = [
    identity,
    strides,
    moved,
    bits,
    permuted,
    projected,
    recast,
    expressions,
    table,
    transformed,
]
