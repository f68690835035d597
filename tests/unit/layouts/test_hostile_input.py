"""Wrong kinds, huge numbers and deep nests end in an error that says what to do, and at once."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tilenest.errors import ArgumentTypeError, ParseError, ShapeError, TileError
from tilenest.layouts import (
    Add,
    AffineMap,
    And,
    Axis,
    BitLinear,
    Compose,
    Const,
    Constraint,
    DimRef,
    Expressions,
    FiniteTable,
    FloorDiv,
    Identity,
    IndexExpr,
    IndexSet,
    LayoutCorr,
    LayoutMap,
    MixedRadix,
    Mod,
    Mul,
    Permute,
    Piecewise,
    Product,
    Project,
    Ranges,
    Recast,
    ShiftLeft,
    ShiftRight,
    Space,
    Sym,
    Translate,
    Xor,
    bit_widths,
    bounds,
    covers,
    cute,
    drawing,
    equal,
    image,
    image_contains,
    image_points,
    implies,
    inverse,
    is_bounded,
    is_empty,
    is_injective,
    is_monotone,
    is_total,
    normalise,
    of_affine_map,
    pack_bits,
    parse_index_expr,
    parse_layout,
    point_set,
    preimage,
    preimage_points,
    shape_dims,
    simplify,
    strided,
    tirx,
    triton,
    unpack_bits,
    xor,
)

LINE, TILE = Space.box(3), Space.box(4, 8)
SAME = Identity(LINE)
WRONG: list[Any] = [float("nan"), 2.5, None, b"x", 1j, [], object()]
TAKES_A_NUMBER: dict[str, Callable[[Any], object]] = {
    "Axis": lambda x: Axis("x", x),
    "apply": lambda x: SAME.apply((x,)),
    "Const": Const,
    "DimRef": DimRef,
    "Sym": Sym,
    "sum": lambda x: DimRef(0) + x,
    "MixedRadix": lambda x: MixedRadix(TILE, LINE, ((1, x),)),
    "strided": lambda x: strided(TILE, (1, x)),
    "Translate": lambda x: Translate(LINE, LINE, (x,)),
    "Permute": lambda x: Permute(TILE, (0, x)),
    "Project": lambda x: Project(TILE, (x,)),
    "BitLinear basis": lambda x: BitLinear(Space.box(4), Space.box(4), (1, x)),
    "BitLinear constant": lambda x: BitLinear(Space.box(4), Space.box(4), (1, 2), x),
    "FiniteTable": lambda x: FiniteTable(Space.box(1), LINE, ((x,),)),
    "point_set": lambda x: point_set(TILE, (0, x)),
    "image_contains": lambda x: image_contains(SAME, (x,)),
    "preimage_points": lambda x: preimage_points(SAME, (x,)),
    "cute stride": lambda x: cute.Layout((2, 3), (1, x)),
    "cute call": lambda x: cute.make_layout((2, 3))((1, x)),
    "cute complement": lambda x: cute.complement(cute.make_layout(4), x),
    "swizzle": lambda x: cute.Swizzle(1, 0, x),
    "swizzled": cute.Swizzle(1, 0, 1),
    "triton size": lambda x: triton.of_bases({"lane": []}, {"m": x}),
    "triton basis": lambda x: triton.of_bases({"lane": [[x]]}, {"m": 4}),
    "tirx stride": lambda x: tirx.tile_layout([(4, x, "a")]),
    "AffineMap dimensions": lambda x: AffineMap(x, 0, ()),
    "AffineMap symbols": lambda x: AffineMap(1, x, (DimRef(0),)),
    "AffineMap.identity": AffineMap.identity,
    "AffineMap.projection": lambda x: AffineMap.projection(2, (x,)),
    "AffineMap.constant": lambda x: AffineMap.constant(2, (x,)),
}
TAKES_A_MAP: dict[str, Callable[[Any], object]] = {
    "Compose": lambda x: Compose(SAME, x),
    "Product": lambda x: Product(x, SAME),
    "Piecewise": lambda x: Piecewise(LINE, LINE, ((IndexSet(LINE), x),)),
    "Expressions": lambda x: Expressions(LINE, LINE, (x,)),
    "Identity": Identity,
    "Recast": lambda x: Recast(LINE, x),
    "LayoutCorr": lambda x: LayoutCorr(SAME, x),
    "IndexSet": IndexSet,
    "Constraint": Constraint,
    "AffineMap": lambda x: AffineMap(1, 0, (x,)),
    "equal": lambda x: equal(SAME, x),
    "image": image,
    "inverse": inverse,
    "preimage": lambda x: preimage(SAME, x),
    "covers": lambda x: covers(SAME, x),
    "implies": lambda x: implies(IndexSet(LINE), x),
    "is_empty": is_empty,
    "is_injective": is_injective,
    "is_monotone": is_monotone,
    "normalise": normalise,
    "bit_widths": bit_widths,
    "cute.coalesce": cute.coalesce,
    "cute.composition": lambda x: cute.composition(cute.make_layout(8), x),
    "cute.from_map": cute.from_map,
    "cute.to_map": cute.to_map,
    "cute.joined": cute.joined,
    "AffineMap access": lambda x: of_affine_map(x, LINE, LINE),
    "AffineMap domain": lambda x: of_affine_map(AffineMap.identity(1), x, LINE),
    "AffineMap codomain": lambda x: of_affine_map(AffineMap.identity(1), LINE, x),
    "AffineMap names": lambda x: of_affine_map(AffineMap.identity(1), LINE, LINE, x),
    "AffineMap results": lambda x: AffineMap(1, 0, x),
    "bounds": lambda x: bounds(x, {}),
    "bounds ranges": lambda x: bounds(DimRef(0), x),
    "simplify ranges": lambda x: simplify(DimRef(0), x),
    "LinearLayout bases": lambda x: triton.LinearLayout(x, ()),
    "LinearLayout outputs": lambda x: triton.LinearLayout((), x),
    "TileLayout shard": lambda x: tirx.TileLayout((x,)),
    "TileLayout replica": lambda x: tirx.TileLayout((), x),
    "TileLayout offset": lambda x: tirx.TileLayout((), (), (x,)),
    "triton.from_map": triton.from_map,
    "triton.to_map": triton.to_map,
    "tirx.from_correspondence": tirx.from_correspondence,
    "drawing.as_text": drawing.as_text,
    "drawing.as_svg": drawing.as_svg,
}


@pytest.mark.parametrize("name", TAKES_A_NUMBER)
def test_what_is_no_number_is_refused(name: str) -> None:
    for wrong in WRONG:
        if name.startswith("cute") and isinstance(wrong, list):
            continue
        with pytest.raises(ArgumentTypeError, match="of type"):
            TAKES_A_NUMBER[name](wrong)


@pytest.mark.parametrize("name", TAKES_A_MAP)
def test_what_is_no_map_is_refused(name: str) -> None:
    for wrong in (2.5, None, "a b", object()):
        with pytest.raises(ArgumentTypeError, match="of type"):
            TAKES_A_MAP[name](wrong)


@pytest.mark.parametrize("read", [parse_layout, parse_index_expr, cute.parse])
def test_what_is_no_text_is_refused(read: Callable[[Any], object]) -> None:
    for wrong in (*WRONG, 3):
        with pytest.raises(ArgumentTypeError, match="of type"):
            read(wrong)


@pytest.mark.parametrize("name", TAKES_A_NUMBER)
def test_a_number_of_thousands_of_digits_is_refused(name: str) -> None:
    with pytest.raises(ShapeError, match="bits"):
        TAKES_A_NUMBER[name](10**5000)


GROUPS: dict[str, Callable[[Any], object]] = {
    "a point": SAME.apply,
    "preimage_points": lambda x: preimage_points(SAME, x),
    "axes": Space,
    "strides": lambda x: strided(TILE, x),
    "bases": lambda x: BitLinear(TILE, TILE, x),
    "a shape": shape_dims,
    "a tile's shape": lambda x: tirx.to_correspondence(tirx.TileLayout(()), x),
}


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_without_an_end_is_refused_before_it_is_made(name: str) -> None:
    read = itertools.count()
    with pytest.raises(ShapeError, match="over 4096 items"):
        GROUPS[name](read)
    assert next(read) <= 4097
    for long in (range(10**9), [0] * 4097, (0,) * 4097):
        with pytest.raises(ShapeError, match="over 4096 items"):
            GROUPS[name](long)


def test_tables_and_sets_may_be_longer_than_a_rank() -> None:
    many = Space.box(5000)
    table = FiniteTable(many, many, [(x,) for x in range(5000)])  # type: ignore[arg-type]  # a list
    assert table.apply((4999,)) == (4999,)
    read = itertools.count()
    with pytest.raises(ShapeError, match="items"):
        FiniteTable(many, many, read)  # type: ignore[arg-type]  # what is refused
    assert next(read) <= (1 << 20) + 1


def test_numbers_of_numpy_are_plain_ones() -> None:
    four: Any = np.int64(4)
    assert Axis("x", four) == Axis("x", 4)
    assert Space.box(four).is_static
    quarter: Any = np.int64(1 << 62)
    wide = MixedRadix(LINE, LINE, ((quarter,),))
    # Arithmetic of fixed width would wrap to a number in range.
    assert wide.apply((2,)) is None
    assert type(wide.strides[0][0]) is int
    assert Identity(Space.box(9)).apply((four,)) == (4,)
    assert cute.make_layout((four, 3)) == cute.make_layout((4, 3))


def test_lists_are_taken_for_tuples() -> None:
    rows: Any = [[1, 2]]
    assert MixedRadix(TILE, LINE, rows) == MixedRadix(TILE, LINE, ((1, 2),))
    order: Any = [1, 0]
    assert is_injective(Permute(TILE, order)).is_proven


def test_a_set_only_uses_what_its_space_has() -> None:
    with pytest.raises(ShapeError, match="does not have"):
        IndexSet(LINE, (Constraint(DimRef(1)),))
    with pytest.raises(ShapeError, match="does not have"):
        IndexSet(LINE, (Constraint(Sym(0)),))
    assert IndexSet(LINE, (Constraint(Sym(0) - DimRef(0)),), ("n",)).holds((1,), {"n": 1})


def test_a_point_has_one_coordinate_an_axis() -> None:
    with pytest.raises(ShapeError, match="2 coordinates"):
        image_contains(SAME, (1, 2))


@pytest.mark.parametrize("place", [(3,), (-1,), (-(1 << 63),), (1 << 63,)])
def test_the_image_is_asked_for_places_of_the_codomain_only(place: tuple[int, ...]) -> None:
    # An empty set is covered by every map: the answer would be a proof.
    with pytest.raises(ShapeError, match="no point of"):
        image_contains(SAME, place)


def test_bits_are_packed_of_a_point_and_unpacked_from_a_number() -> None:
    square = Space.box(4, 8)
    assert unpack_bits(square, pack_bits(square, (3, 5))) == (3, 5)
    for wrong in ((1,), (1, 2, 3), ()):
        with pytest.raises(ShapeError, match="no point of"):
            pack_bits(square, wrong)


def test_nodes_are_made_of_formulas() -> None:
    one = DimRef(0)
    for kind in (Mul, FloorDiv, Mod, And, Xor, ShiftLeft, ShiftRight):
        for pair in ((one, 3), ("a", one), (None, None)):
            with pytest.raises(ArgumentTypeError, match="an item of the operands"):
                kind(*pair)
    for wrong in (3, None, (one, 3), "ab"):
        with pytest.raises(ArgumentTypeError, match="the terms of a sum"):
            Add(wrong)  # type: ignore[arg-type]  # what is refused
    with pytest.raises(ShapeError, match="less than two"):
        Add((one,))


def test_values_of_run_time_numbers_are_numbers() -> None:
    run_time = Identity(Space.box("n"))
    for wrong in (3, "n", ["n"], {"n": "a"}, {"n": 2.5}):
        with pytest.raises(ArgumentTypeError):
            run_time.apply((1,), wrong)  # type: ignore[arg-type]  # what is refused
        with pytest.raises(ArgumentTypeError):
            image_points(run_time, wrong)  # type: ignore[arg-type]  # what is refused


def test_budgets_are_numbers() -> None:
    table = FiniteTable(LINE, LINE, (None, (1,), (1,)))
    for ask in (is_injective, is_bounded, is_monotone, image_points):
        with pytest.raises(ArgumentTypeError, match="budget"):
            ask(table, budget="a")  # type: ignore[arg-type]  # what is refused


def test_run_time_numbers_need_values() -> None:
    run_time = Identity(Space.box("n"))
    tries: list[Callable[[], object]] = [
        lambda: run_time.apply((1,)),
        lambda: list(run_time.domain.points()),
        lambda: list(LayoutCorr.from_map(run_time).pairs()),
        lambda: Expressions(LINE, LINE, (Sym(0),), ("n",)).apply((1,)),
        lambda: IndexSet(LINE, (Constraint(Sym(0)),), ("n",)).holds((1,)),
    ]
    for attempt in tries:
        with pytest.raises(ShapeError, match="no value"):
            attempt()
    unused = Expressions(LINE, Space.box("n"), (DimRef(0),))
    assert unused.apply((1,)) == (1,)


def test_positions_are_small_and_not_negative() -> None:
    for place in (-1, 1 << 20, 1 << 63):
        for kind in (DimRef, Sym):
            with pytest.raises(ShapeError, match="no position"):
                kind(place)


def grown(start: Any, step: Callable[[Any], Any]) -> Any:
    """The last of the ever deeper things that are still made."""
    made = [start]

    def grow() -> None:
        while len(made) < 1000:
            made.append(step(made[-1]))

    with pytest.raises(ShapeError, match="inside one another"):
        grow()
    return made[-1]


def ranges_of_line() -> Ranges:
    return {DimRef(0): (0, 2)}


JOINTS: dict[str, Callable[[LayoutMap], LayoutMap]] = {
    "compose": lambda f: f.then(Translate(LINE, LINE, (0,))),
    "piecewise": lambda f: f.restrict(IndexSet(LINE)),
    "product": lambda f: f.product(Identity(Space())),
}


@pytest.mark.parametrize("name", JOINTS)
def test_maps_nest_as_deep_as_everything_can_follow(name: str) -> None:
    deep: LayoutMap = grown(SAME, JOINTS[name])
    assert parse_layout(str(deep)) == deep
    assert deep.apply((2,)) == (2,)
    assert is_injective(deep).is_proven
    assert is_total(deep).is_proven
    assert equal(normalise(deep), deep).is_proven
    assert image(deep)[1].is_proven
    back, answer = inverse(deep)
    assert answer.is_proven
    assert back is not None and back.apply((2,)) == (2,)


@pytest.mark.parametrize(
    "step",
    [
        lambda e: (e // 3 + 1) % 7 * DimRef(0),
        lambda e: xor(5 - e, DimRef(0)),
        lambda e: (1 - e) // (DimRef(0) + 2),
    ],
)
def test_formulas_nest_as_deep_as_everything_can_follow(
    step: Callable[[IndexExpr], IndexExpr],
) -> None:
    deep: IndexExpr = grown(DimRef(0), step)
    value, ranges = deep.evaluate((2,)), ranges_of_line()
    assert str(deep)
    assert simplify(deep, ranges).evaluate((2,)) == value
    interval = bounds(deep, ranges)
    assert interval is None or interval[0] <= value <= interval[1]
    layout = Expressions(LINE, LINE, (deep,))
    assert layout.apply((2,)) == ((value,) if abs(value) < 1 << 63 else None)
    is_injective(layout)
    is_bounded(layout)
    image(layout)
    normalise(layout)


def test_cute_tuples_nest_up_to_a_limit() -> None:
    nested: Any = grown(2, lambda shape: cute.make_layout((shape,)).shape)
    assert cute.parse(str(cute.make_layout(nested))) == cute.make_layout(nested)
    tiler: Any = 2
    for _ in range(3000):
        tiler = (tiler,)
    for use in (cute.make_layout, lambda t: cute.composition(cute.make_layout(8), t)):
        with pytest.raises(ShapeError, match="inside one another"):
            use(tiler)
    with pytest.raises(ShapeError, match="inside one another"):
        cute.logical_divide(cute.make_layout(8), tiler)


@pytest.mark.parametrize("text", ["\u00b2", "d\u00b2", "\u0663", "d\u0663", "-\u00b2"])
def test_digits_of_other_alphabets_are_no_numbers(text: str) -> None:
    with pytest.raises(ParseError):
        parse_index_expr(text)


def test_errors_can_be_printed() -> None:
    for name, attempt in TAKES_A_NUMBER.items():
        for wrong in (10**5000, "9" * 50, float("inf")):
            with pytest.raises(TileError) as caught:
                attempt(wrong)
            assert len(str(caught.value)) < 1000, name
