"""Views: reading extents, loads, stores, references, and what is refused."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from tests.unit.language.building import (
    build,
    find,
    open_session,
    random_array,
    run,
    untyped,
    zeros,
)
from tilenest import ir
from tilenest import language as tn
from tilenest.dialects import Extent, Load, Store, Stride
from tilenest.errors import (
    CaptureError,
    DTypeError,
    RankError,
    ReadOnlyError,
    ShapeError,
    ViewAssignmentError,
)


def test_reading_a_host_extent_is_recorded() -> None:
    def body(a: tn.View) -> None:
        assert a.reads == set()
        assert a.rank == a.ndim == 2
        assert len(a.shape) == 2
        assert a.shape[1] == 5
        assert a.reads == {("extent", 1)}
        assert a.strides[-2] == 5
        assert a.reads == {("extent", 1), ("stride", 0)}
        rows, columns = a.shape
        assert (rows, columns) == (3, 5)
        assert a.shape[:1] == (3,)
        assert a.shape == (3, 5)
        assert a.reads == {("extent", 0), ("extent", 1), ("stride", 0)}
        with pytest.raises(RankError):
            a.shape[2]

    build(body, random_array(3, 5))


def test_runtime_extents_name_the_scalar_way() -> None:
    with open_session([ir.ViewType(ir.float32, (None, 5), (None, None))]) as (session, arguments):
        view = tn.View(arguments[0], session, "x", (None, 5))
        assert view.shape[1] == 5
        with pytest.raises(ShapeError, match="only at run time") as caught:
            list(view.shape)
        assert "x.extent(0)" in str(caught.value)
        with pytest.raises(ShapeError) as caught:
            view.strides[1]
        assert "x.stride(1)" in str(caught.value)
        assert view.reads == {("extent", 1)}


def test_runtime_scalars_of_a_view() -> None:
    def body(a: tn.View) -> None:
        assert a.extent(-1).dtype is ir.index
        assert a.stride(0).dtype is ir.index
        with pytest.raises(RankError, match="axis 2"):
            a.extent(2)
        assert a.reads == set()

    session = build(body, random_array(3, 5))
    assert [op.axis for op in find(session, Extent)] == [1]
    assert [op.axis for op in find(session, Stride)] == [0]


def test_load_and_store_move_data() -> None:
    x, y = random_array(4, 6), np.full((3, 3), np.nan, np.float32)

    def body(a: tn.View, b: tn.View) -> None:
        b((0, 0), (3, 3)).store(a[(2, 1), (3, 3)] * 2)

    run(body, x, y)
    expected = np.zeros((3, 3), np.float32)
    expected[:2] = x[2:4, 1:4] * 2
    np.testing.assert_array_equal(y, expected)


def test_stores_outside_are_dropped_and_masks_hold() -> None:
    x, y = random_array(4), np.full(6, np.nan, np.float32)

    def body(a: tn.View, b: tn.View) -> None:
        inside = tn.iota(4) < 3
        b(3, 4, mask=inside).store(a(1, 4, mask=inside).load(other=7))
        b(-2, 3).store(1.5)

    run(body, x, y)
    np.testing.assert_array_equal(y, [1.5, np.nan, np.nan, x[1], x[2], x[3]])


def test_elements() -> None:
    x, y = random_array(3, 4), np.full((2, 2), np.nan, np.float32)

    def body(a: tn.View, b: tn.View) -> None:
        element = a.at(2, 1).load()
        assert isinstance(element, tn.Scalar)
        b.at(1, 0).store(element + 1)
        b.at(5, 0).store(9.0)
        b.at(0, 0).store(a.at(9, 9).load(other=3))

    run(body, x, y)
    np.testing.assert_array_equal(y, [[3, np.nan], [x[2, 1] + 1, np.nan]])


def test_named_axes_store_by_identity_and_position() -> None:
    x, y = random_array(3, 4), np.full((4, 3), np.nan, np.float32)

    def body(a: tn.View, b: tn.View) -> None:
        m, n = tn.axis("m", 3), tn.axis("n", 4)
        b((0, 0), (n, m)).store(a[(0, 0), (m, n)])

    run(body, x, y)
    np.testing.assert_array_equal(y, x.T)


def test_the_operations_of_an_access() -> None:
    def body(a: tn.View) -> None:
        access = a(tn.scalar(np.int32(1)), 4, bounds="assume", mask=True)
        access.store(access.load(other=1))
        a.at(0).store(0)

    session = build(body, random_array(8), bounds="check")
    (load,), (store, element) = find(session, Load), find(session, Store)
    assert load.bounds == store.bounds == "assume"
    assert load.origins == store.origins
    assert load.origins[0].type is ir.INDEX
    assert load.other is not None
    assert load.mask is store.mask
    assert [dim.extent for dim in store.dims] == [4]
    assert (element.bounds, element.dims) == ("check", ())


def test_a_handle_of_rank_1_is_an_origin() -> None:
    def body(a: tn.View) -> None:
        session = tn.current_session()
        handle = tn.NestHandle(session, tn.serial(4), [tn.scalar(2, ir.index)])
        assert a[handle, 2].shape == (2,)
        pair = tn.NestHandle(session, tn.serial(4, 4), [tn.scalar(2, ir.index)] * 2)
        with pytest.raises(RankError, match="nest of rank 2"):
            a[pair, 2]

    build(body, random_array(8))


def test_an_index_is_stored_to_integers() -> None:
    y = np.full(2, -1, np.int64)

    def body(b: tn.View) -> None:
        b.at(1).store(b.extent(0))

    run(body, y)
    np.testing.assert_array_equal(y, [-1, 2])


@pytest.mark.parametrize(
    ("use", "error", "remedy"),
    [
        (lambda a: operator.setitem(a, (0, 4), 1.0), ViewAssignmentError, ".store(tile)"),
        (lambda a: operator.setitem(a, slice(None), 1.0), ViewAssignmentError, ".store(tile)"),
        (lambda a: a[:], RankError, "an origin and a shape"),
        (lambda a: a[0], RankError, "A0[i, m]: where the tile starts"),
        (lambda a: a[0], RankError, "one element is A0.at(i).load()"),
        (lambda a: a[0:2, 4], RankError, "where the tile starts"),
        (list, CaptureError, "A0.extent(0)"),
        (len, CaptureError, "A0.extent(0)"),
        (bool, CaptureError, "is None"),
        (np.asarray, CaptureError, "load a tile"),
        (lambda a: a + 1, CaptureError, "A0[origin, shape]"),
        (lambda a: 2 * a, CaptureError, "A0[origin, shape]"),
        (lambda a: -a, CaptureError, "A0[origin, shape]"),
        (lambda a: a < 3, CaptureError, "A0[origin, shape]"),
        (lambda a: a(0, 4).store(tn.zeros(3, ir.float32)), ShapeError, "rank and extents"),
        (lambda a: a(0, 4).store(tn.zeros(4, ir.float64)), DTypeError, "cast(tn.float32)"),
        (lambda a: a(0, 4).store(np.float64(1)), DTypeError, "cast(tn.float32)"),
        (lambda a: a(0, 4).load(other=tn.zeros(5, ir.float32)), ShapeError, "rank and extents"),
        (lambda a: a(0, 4, mask=1.0), DTypeError, "compare"),
        (lambda a: a(0, 4, bounds="clamp"), CaptureError, '"zero", "assume" or "check"'),
        (lambda a: a((0, 0), (4, 4)), RankError, "A0(i, m): where the tile starts"),
        (lambda a: a(0, (4, 4)), RankError, "one extent per dimension"),
        (lambda a: a(0, a.extent(0)), ShapeError, "fixed when the kernel is compiled"),
        (lambda a: a(0, -3), ShapeError, "at least 0"),
        (lambda a: a("0", 3), DTypeError, "integer scalar"),
    ],
)
def test_mistakes(use: Any, error: type[Exception], remedy: str) -> None:
    def body(a: tn.View) -> None:
        with pytest.raises(error) as caught:
            use(a)
        assert remedy in str(caught.value)

    session = build(body, random_array(8))
    assert not find(session, Store)


def test_const_views_are_not_stored_to() -> None:
    with open_session([ir.ViewType(ir.float32, (4,), (1,))]) as (session, arguments):
        view = tn.View(arguments[0], session, "x", (4,), (1,), is_const=True)
        view(0, 4).load()
        with pytest.raises(ReadOnlyError, match=r"tn\.ConstView"):
            view(0, 4).store(zeros(4))


def test_annotations() -> None:
    assert untyped.View[ir.float32, 2] == tn.ViewAnnotation(ir.float32, 2)
    assert untyped.ConstView[np.float32] == tn.ViewAnnotation(ir.float32, None, is_const=True)
    assert untyped.Scalar[ir.int64] == tn.ScalarAnnotation(ir.int64)
    with pytest.raises(CaptureError, match="annotation"):
        untyped.View[ir.float32, "2"]
