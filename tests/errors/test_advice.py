"""What a refusal advises: the very name to write, for mistakes that look right at first sight."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import numpy as np
import pytest

import tilenest as tn
from tests.errors.refusals import refused
from tests.oracle.arrays import Array, Placed, normal


@tn.kernel
def stored_over_a_namesake(X: Any, Y: Any) -> None:
    n, other = tn.axis("n", 16), tn.axis("n", 16)
    Y((0, 0), (1, n)).store(X[(0, 0), (1, n)] + X[(1, 0), (1, other)])  # wrong


@tn.kernel
def carried_over_a_namesake(X: Any, Y: Any) -> None:
    n, other = tn.axis("n", 16), tn.axis("n", 16)
    acc = X[(0, 0), (1, n)]
    for _ in tn.serial(2):
        acc = X[(0, 0), (1, other)]  # wrong
    Y((0, 0), (1, n)).store(acc)


@tn.kernel
def chosen_over_a_namesake(X: Any, Y: Any) -> None:
    n, other = tn.axis("n", 16), tn.axis("n", 16)
    acc = X[(0, 0), (1, n)]
    if X.extent(0) > 2:  # wrong
        acc = X[(0, 0), (1, other)]
    Y((0, 0), (1, n)).store(acc)


@tn.kernel
def reduced_over_a_namesake(X: Any, Y: Any) -> None:
    n, other = tn.axis("n", 16), tn.axis("n", 16)
    total = tn.sum(X[(0, 0), (1, n)], other)  # wrong
    Y.at(0, 0).store(total)


@tn.kernel
def read_over_a_namesake(X: Any, Y: Any) -> None:
    n, other = tn.axis("n", 16), tn.axis("n", 16)
    x = X[(0, 0), (1, n)]
    for column in tn.serial(other):
        Y.at(0, column.index()).store(x.at(column))  # wrong


@tn.kernel
def broadcast_over_a_namesake(X: Any, Y: Any) -> None:
    n, other = tn.axis("n", 16), tn.axis("n", 16)
    x = tn.broadcast(tn.sum(X[(0, 0), (1, n)], 0), (4, other))  # wrong
    Y((0, 0), (4, other)).store(x)


@tn.kernel
def multiplied_over_a_namesake(X: Any, Y: Any) -> None:
    k, other, m, n = (tn.axis(label, 4) for label in ("k", "k", "m", "n"))
    a, b = X[(0, 0), (m, k)], X[(0, 0), (other, n)]
    Y((0, 0), (m, n)).store(tn.mma(a, b, X[(0, 0), (m, n)]))  # wrong


@tn.kernel
def matched_over_a_namesake(X: Any, Y: Any) -> None:
    k, other = tn.axis("k", 4), tn.axis("k", 4)
    a, b = X[(0, 0), (4, k)], X[(0, 0), (other, 4)]
    Y((0, 0), (4, 4)).store(tn.matmul(a, b))  # wrong


NAMESAKES = {
    stored_over_a_namesake: (tn.ShapeError, "n"),
    carried_over_a_namesake: (tn.CarriedTypeError, "n"),
    chosen_over_a_namesake: (tn.CarriedTypeError, "n"),
    reduced_over_a_namesake: (tn.ShapeError, "n"),
    read_over_a_namesake: (tn.ShapeError, "n"),
    broadcast_over_a_namesake: (tn.ShapeError, "n"),
    multiplied_over_a_namesake: (tn.ShapeError, "k"),
    matched_over_a_namesake: (tn.ShapeError, "k"),
}


@pytest.mark.parametrize("kernel", NAMESAKES, ids=lambda kernel: kernel.__name__)
def test_two_axes_of_one_label_are_told_apart(kernel: tn.Kernel, x: Array, y: Placed) -> None:
    error, label = NAMESAKES[kernel]
    advice = f'two calls of tn.axis made different axes "{label}": make one and use it'
    refused(kernel, error, None, x, y, remedy=advice)


@tn.kernel
def unequal(X: Any, Y: Any) -> None:
    n, m = tn.axis("n", 16), tn.axis("m", 15)
    Y((0, 0), (1, n)).store(X[(0, 0), (1, m)])  # wrong


def test_axes_of_two_labels_are_not(x: Array, y: Placed) -> None:
    found = refused(unequal, tn.ShapeError, None, x, y, remedy="store a tile")
    assert "two calls" not in (found.remedy or "")


@tn.kernel
def returning(X: Any, Y: Any) -> Any:
    twice = X[(0, 0), (4, 16)] * 2
    Y((0, 0), (4, 16)).store(twice)
    return twice  # wrong


def test_a_returned_value_is_shown(x: Array, y: Placed) -> None:
    refused(returning, tn.CaptureError, "return twice", x, y, remedy="store results to views")


@tn.kernel
def axis_of_a_run_time_extent(X: Any, Y: Any) -> None:
    n = tn.axis("n", X.extent(1))  # wrong
    Y((0, 0), (1, n)).store(X[(0, 0), (1, n)])


@tn.kernel
def tile_of_a_run_time_extent(X: Any, Y: Any) -> None:
    x = X[(0, 0), (1, X.extent(1))]  # wrong
    Y((0, 0), (1, 16)).store(x)


@pytest.mark.parametrize(
    ("kernel", "caret"),
    [
        (axis_of_a_run_time_extent, 'tn.axis("n", X.extent(1))'),
        (tile_of_a_run_time_extent, "X[(0, 0), (1, X.extent(1))]"),
    ],
    ids=["axis", "tile"],
)
def test_the_host_extent_is_named(kernel: tn.Kernel, caret: str, x: Array, y: Placed) -> None:
    refused(kernel, tn.ShapeError, caret, x, y, remedy="X.shape[1] is one")


@tn.kernel
def dtype_by_name(X: Any, Y: Any) -> None:
    zeros = tn.zeros((4, 16), "float32")  # wrong
    Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)] + zeros)


def test_a_dtype_in_quotes_is_named(x: Array, y: Placed) -> None:
    refused(dtype_by_name, tn.DTypeError, None, x, y, remedy="use one such as tn.float32")
    annotation: Any = tn.Scalar
    for name, advised in (("bool", "bool_"), ("int8", "int8"), ("index", "float32")):
        with pytest.raises(tn.DTypeError, match=f"such as tn.{advised}$"):
            annotation[name]


@tn.kernel
def axis_of_no_axes(X: Any, Y: Any) -> None:
    Y.at(X.extent(0), 0).store(0.0)  # wrong


def test_the_element_of_an_array_without_axes_is_named(y: Placed) -> None:
    number = np.zeros((), np.float32)
    remedy = "load its one element, as X.at().load()"
    refused(axis_of_no_axes, tn.RankError, "X.extent(0)", number, y, remedy=remedy)


@tn.kernel
def number_aside_from_integers(X: Any, Y: Any) -> None:
    counts = X[(0, 0), (4, 16)].cast(tn.int32)
    Y.at(0, 0).store(tn.reduce(counts, (0, 1), tn.fmax).cast(tn.float32))  # wrong


def test_a_reducer_of_other_dtypes_is_named(x: Array, y: Placed) -> None:
    found = refused(
        number_aside_from_integers, tn.DTypeError, None, x, y, remedy="x.cast(tn.float32)"
    )
    assert found.message == "fmax does not take tilenest.int32"


@tn.kernel
def method_of_arrays(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(X[(0, 0), (4, 16)].sum())  # wrong


@tn.kernel
def misspelt_access(X: Any, Y: Any) -> None:
    Y((0, 0), (4, 16)).stor(X[(0, 0), (4, 16)])  # wrong


def test_attributes_that_are_listed_are_for_users(x: Array, y: Placed) -> None:
    names = "it has T, astype, at, bitcast, cast, dims, dtype, ndim, shape"
    found = refused(method_of_arrays, tn.MissingAttributeError, None, x, y, remedy=names)
    assert found.remedy == names
    found = refused(misspelt_access, tn.MissingAttributeError, None, x, y, remedy="load, store")
    assert "origins" not in (found.remedy or "")
    with pytest.raises(tn.MissingAttributeError, match="it has extent, label, position"):
        _ = tn.axis("n", 16).size  # type: ignore[attr-defined]  # the mistake


@tn.kernel
def misnamed_axis(X: Any, Y: Any) -> None:
    Y.at(0, 0).store(tn.sum(X[(0, 0), (4, 16)], axes=0))  # type: ignore[call-arg]  # wrong


@tn.kernel
def misnamed_bounds(X: Any, Y: Any) -> None:
    x = X((0, 0), (4, 16), bound="zero")  # wrong
    Y((0, 0), (4, 16)).store(x.load())


@tn.kernel
def misnamed_window(X: Any, Y: Any) -> None:
    for block in tn.parallel(1):
        for _ in block.pipeline(2, windows=2):  # type: ignore[call-arg]  # wrong
            Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])


@tn.kernel
def misnamed_before_the_call(X: Any, Y: Any) -> None:
    total = partial(tn.sum, axes=0)  # type: ignore[call-arg]  # the mistake
    Y.at(0, 0).store(total(X[(0, 0), (4, 16)]))  # wrong


@tn.kernel
def too_much_for_a_load(X: Any, Y: Any) -> None:
    x = X((0, 0), (4, 16)).load(0.0, 1.0)  # wrong
    Y((0, 0), (4, 16)).store(x)


@pytest.mark.parametrize(
    ("kernel", "caret", "takes"),
    [
        (misnamed_axis, "tn.sum(X[(0, 0), (4, 16)], axes=0)", "it takes x, axis, policy"),
        (misnamed_before_the_call, "total(X[(0, 0), (4, 16)])", "it takes x, axis, policy"),
        (misnamed_bounds, 'X((0, 0), (4, 16), bound="zero")', "takes origin, shape, bounds, mask"),
        (misnamed_window, "block.pipeline(2, windows=2)", "it takes domain, window, interval"),
        (too_much_for_a_load, "X((0, 0), (4, 16)).load(0.0, 1.0)", "it takes other"),
    ],
    ids=["function", "partial", "view", "nest", "access"],
)
def test_what_a_function_takes_is_named(
    kernel: tn.Kernel, caret: str, takes: str, x: Array, y: Placed
) -> None:
    refused(kernel, tn.ArgumentTypeError, caret, x, y, remedy=takes)


@tn.kernel
def reductions(X: Any, Y: Any) -> None:
    m, n = tn.axis("m", 4), tn.axis("n", 16)
    x = X[(0, 0), (m, n)]
    rows = [
        tn.reduce(x, axis=n, reducer=tn.add),
        tn.sum(x, axis=n),
        tn.mean(x, axis=n),
        tn.max(x, axis=n),
        tn.min(x, axis=n),
        tn.argmax(x, axis=n).cast(tn.float32),
        tn.argmin(x, axis=n).cast(tn.float32),
        tn.sum(cast(tn.Tile, tn.softmax(x, axis=n)), axis=n),
    ]
    for place, row in enumerate(rows):
        Y((place, 0), (1, m)).store(row)


def test_reductions_name_their_axis_alike() -> None:
    x, y = normal((4, 16)), np.full((8, 4), np.nan, np.float32)
    reductions(x, y)
    wide = x.astype(np.float64)
    expected = [
        wide.sum(axis=1),
        wide.sum(axis=1),
        wide.mean(axis=1),
        wide.max(axis=1),
        wide.min(axis=1),
        wide.argmax(axis=1),
        wide.argmin(axis=1),
        np.ones(4),
    ]
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@tn.kernel
def repeated(A: Any, B: Any, C: Any) -> None:
    view = B.broadcast_to(A.extent(0), B.extent(0), B.extent(1))
    for block in tn.parallel(C.extent(0)):
        i = block.index()
        C((i, 0, 0), (1, 3, 5)).store(view[(i, 0, 0), (1, 3, 5)])


@pytest.mark.parametrize("rows", [0, 1, 7])
def test_a_view_broadcasts_to_its_own_run_time_extents(rows: int) -> None:
    b, c = normal((3, 5)), np.full((rows, 3, 5), np.nan, np.float32)
    repeated(normal((rows, 2)), b, c)
    assert np.array_equal(c, np.broadcast_to(b, (rows, 3, 5)))


@tn.kernel
def repeated_elsewhere(X: Any, Y: Any) -> None:
    view = X.broadcast_to(2, Y.extent(0), X.extent(1))  # wrong
    Y((0, 0), (1, 16)).store(view[(0, 0, 0), (1, 1, 16)].at(0, axis=0))


def test_a_run_time_extent_of_another_array_is_none(x: Array, y: Placed) -> None:
    refused(repeated_elsewhere, tn.ShapeError, None, x, y, remedy="as X.shape[0]")
