"""Every library operator on the CPU against exact arithmetic, each within a stated bound.

The bounds and why they hold are in `bounds.py`. Outputs start as NaN between guard bytes, inputs
lie among NaN, and both are looked at afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle import bounds
from tests.oracle.arrays import (
    LAYOUTS,
    Array,
    integers,
    normal,
    placed,
    poisoned,
    special,
    whole,
)
from tests.oracle.bounds import FLOATS, Expected, assert_within
from tests.oracle.compare import assert_same

SHAPES = [
    (),
    (0,),
    (1,),
    (1, 1),
    (0, 5),
    (5, 0),
    (7,),
    (17,),
    (33,),
    (65,),
    (257,),
    (4097,),
    (3, 17),
    (31, 33),
    (2, 3, 65),
    (3, 0, 2),
]
FEW = [(1,), (3, 17), (2, 3, 65)]
DTYPES_AND_SHAPES = [
    (dtype, shape) for dtype in FLOATS for shape in (SHAPES if dtype == np.float32 else FEW)
]
by_dtype = pytest.mark.parametrize(("dtype", "shape"), DTYPES_AND_SHAPES, ids=str)


def with_extras(*extras: str) -> pytest.MarkDecorator:
    """All dtypes and shapes without optional operands, few of them with each choice of operands."""
    plain = [(dtype, shape, "") for dtype, shape in DTYPES_AND_SHAPES]
    shapes = [(), (0,), (33,), (3, 17), (2, 3, 65)]
    richer = [(FLOATS[0], shape, each) for each in extras for shape in shapes]
    richer += [(dtype, (3, 17), extras[-1]) for dtype in FLOATS[1:]]
    return pytest.mark.parametrize(("dtype", "shape", "extras"), plain + richer, ids=str)


def run(function: Callable[..., Array], *arrays: Array, layout: str = "contiguous") -> Array:
    """The function's new array, which its `out=` must repeat; inputs in this layout."""
    held = [placed(array, layout) for array in arrays]
    given = [one.array for one in held]
    result = function(*given)
    out = poisoned(result.shape, result.dtype, layout)
    assert function(*given, out=out.array) is out.array
    assert_same(out.array, result)
    assert out.has_intact_guards
    assert all(one.is_unchanged for one in held)
    return result


def with_names(function: Callable[..., Array], names: Iterable[str]) -> Callable[..., Array]:
    """The function, whose operands after the first go by these names."""

    def call(x: Array, *rest: Array, **keywords: Any) -> Array:
        return function(x, **dict(zip(names, rest, strict=True)), **keywords)

    return call


def parameter(shape: tuple[int, ...], dtype: Any, seed: int) -> Array:
    return normal((shape[-1] if shape else 1,), dtype, seed)


# Elementwise -------------------------------------------------------------------------------------


@by_dtype
def test_add(dtype: Any, shape: tuple[int, ...]) -> None:
    x, y = normal(shape, dtype, 1), normal(shape, dtype, 2)
    # 24 bits hold twice 11 bits and two more, so that rounding the sum twice is rounding it once.
    assert_same(run(tn.ops.add, x, y), np.asarray(x + y))


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
def test_add_of_integers_wraps(dtype: Any) -> None:
    x, y = integers((3, 67), dtype, 1), integers((3, 67), dtype, 2)
    assert_same(run(tn.ops.add, x, y), x + y)


@pytest.mark.parametrize(
    "shapes", [((3, 1), (1, 5)), ((4, 1, 3), (2, 1)), ((), (7,)), ((0,), (1,))]
)
def test_add_broadcasts(shapes: Any) -> None:
    x, y = (normal(shape) for shape in shapes)
    assert_same(run(tn.ops.add, x, y), np.asarray(x + y))


def test_add_of_specials() -> None:
    x, y = special(257, seed=1), special(257, seed=2)
    with np.errstate(all="ignore"):
        assert_same(run(tn.ops.add, x, y), x + y)


