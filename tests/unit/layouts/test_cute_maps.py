"""CuTe layouts as text and as layout maps, and swizzles; every way there and back."""

from contextlib import suppress
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layouts.cute_cases import flat_layouts, layouts, modes_of, value
from tilenest.errors import ParseError, ShapeError, TileError
from tilenest.layouts import (
    BitLinear,
    Compose,
    DimRef,
    Expressions,
    Identity,
    LayoutMap,
    Piecewise,
    Space,
    Translate,
    bit_and,
    cute,
    equal,
    inverse,
    is_injective,
    parse_index_set,
    row_major,
    shift_left,
    shift_right,
    strided,
    xor,
)
from tilenest.layouts.cute import Layout, Swizzle, Swizzled, from_map, parse, to_map

swizzles = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(-4, 4)).filter(
    lambda numbers: abs(numbers[2]) >= numbers[0]
)


def value_by_mode(layout: Layout, point: tuple[int, ...]) -> int:
    return sum(
        value(modes_of(mode), place) for mode, place in zip(layout.modes(), point, strict=True)
    )


def swizzled_number(numbers: tuple[int, int, int], x: int) -> int:
    """By digits of the binary text, lowest first."""
    bits, base, shift = numbers
    digits = [x >> place & 1 for place in range(40)]
    for bit in range(bits):
        source, target = base + max(shift, 0) + bit, base - min(shift, 0) + bit
        digits[target] ^= x >> source & 1
    return sum(digit << place for place, digit in enumerate(digits))


@given(layouts())
def test_text_goes_there_and_back(layout: Layout) -> None:
    assert parse(str(layout)) == layout
    spaced = str(layout).replace(",", " , ").replace(":", " : ")
    assert parse(spaced) == layout


@given(layouts(strides=(0, 1, 2, 8)), swizzles, st.integers(0, 70))
def test_swizzled_text_goes_there_and_back(
    layout: Layout, numbers: tuple[int, int, int], offset: int
) -> None:
    swizzled = Swizzled(Swizzle(*numbers), layout, offset)
    assert parse(str(swizzled)) == swizzled


def test_texts_that_cute_prints_are_read() -> None:
    assert parse("(_4,(_2,_3)):(_1,(_4,_8))") == Layout((4, (2, 3)), (1, (4, 8)))
    assert parse("(4, (2, 3))") == Layout((4, (2, 3)), (1, (4, 8)))
    assert parse("(3,):(2,)") == Layout((3,), (2,))
    assert parse("S<2,0,3> o _0 o (_8,_8):(_8,_1)") == parse("Sw<2,0,3> o (8,8):(8,1)")
    assert parse("Sw<2,0,3> o 5 o 8") == Swizzled(Swizzle(2, 0, 3), Layout(8, 1), 5)


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("", 1),
        ("(4,", 4),
        ("(4,2):", 7),
        ("(4 2):1", 4),
        ("4:1 5", 5),
        ("4:1 !", 4),
        ("Sw<1,2> o 4", 7),
        ("Sw<1,2,3> 4", 11),
        ("o", 1),
        ("4:x", 3),
        ("(" * 80 + "1" + ")" * 80, 62),
    ],
)
def test_other_texts_are_refused_at_their_column(text: str, column: int) -> None:
    with pytest.raises(ParseError, match=f"at column {column} of"):
        parse(text)


def test_texts_of_no_layout_are_refused() -> None:
    for text in ("(4,2):1", "(4,0):(1,4)", "Sw<3,0,2> o 8", "Sw<1,0,1> o 8:-1", "Sw<1,99,1> o 8"):
        with pytest.raises(ShapeError):
            parse(text)


@given(st.lists(st.sampled_from(["Sw<", "S<", *"0123456789(),:_->o "])).map("".join))
def test_any_text_is_a_layout_or_refused(text: str) -> None:
    found = None
    with suppress(TileError):
        found = parse(text)
    assert found is None or parse(str(found)) == found


