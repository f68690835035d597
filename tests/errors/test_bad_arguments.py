"""Arguments that a kernel cannot take: rank, dtype, memory that must not be written.

A call's mistake has the call in the traceback, and points at the kernel, or at the place in it
where one is to blame (the store to what cannot be written).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.errors.refusals import refused
from tests.oracle.arrays import Array, Placed, normal, placed, poisoned


@tn.kernel
def doubled(X: Any, Y: Any) -> None:
    r, n = tn.axis("r", 4), tn.axis("n", 16)
    x = X[(0, 0), (r, n)]
    Y((0, 0), (r, n)).store(x * 2)  # wrong


@tn.kernel
def wrong_rank(X: Any, Y: Any) -> None:
    r, n = tn.axis("r", 4), tn.axis("n", 16)
    x = X[(0, 0), (r, n)]  # wrong
    Y((0, 0), (r, n)).store(x)


def test_an_input_of_another_rank(y: Placed) -> None:
    for shape in ((16,), (2, 4, 16)):
        found = refused(
            wrong_rank, tn.RankError, "X[(0, 0), (r, n)]", normal(shape), y, remedy="coordinate"
        )
        assert "X" in found.message


@tn.kernel
def wrong_output_rank(X: Any, Y: Any) -> None:
    r, n = tn.axis("r", 4), tn.axis("n", 16)
    x = X[(0, 0), (r, n)]
    Y((0, 0), (r, n)).store(x)  # wrong


def test_an_output_of_another_rank(x: Array) -> None:
    y = poisoned((64,), np.float32)
    refused(wrong_output_rank, tn.RankError, "Y((0, 0), (r, n))", x, y, remedy="coordinate")


@tn.kernel
def annotated(X: tn.View[tn.float32, 2], Y: Any) -> None:  # type: ignore[type-arg, valid-type]  # wrong
    Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])


def test_arguments_are_blamed_on_the_call_and_on_the_kernel_line(y: Placed) -> None:
    found = refused(doubled, tn.ArgumentTypeError, None, "text", y, remedy="pass")
    assert found.location is not None
    assert found.location.source == "def doubled(X: Any, Y: Any) -> None:"
    assert found.location.function == "doubled"


def test_an_argument_of_another_rank_than_annotated(y: Placed) -> None:
    found = refused(annotated, tn.RankError, None, normal((16,)), y, remedy="reshape")
    assert "'X'" in found.message


def test_an_argument_of_another_dtype_than_annotated(x: Array, y: Placed) -> None:
    found = refused(
        annotated, tn.ArgumentTypeError, None, x.astype(np.float64), y, remedy="float32"
    )
    assert "'X'" in found.message


@tn.kernel
def mixing(X: Any, W: Any, Y: Any) -> None:
    r, n = tn.axis("r", 4), tn.axis("n", 16)
    x = X[(0, 0), (r, n)]
    total = x + W[(0, 0), (r, n)]  # wrong
    Y((0, 0), (r, n)).store(total)


def test_inputs_of_two_dtypes(x: Array, y: Placed) -> None:
    found = refused(
        mixing, tn.DTypeError, "x + W[(0, 0), (r, n)]", x, x.astype(np.float64), y, remedy="cast"
    )
    assert "float32" in found.message and "float64" in found.message


def test_an_output_of_another_dtype(x: Array) -> None:
    y = poisoned((4, 16), np.float64)
    refused(
        doubled, tn.DTypeError, "Y((0, 0), (r, n)).store(x * 2)", x, y, remedy="cast(tn.float64)"
    )


@pytest.mark.parametrize("dtype", [np.complex64, "U3", "M8[s]", object, ">f4", np.longdouble])
def test_dtypes_that_no_kernel_takes(dtype: Any, y: Placed) -> None:
    error = tn.ArgumentTypeError if dtype == ">f4" else tn.DTypeError
    refused(doubled, error, None, np.zeros((4, 16), dtype), y, remedy="")


def test_an_output_that_is_read_only(x: Array, y: Placed) -> None:
    y.array.flags.writeable = False
    found = refused(
        doubled, tn.ReadOnlyError, "Y((0, 0), (r, n)).store(x * 2)", x, y, remedy="writable"
    )
    assert "'Y'" in found.message


def test_an_output_becomes_read_only_after_a_call(x: Array) -> None:
    y = poisoned((4, 16), np.float32)
    doubled(x, y.array)
    y.before = y.raw.copy()
    y.array.flags.writeable = False
    refused(doubled, tn.ReadOnlyError, None, x, y, remedy="writable")


def test_a_view_annotated_constant_is_stored_to(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: tn.ConstView[tn.float32, 2]) -> None:  # type: ignore[type-arg, valid-type]  # made at run time
        Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])  # type: ignore[operator]  # wrong

    caret = "Y((0, 0), (4, 16)).store(X[(0, 0), (4, 16)])"
    refused(kernel, tn.ReadOnlyError, caret, x, y, remedy="tn.View")


def test_read_only_inputs_are_read(x: Array, y: Placed) -> None:
    expected = x * 2
    x.flags.writeable = False
    for given in (
        x,
        np.broadcast_to(x[:1], (4, 16)),
        np.frombuffer(x.tobytes(), np.float32).reshape(4, 16),
    ):
        for target in ("interpret", "cpu"):
            y = poisoned((4, 16), np.float32)
            doubled.compile(given, y.array, target=target)(given, y.array)
            np.testing.assert_array_equal(y.array, given * 2)
            assert y.has_intact_guards
        doubled(given, y.array)
    np.testing.assert_array_equal(y.array, expected)


def test_an_output_that_overlaps_an_input_in_part() -> None:
    memory = placed(normal((5, 16)))
    before = memory.raw.copy()
    for first, second in ((slice(0, 4), slice(1, 5)), (slice(1, 5), slice(0, 4))):
        x, y = memory.array[first], memory.array[second]
        found = refused(doubled, tn.OverlapError, None, x, y, remedy="copy")
        assert "'X'" in found.message and "'Y'" in found.message
        np.testing.assert_array_equal(memory.raw, before)
    x = memory.array[:4]
    found = refused(doubled, tn.OverlapError, None, x, x[::-1], remedy="copy")
    np.testing.assert_array_equal(memory.raw, before)


@pytest.mark.parametrize("strides", [(4, 4), (0, 4), (0, 0), (12, 8), (16, 8)], ids=str)
def test_an_output_whose_elements_overlap(strides: tuple[int, int], x: Array) -> None:
    # A call that is right comes first, so that the quick way into compiled code is tried as well.
    doubled(x, poisoned((4, 16), np.float32, "steps").array)
    doubled(x, np.empty_like(x))
    memory = poisoned((80,), np.float32)
    y = np.lib.stride_tricks.as_strided(memory.array, (4, 16), strides)
    found = refused(doubled, tn.OverlapError, None, x, y, remedy="copy")
    assert "'Y'" in found.message
    assert memory.is_unchanged


@pytest.mark.parametrize(
    "argument", ["text", [1.0, 2.0], {}, 3 + 4j, object(), lambda: None], ids=repr
)
def test_arguments_that_are_no_arrays(argument: Any, y: Placed) -> None:
    found = refused(doubled, tn.ArgumentTypeError, None, argument, y, remedy="pass")
    assert "'X'" in found.message


def test_a_wrong_number_of_arguments(x: Array, y: Placed) -> None:
    for given in ((x,), (x, x, y)):
        with pytest.raises(tn.ArgumentTypeError, match="takes 2 arguments") as caught:
            doubled(*(one.array if isinstance(one, Placed) else one for one in given))
        assert "doubled(X, Y)" in (caught.value.remedy or "")
        assert y.is_unchanged


def test_mistakes_after_a_call_that_was_right(x: Array, y: Placed) -> None:
    doubled(x, np.empty_like(x))
    refused(doubled, tn.DTypeError, None, x, poisoned((4, 16), np.int32), remedy="cast")
    refused(doubled, tn.RankError, None, x[0], y, remedy="coordinate")
    doubled(x, y.array)
    np.testing.assert_array_equal(y.array, x * 2)