@with_extras("b", "r", "br")
def test_gelu(dtype: Any, shape: tuple[int, ...], extras: str) -> None:
    x = normal(shape, dtype, 1) * np.asarray(3, dtype)
    bias = parameter(shape, dtype, 2) if "b" in extras else None
    residual = normal(shape, dtype, 3) if "r" in extras else None
    given = {"bias": bias, "residual": residual}
    named = {name: array for name, array in given.items() if array is not None}

    assert_within(
        run(with_names(tn.ops.gelu, named), x, *named.values()), bounds.gelu(x, bias, residual)
    )


@by_dtype
def test_swiglu(dtype: Any, shape: tuple[int, ...]) -> None:
    gate, up = normal(shape, dtype, 1) * np.asarray(5, dtype), normal(shape, dtype, 2)
    assert_within(run(tn.ops.swiglu, gate, up), bounds.swiglu(gate, up))


def test_activations_of_specials() -> None:
    x = np.asarray([np.nan, np.inf, -0.0, 0.0, 200.0, -200.0, 1e30, 1e-40], np.float32)
    ones = np.ones_like(x)
    assert_within(run(tn.ops.gelu, x), bounds.gelu(x, None, None))
    assert_within(run(tn.ops.swiglu, x, ones), bounds.swiglu(x, ones))
    # gelu(-0) = 0.5 * -0 * (1 + -0) keeps the sign, as does -0 / 2 * 1.
    assert np.signbit(tn.ops.gelu(x)[2])
    assert np.signbit(tn.ops.swiglu(x, ones)[2])


# Reductions --------------------------------------------------------------------------------------


def axes_of(shape: tuple[int, ...]) -> list[int | None]:
    return [None, *range(len(shape)), *([-1] if shape else [])]


def reduced(name: str, x: Array, axis: int | None, layout: str = "contiguous") -> Array:
    function = getattr(tn.ops, name)
    return run(lambda x, **keywords: function(x, axis, **keywords), x, layout=layout)


@by_dtype
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums(name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    x = normal(shape, dtype, 1)
    expected = {"sum": bounds.summed, "mean": bounds.averaged}[name]
    for axis in axes_of(shape):
        assert_within(reduced(name, x, axis), expected(x, axis))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "argmax", "argmin"])
def test_a_large_array_is_reduced_in_pieces(name: str) -> None:
    x = whole((5, 40_009), seed=3)
    x[3, 11], x[4, 12] = 9, -9
    x[4, 13], x[4, 14] = 9, -9
    actual = reduced(name, x, None)
    # Whole numbers of this size sum exactly; the mean is one division.
    expected = getattr(np, name)(x.astype(np.float64)).astype(actual.dtype)
    assert_same(actual, np.asarray(expected))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.bool_], ids=str)
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "argmax", "argmin"])
def test_reductions_of_integers(name: str, dtype: Any) -> None:
    kind = np.dtype(dtype)
    x = whole((3, 67), dtype) if kind.kind == "b" else integers((3, 67), dtype, 1)
    for axis in (None, 0, 1):
        actual = reduced(name, x, axis)
        expected = np.asarray(getattr(np, name)(x, axis=axis))
        if name == "mean":
            # NumPy adds the same integers as doubles in another order; both are within n roundings.
            bound = x.size * np.finfo(np.float64).eps * np.abs(x.astype(np.float64)).max()
            assert_within(actual, Expected(expected, np.full(expected.shape, bound)))
        else:
            assert_same(actual, expected)


def test_integer_sums_wrap_in_64_bits() -> None:
    x = np.full(33, np.iinfo(np.int64).max)
    with np.errstate(over="ignore"):
        assert_same(reduced("sum", x, None), np.asarray(x.sum()))


