"""Triton's linear layouts: what their bases mean, as maps and back."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilenest.errors import ShapeError
from tilenest.layouts import (
    BitLinear,
    DimRef,
    Expressions,
    LayoutCorr,
    LayoutMap,
    MixedRadix,
    Permute,
    Space,
    is_injective,
    is_surjective,
    xor,
)
from tilenest.layouts.triton import LinearLayout, from_map, of_bases, to_map

Bases = dict[str, list[list[int]]]


def element(bases: Bases, point: tuple[int, ...], n_outputs: int) -> tuple[int, ...]:
    """What a register of a lane holds, bit by bit."""
    found = [0] * n_outputs
    for x, vectors in zip(point, bases.values(), strict=True):
        for bit, vector in enumerate(vectors):
            if x & 2**bit:
                found = [a ^ b for a, b in zip(found, vector, strict=True)]
    return tuple(found)


def check(bases: Bases, outputs: dict[str, int]) -> None:
    layout = of_bases(bases, outputs)
    assert layout.as_bases() == bases
    found = to_map(layout)
    assert found.domain.extents == tuple(2 ** len(vectors) for vectors in bases.values())
    for point in found.domain.points():
        assert found.apply(point) == element(bases, point, len(outputs))
    assert from_map(found) == layout


def test_all_layouts_of_three_bits_go_there_and_back() -> None:
    vectors = [list(vector) for vector in product(range(2), range(4))]
    for one, other, last in product(vectors, repeat=3):
        check({"register": [one], "lane": [other, last], "warp": []}, {"m": 2, "n": 4})


@st.composite
def cases(draw: st.DrawFn) -> tuple[Bases, dict[str, int]]:
    sizes = draw(st.lists(st.sampled_from([1, 2, 4, 16]), min_size=1, max_size=3))
    vector = st.tuples(*[st.integers(0, size - 1) for size in sizes]).map(list)
    names = draw(st.permutations(["register", "lane", "warp", "block"]))
    bases = {name: draw(st.lists(vector, max_size=2)) for name in names}
    return bases, {f"dim{place}": size for place, size in enumerate(sizes)}


@given(cases())
def test_layouts_go_there_and_back(case: tuple[Bases, dict[str, int]]) -> None:
    check(*case)


def test_a_blocked_layout_is_a_bijection_between_holders_and_elements() -> None:
    layout = of_bases(
        {
            "register": [[0, 1], [0, 2]],
            "lane": [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]],
            "warp": [[8, 0], [0, 0]],
        },
        {"m": 16, "n": 16},
    )
    found = to_map(layout)
    assert is_surjective(found).is_proven
    # The second bit of the warp is a copy.
    assert is_injective(found).is_disproven
    held = LayoutCorr.from_map(found).converse()
    assert held.placed()[9, 6] == ((2, 5, 1), (2, 5, 3))
    replication = held.replication()
    assert (replication.covered, replication.least, replication.most) == (256, 2, 2)
    assert str(layout).startswith("linear(register=[[0, 1], [0, 2]], lane=[[0, 4], ")
    assert str(layout).endswith("warp=[[8, 0], [0, 0]] -> m=16, n=16)")


def test_maps_of_other_kinds_are_exported_by_proof() -> None:
    box = Space.box(8, 4)
    assert from_map(Permute(box, (1, 0))).as_bases() == {
        "x0": [[0, 1], [0, 2], [0, 4]],
        "x1": [[1, 0], [2, 0]],
    }
    grey = Expressions(Space.box(16), Space.box(16), (xor(DimRef(0), DimRef(0) // 2),))
    assert from_map(grey).as_bases() == {"x0": [[1], [3], [6], [12]]}


BOX = Space.box(8)


@pytest.mark.parametrize(
    ("layout", "why"),
    [
        (Expressions(BOX, Space.box(16), (DimRef(0) + 1,)), r"sends 0 to \(1,\)"),
        (Expressions(BOX, Space.box(32), (DimRef(0) * 3,)), "not proven to be linear over bits"),
        (
            Expressions(Space.box(4, 4), BOX, (DimRef(0) * DimRef(1) % 8,)),
            "not proven to be linear over bits: disproven .*witness",
        ),
        (MixedRadix(BOX, BOX, ((3,),)), "outside"),
        (MixedRadix(Space.box(6), BOX, ((1,),)), "powers of two, and .x0=6. has others"),
        (MixedRadix(Space.box(4), Space.box(6), ((1,),)), "powers of two, and .x0=6. has others"),
        (MixedRadix(Space.box("n"), BOX, ((1,),)), "has no strides"),
        (
            BitLinear(Space(Space.box(2).axes * 2), Space.box(4), (1, 2)),
            "two axes of .* have one name",
        ),
    ],
)
def test_maps_that_are_no_linear_layout_are_refused(layout: LayoutMap, why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        from_map(layout)


@pytest.mark.parametrize(
    ("bases", "outputs", "why"),
    [
        ({"lane": [[1, 0]]}, {"m": 2}, "does not lie in the sizes"),
        ({"lane": [[2]]}, {"m": 2}, "does not lie in the sizes"),
        ({"lane": [[-1]]}, {"m": 2}, "does not lie in the sizes"),
        ({"lane": []}, {"m": 6}, "has size 6"),
        ({"lane": []}, {"m": 0}, "has size 0"),
    ],
)
def test_bases_have_to_fit(bases: Bases, outputs: dict[str, int], why: str) -> None:
    with pytest.raises(ShapeError, match=why):
        of_bases(bases, outputs)


def test_layouts_compare_by_value() -> None:
    layout = of_bases({"lane": [[1]]}, {"m": 2})
    assert layout == LinearLayout((("lane", ((1,),)),), (("m", 2),))
