"""Join and store rules of dimensions, judged by NumPy's broadcasting and by hand."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilenest.errors import ShapeError
from tilenest.layouts import (
    Dim,
    dims_compatible_by_position,
    join_dims,
    positional_dim,
    shape_dims,
)

M, N, K = Dim("m", 4), Dim("n", 8), Dim("k", 4)


def test_each_axis_is_its_own_dimension() -> None:
    assert Dim("m", 4) != Dim("m", 4)
    assert positional_dim(0, 4) is positional_dim(0, 4)
    assert positional_dim(0, 4) is not positional_dim(1, 4)
    assert Dim("empty", 0).extent == 0


def test_threads_agree_on_one_identity() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda turn: positional_dim(turn % 5, 123_457), range(400)))
    assert len(set(found)) == 5


def test_a_negative_extent_names_the_axis() -> None:
    with pytest.raises(ShapeError, match=r'axis "m" \(extent -1\) has a negative extent'):
        Dim("m", -1)
    with pytest.raises(ShapeError, match="the dimension 0 from the right"):
        shape_dims((3, -2))


def test_a_shape_mixes_axes_and_ints() -> None:
    assert shape_dims((M, 3)) == (M, positional_dim(0, 3))
    assert shape_dims(()) == ()
    with pytest.raises(ShapeError, match=r'axis "m" .* stands twice'):
        shape_dims((M, N, M))


shapes = st.lists(st.sampled_from([0, 1, 1, 3, 4]), max_size=4).map(tuple)


@given(shapes, shapes)
def test_plain_ints_join_as_numpy_shapes_broadcast(
    left: tuple[int, ...], right: tuple[int, ...]
) -> None:
    a, b = shape_dims(left), shape_dims(right)
    try:
        expected = np.broadcast_shapes(left, right)
    except ValueError:
        with pytest.raises(ShapeError, match="does not join with"):
            join_dims(a, b)
    else:
        assert join_dims(a, b) == shape_dims(expected)


def test_three_plain_shapes_join() -> None:
    joined = join_dims(join_dims(shape_dims((3, 4)), shape_dims((1, 4))), shape_dims((3, 1)))
    assert joined == shape_dims((3, 4))


def test_a_failed_join_names_both_dimensions_and_a_remedy() -> None:
    with pytest.raises(ShapeError) as caught:
        join_dims(shape_dims((3, 4)), shape_dims((3, 5)))
    text = str(caught.value)
    assert "0 from the right (extent 4)" in text
    assert "0 from the right (extent 5)" in text
    assert "help:" in text


@pytest.mark.parametrize(
    ("left", "right", "joined"),
    [
        ((M, N), (N,), (M, N)),
        ((N,), (M, N), (M, N)),
        ((M, N), (N, M), (M, N)),
        ((M,), (N,), (M, N)),
        ((M, K), (K, N), (M, K, N)),
        ((), (M, N), (M, N)),
        ((M, N), (), (M, N)),
    ],
)
def test_axes_join_by_identity(
    left: tuple[Dim, ...], right: tuple[Dim, ...], joined: tuple[Dim, ...]
) -> None:
    assert join_dims(left, right) == joined


def test_plain_ints_keep_position_order_among_axes() -> None:
    joined = join_dims(shape_dims((M, 4)), shape_dims((3, 4)))
    assert joined == (M, *shape_dims((3, 4)))


@pytest.mark.parametrize(
    ("source", "destination", "followed"),
    [
        ((M, N), (M, N), (0, 1)),
        ((N, M), (M, N), (1, 0)),
        ((N,), (M, N), (1,)),
        ((), (M, N), ()),
        ((K, N), (M, N), (0, 1)),
        (shape_dims((4, 8)), (M, N), (0, 1)),
        ((M, Dim("one", 1)), (M, N), (0, None)),
        (shape_dims((1, 8)), shape_dims((4, 8)), (None, 1)),
        (shape_dims((1, 1)), shape_dims((1, 1)), (0, 1)),
    ],
)
def test_where_a_stored_dimension_lands(
    source: tuple[Dim, ...], destination: tuple[Dim, ...], followed: tuple[int | None, ...]
) -> None:
    assert dims_compatible_by_position(source, destination) == followed


@pytest.mark.parametrize("source", [(N, K), (M, N, K), (K,), shape_dims((4, 9))])
def test_a_tile_that_fits_nowhere_is_refused(source: tuple[Dim, ...]) -> None:
    with pytest.raises(ShapeError, match=r"cannot be stored to a region of shape \(m=4, n=8\)"):
        dims_compatible_by_position(source, (M, N))