@by_dtype
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
def test_extremes(name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    x = whole(shape, dtype, 1)
    for axis in axes_of(shape)[: None if dtype == np.float32 else 2]:
        if (x.size if axis is None else x.shape[axis]) == 0:
            out = poisoned((), np.int64 if "arg" in name else dtype)
            with pytest.raises(tn.DomainError, match="empty axis"):
                getattr(tn.ops, name)(x, axis, out=out.array)
            assert out.is_unchanged
            continue
        expected = np.asarray(getattr(np, name)(x.astype(np.float64), axis=axis))
        assert_same(reduced(name, x, axis), expected.astype(np.int64 if "arg" in name else dtype))


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_of_specials(name: str, axis: int) -> None:
    x = special(20 * 33, seed=5).reshape(20, 33)
    x[np.isnan(x)] = np.inf
    x[2, 5] = x[2, 9] = x[4, 5] = np.nan
    expected = np.asarray(getattr(np, name)(x, axis=axis))
    actual = reduced(name, x, axis)
    # NumPy keeps whichever zero it saw first; that -0 is below +0 is tested apart.
    assert_same(actual + 0, expected + 0)


def test_zeros_are_ordered_by_max_and_equal_for_argmax() -> None:
    x = np.asarray([-0.0, 0.0] * 20 + [-0.0], np.float32)
    for values in (x, -x):
        assert not np.signbit(tn.ops.max(values))
        assert np.signbit(tn.ops.min(values))
        assert tn.ops.argmax(values) == 0
        assert tn.ops.argmin(values) == 0


@pytest.mark.parametrize("n", [1, 2, 16, 17, 33, 4097])
def test_all_infinite_rows(n: int) -> None:
    low, high = np.full((2, n), -np.inf, np.float32), np.full((2, n), np.inf, np.float32)
    for axis in (0, 1):
        assert (tn.ops.max(low, axis) == -np.inf).all()
        assert (tn.ops.min(high, axis) == np.inf).all()
        assert (tn.ops.argmax(low, axis) == 0).all()
        assert (tn.ops.argmin(high, axis) == 0).all()
        assert (tn.ops.sum(low, axis) == -np.inf).all()


# Rows --------------------------------------------------------------------------------------------


@by_dtype
def test_softmax(dtype: Any, shape: tuple[int, ...]) -> None:
    x = normal(shape, dtype, 1) * np.asarray(10, dtype)
    assert_within(run(tn.ops.softmax, x), bounds.softmax(x))


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
def test_softmax_along_any_axis(axis: int) -> None:
    x = normal((4, 5, 33))
    actual = run(lambda x, **keywords: tn.ops.softmax(x, axis, **keywords), x)
    assert_within(actual, bounds.softmax(x, axis))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("n", [1, 65])
def test_masked_softmax(dtype: Any, n: int) -> None:
    x = normal((6, n), dtype, 1)
    mask = np.random.default_rng(2).random((6, n)) < 0.5
    mask[0], mask[1], mask[2, 1:] = False, True, False
    # What is masked takes no part, whatever it is.
    x[~mask] = np.asarray([np.nan, np.inf, -np.inf, 1e4], dtype)[np.arange((~mask).sum()) % 4]
    actual = run(lambda x, m, **keywords: tn.ops.softmax(x, mask=m, **keywords), x, mask)
    assert_within(actual, bounds.softmax(x, mask=mask))
    assert (actual[~mask] == 0).all()


def test_a_mask_broadcasts() -> None:
    x = normal((3, 4, 33))
    for mask in (np.arange(33) % 3 == 0, np.ones((4, 1), bool), np.zeros((3, 1, 1), bool)):
        assert_within(tn.ops.softmax(x, mask=mask), bounds.softmax(x, mask=mask))


def test_softmax_of_infinite_and_nan_rows() -> None:
    x = normal((6, 33))
    x[0], x[1, 3], x[2, 4], x[3, 5:] = -np.inf, np.inf, np.nan, -np.inf
    x[4] = 1e30
    actual = run(tn.ops.softmax, x)
    assert_within(actual, bounds.softmax(x))
    assert np.isnan(actual[:3]).all()
    assert (actual[3, 5:] == 0).all()
    np.testing.assert_allclose(actual[4], 1 / 33, rtol=1e-6)


@with_extras("w", "wbr")
def test_layer_norm(dtype: Any, shape: tuple[int, ...], extras: str) -> None:
    x = normal(shape, dtype, 1) + np.asarray(2, dtype)
    weight, bias = (parameter(shape, dtype, seed) for seed in (2, 3))
    given = {"weight": weight, "bias": bias, "residual": normal(shape, dtype, 4)}
    named = {name: array for name, array in given.items() if name[0] in extras}

    expected = bounds.layer_norm(
        x, named.get("weight"), named.get("bias"), 1e-5, named.get("residual")
    )
    assert_within(run(with_names(tn.ops.layer_norm, named), x, *named.values()), expected)


@with_extras("w")
def test_rms_norm(dtype: Any, shape: tuple[int, ...], extras: str) -> None:
    x = normal(shape, dtype, 1)
    weight = parameter(shape, dtype, 2) if extras else None
    given = [x] if weight is None else [x, weight]
    assert_within(run(tn.ops.rms_norm, *given), bounds.rms_norm(x, weight, 1e-6))


# Matrix products ---------------------------------------------------------------------------------

PRODUCTS = [
    ((1, 1), (1, 1)),
    ((1, 7), (7, 1)),
    ((17, 33), (33, 65)),
    ((97, 131), (131, 61)),
    ((5, 0), (0, 3)),
    ((0, 4), (4, 3)),
    ((4, 3), (3, 0)),
    ((257, 65), (65, 33)),
    ((2, 4097), (4097, 3)),
    ((33,), (33,)),
    ((33,), (33, 5)),
    ((5, 33), (33,)),
    ((2, 3, 5, 7), (3, 7, 4)),
    ((1, 5, 7), (4, 7, 3)),
    ((0, 5, 7), (7, 3)),
]


@pytest.mark.parametrize(("left", "right"), PRODUCTS, ids=str)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = normal(left, seed=1), normal(right, seed=2)
    assert_within(run(tn.ops.matmul, a, b), bounds.product(a, b))


EPILOGUES = [
    *((FLOATS[0], each, (33, 17, 65)) for each in (None, "relu", "gelu", "silu", "tanh")),
    *((dtype, "gelu", extents) for dtype in FLOATS for extents in ((1, 1, 1), (17, 9, 33))),
]


@pytest.mark.parametrize(("dtype", "activation", "extents"), EPILOGUES, ids=str)
def test_matmul_with_an_epilogue(dtype: Any, activation: str | None, extents: Any) -> None:
    m, k, n = extents
    a, b = normal((m, k), dtype, 1), normal((k, n), dtype, 2)
    bias, residual = normal((n,), dtype, 3), normal((m, n), dtype, 4)

    def call(a: Array, b: Array, bias: Array, residual: Array, **keywords: Any) -> Array:
        extras = {"bias": bias, "residual": residual, "activation": activation}
        return np.asanyarray(tn.ops.matmul(a, b, **extras, **keywords))

    actual = run(call, a, b, bias, residual)
    assert_within(actual, bounds.product(a, b, bias, activation, residual))


def test_matmul_of_specials() -> None:
    a, b = whole((5, 33), seed=1), whole((33, 7), seed=2)
    a[1, 3], a[2, 4], b[5, 2] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        assert_same(run(tn.ops.matmul, a, b), a @ b)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_matmul_of_layouts(layout: str) -> None:
    for shapes in (((33, 17), (17, 65)), ((2, 9, 17), (17, 5))):
        a, b = (whole(shape, seed=1) for shape in shapes)
        assert_same(run(tn.ops.matmul, a, b, layout=layout), a @ b)


# Layouts, aliases, refusals ----------------------------------------------------------------------

UNARY: dict[str, tuple[Callable[..., Array], Callable[[Array], Expected]]] = {
    "gelu": (tn.ops.gelu, lambda x: bounds.gelu(x, None, None)),
    "softmax": (tn.ops.softmax, bounds.softmax),
    "layer_norm": (tn.ops.layer_norm, lambda x: bounds.layer_norm(x, None, None, 1e-5)),
    "rms_norm": (tn.ops.rms_norm, lambda x: bounds.rms_norm(x, None, 1e-6)),
}
BINARY: dict[str, tuple[Callable[..., Array], Callable[[Array, Array], Expected]]] = {
    "add": (tn.ops.add, lambda x, y: bounds.rounded(x + y, np.zeros(x.shape), x.dtype)),
    "swiglu": (tn.ops.swiglu, bounds.swiglu),
}
shapes_of_layouts = pytest.mark.parametrize("shape", [(33,), (3, 5, 17)], ids=str)


@shapes_of_layouts
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, shape: tuple[int, ...]) -> None:
    x, y = normal(shape, seed=1), normal(shape, seed=2)
    for function, expected in UNARY.values():
        assert_within(run(function, x, layout=layout), expected(x))
    for binary, expected_of_two in BINARY.values():
        assert_within(run(binary, x, y, layout=layout), expected_of_two(x, y))
    for axis in axes_of(shape):
        assert_within(reduced("sum", x, axis, layout), bounds.summed(x, axis))
        assert_same(reduced("argmax", x, axis, layout), np.asarray(np.argmax(x, axis)))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_mixed_layouts(layout: str) -> None:
    x, y = normal((7, 33), seed=1), normal((7, 33), seed=2)
    out = poisoned(x.shape, x.dtype)
    tn.ops.add(placed(x, layout).array, placed(y).array, out=out.array)
    assert_same(out.array, x + y)
    out = poisoned(x.shape, x.dtype, layout)
    tn.ops.add(x, y, out=out.array)
    assert_same(out.array, x + y)
    assert out.has_intact_guards