@given(swizzles)
def test_swizzles_move_bits_and_undo_themselves(numbers: tuple[int, int, int]) -> None:
    swizzle = Swizzle(*numbers)
    for x in range(1 << 11):
        assert swizzle(x) == swizzled_number(numbers, x)
        assert swizzle(swizzle(x)) == x
    assert sorted(swizzle(x) for x in range(1 << 12)) == list(range(1 << 12))


def check_map(layout: Layout) -> None:
    found = to_map(layout)
    for point in found.domain.points():
        assert found.apply(point) == (value_by_mode(layout, point),)
    back = from_map(found)
    assert isinstance(back, Layout)
    assert [mode.size for mode in back.modes()] == [mode.size for mode in layout.modes()]
    assert list(back.values()) == list(layout.values())


def test_small_layouts_mean_the_same_as_maps_and_back() -> None:
    for layout in flat_layouts((1, 2, 3, 4), (0, 1, 2, 3, 8), (1, 2)):
        check_map(layout)
        check_map(cute.joined(layout, Layout(2, 5)))


@given(layouts())
def test_layouts_mean_the_same_as_maps_and_back(layout: Layout) -> None:
    check_map(layout)


@given(layouts(strides=(0, 1, 2, 4, 8, 3, -1)), swizzles, st.integers(0, 9))
def test_swizzled_layouts_mean_the_same_as_maps_and_back(
    layout: Layout, numbers: tuple[int, int, int], offset: int
) -> None:
    offset += sum(extent - 1 for extent, stride in modes_of(layout) if stride < 0)
    swizzled = Swizzled(Swizzle(*numbers), layout, offset)
    found = to_map(swizzled)
    for point in found.domain.points():
        assert found.apply(point) == (
            swizzled_number(numbers, offset + value_by_mode(layout, point)),
        )
    back = from_map(found)
    assert all(back(place) == swizzled(place) for place in range(layout.size))


def test_a_swizzle_reads_the_same_however_the_steps_are_grouped() -> None:
    swizzled = parse("Sw<2,1,3> o 4 o (8,8):(8,1)")
    found = to_map(swizzled)
    assert isinstance(found, Compose)
    regrouped = Compose(Identity(found.domain), found)
    assert from_map(regrouped) == from_map(found) == swizzled


def test_every_small_swizzle_goes_there_and_back() -> None:
    for numbers in product(range(4), range(3), range(-4, 5)):
        if abs(numbers[2]) < numbers[0]:
            continue
        swizzle = Swizzle(*numbers)
        for layout in (Layout((8, 8), (8, 1)), Layout((6, (2, 3)), (7, (3, 50)))):
            found = to_map(Swizzled(swizzle, layout))
            for point in found.domain.points():
                value = value_by_mode(layout, point)
                assert found.apply(point) == (swizzled_number(numbers, value),)
            back = from_map(found)
            assert all(back(place) == swizzle(layout(place)) for place in range(layout.size))


def test_long_axes_are_read_at_their_divisors() -> None:
    layout = Layout((2**40, (3, 7, 1009, 1013)), (5, (1, 2**42, 4, 2**50)))
    assert str(from_map(to_map(layout))) == (
        "(1099511627776,(3,7,1009,1013)):(5,(1,4398046511104,4,1125899906842624))"
    )


@pytest.mark.parametrize("numbers", [(2, 0, 3), (3, 0, 3), (1, 1, 3), (3, 0, -3), (2, 1, -3)])
def test_a_swizzle_is_found_in_a_formula(numbers: tuple[int, int, int]) -> None:
    box = Space.box(8, 8)
    bits, base, shift = numbers
    row, column = DimRef(0), DimRef(1)
    places = row * 8 + column
    mask = ((1 << bits) - 1) << base
    copied = (
        bit_and(shift_right(places, shift), mask)
        if shift > 0
        else shift_left(bit_and(places, mask), -shift)
    )
    formula = Expressions(box, Space.box(64, prefix="y"), (xor(places, copied),))
    found = from_map(formula)
    for x, y in box.points():
        assert found((x, y)) == swizzled_number(numbers, 8 * x + y)
    assert isinstance(found, Swizzled)
    for point in to_map(found).domain.points():
        assert to_map(found).apply(point) == formula.apply(point)