def test_inputs_of_stride_0() -> None:
    row, number = normal((33,)), normal((1,))
    for x in (np.broadcast_to(row, (5, 33)), np.broadcast_to(number, (5, 33))):
        for function, expected in UNARY.values():
            assert_within(function(x), expected(x))
        assert_within(tn.ops.sum(x), bounds.summed(x, None))
        assert_within(tn.ops.sum(x, 0), bounds.summed(x, 0))
        assert_same(tn.ops.matmul(x, whole((33, 3))), tn.ops.matmul(x.copy(), whole((33, 3))))


@shapes_of_layouts
@pytest.mark.parametrize("layout", LAYOUTS)
def test_results_in_place(layout: str, shape: tuple[int, ...]) -> None:
    values, other = normal(shape, seed=1), normal(shape, seed=2)
    for function, expected in UNARY.values():
        x = placed(values, layout)
        function(x.array, out=x.array)
        assert_within(x.array, expected(values))
        assert x.has_intact_guards
    for binary, expected_of_two in BINARY.values():
        x, y = placed(values, layout), placed(other, layout)
        binary(x.array, y.array, out=y.array)
        assert_within(y.array, expected_of_two(values, other))
        binary(x.array, x.array, out=x.array)
        assert_within(x.array, expected_of_two(values, values))


def test_out_that_overlaps_an_input_elsewhere() -> None:
    for function, expected in UNARY.values():
        base = normal((6, 33))
        before = base.copy()
        function(base[:-1], out=base[1:])
        assert_within(base[1:], expected(before[:-1]))
        square = normal((9, 9))
        before = square.copy()
        function(square, out=square.T)
        assert_within(square.T, expected(before))
    a = whole((9, 9))
    before = a.copy()
    assert_same(tn.ops.matmul(a, a, out=a), before @ before)


def test_out_is_checked_before_anything_is_written() -> None:
    x = normal((3, 5))
    calls: list[Callable[..., Array]] = [function for function, _ in UNARY.values()]
    calls += [lambda x, out, of=of: of(x, x, out=out) for of, _ in BINARY.values()]
    calls += [lambda x, out: tn.ops.matmul(x, x.T.copy() @ x, out=out)]
    for call in calls:
        wrong_shape, wrong_dtype = poisoned((3, 6), np.float32), poisoned((3, 5), np.float64)
        read_only = poisoned((3, 5), np.float32)
        read_only.array.flags.writeable = False
        with pytest.raises(tn.ShapeError):
            call(x, out=wrong_shape.array)
        with pytest.raises(tn.DTypeError):
            call(x, out=wrong_dtype.array)
        with pytest.raises(tn.ReadOnlyError):
            call(x, out=read_only.array)
        assert wrong_shape.is_unchanged
        assert wrong_dtype.is_unchanged
        assert read_only.is_unchanged


def test_read_only_inputs_are_accepted() -> None:
    x = normal((3, 33))
    expected = {name: function(x) for name, (function, _) in UNARY.items()}
    x.flags.writeable = False
    for name, (function, _) in UNARY.items():
        assert_same(function(x), expected[name])
    assert_same(tn.ops.add(x, x), x + x)
    assert_same(tn.ops.argmax(x, 1), np.argmax(x, 1))