def test_large_layouts_are_exported_by_proof() -> None:
    layout = parse("(4096,(1024,(2,512))):(1048576,(1,(1024,2048)))")
    back = from_map(to_map(layout))
    assert str(back) == "(4096,1048576):(1048576,1)"
    assert is_injective(to_map(layout)).is_proven
    swizzled = parse("Sw<3,4,3> o (1024,1024):(1024,1)")
    assert from_map(to_map(swizzled)) == swizzled
    assert is_injective(to_map(swizzled)).is_proven


def test_the_algebra_agrees_with_the_grammar() -> None:
    """Composition, inverse and divide as layouts are those of the maps."""
    outer, inner = parse("(6,2):(8,2)"), parse("(4,3):(3,1)")
    assert isinstance(outer, Layout)
    assert isinstance(inner, Layout)
    numbers = Space.box(12, prefix="y")
    first = strided(Space.box(4, 3), (3, 1), numbers)
    second = Expressions(
        numbers, Space.box(43, prefix="y"), (DimRef(0) % 6 * 8 + DimRef(0) // 6 * 2,)
    )
    assert equal(first.then(second), to_map(cute.composition(outer, inner))).is_proven
    compact = Layout((4, 6), (6, 1))
    back, answer = inverse(to_map(cute.flatten(compact)))
    assert answer.is_proven
    assert back is not None
    right = cute.right_inverse(compact)
    for place in range(24):
        point = back.apply((place,))
        assert point is not None
        assert cute.crd2idx(point, compact.shape) == right(place)


BOX = Space.box(8)
NUMBERS = Space.box(8, prefix="y")


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        (Translate(BOX, NUMBERS, (3,)), "the map at 3"),
        (Expressions(BOX, NUMBERS, (DimRef(0) * DimRef(0),)), "not proven .*witness"),
        (Expressions(BOX, NUMBERS, (DimRef(0) * 3 % 8,)), "not proven .*witness"),
        (
            Expressions(Space.box(4, 4), NUMBERS, (DimRef(0) * DimRef(1),)),
            r"not proven to be a sum of strides times digits: disproven .*witness",
        ),
        (BitLinear(NUMBERS, NUMBERS, (1, 7, 4)), "not proven .*witness"),
        (strided(Space.box("n"), (1,), NUMBERS), "from .x0=n. to .y0=8. has no strides"),
        (strided(Space.box(0), (1,), NUMBERS), "has no strides"),
        (row_major(Space.box(2, 4)).then(strided(NUMBERS, (1,), Space.box(8, prefix="y"))), ""),
    ],
)
def test_maps_that_are_no_layout_are_refused_with_the_reason(layout: LayoutMap, why: str) -> None:
    if not why:
        assert str(from_map(layout)) == "(2,4):(4,1)"
        return
    with pytest.raises(ShapeError, match=why):
        from_map(layout)


def test_maps_of_several_results_or_holes_are_refused() -> None:
    box = Space.box(2, 2)
    with pytest.raises(ShapeError, match="the map gives 2"):
        from_map(Translate(box, box, (0, 0)))
    plain = row_major(box)
    holey = Piecewise(
        box, plain.codomain, ((parse_index_set("[x0=2, x1=2]{d0 - d1 == 0}"), plain),)
    )
    with pytest.raises(ShapeError, match="undefined at"):
        from_map(holey)


def test_a_nonlinear_map_that_agrees_along_every_axis_is_refused() -> None:
    box = Space.box(4, 4)
    both = xor(DimRef(0) * 4 + DimRef(1), DimRef(0) // 2 * (DimRef(1) // 2))
    with pytest.raises(ShapeError, match="witness"):
        from_map(Expressions(box, Space.box(16, prefix="y"), (both,)))
    for x, y in product(range(4), (0,)):
        assert both.evaluate((x, y), ()) == 4 * x + y
