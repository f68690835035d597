"""Kernels in the public language, CPU against interpreter: what single operations mean.

Reductions under every policy, integer arithmetic, casts, masks, bounds, scalars. Bits are equal,
but for trees over floats (a bound from the extent) and transcendental functions (2 ulp).
"""

# mypy: disable-error-code="untyped-decorator"
# `tn` is Any here, so its decorators are untyped.

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle.arrays import LAYOUTS, bfloat16, integers, normal, special, whole
from tests.oracle.compare import In, InOut, Out, assert_same, check, tn

POLICIES = list(tn.reduction)
FOLDS = [tn.reduction.fold_left, tn.reduction.fold_right]

# Reductions --------------------------------------------------------------------------------------


@tn.kernel
def reduce_over(X: Any, Y: Any, *, axes: tuple[int, ...], reducer: Any, policy: Any) -> None:
    dims = tuple(tn.axis(f"d{place}", extent) for place, extent in enumerate(X.shape))
    x = X[(0,) * len(dims), dims]
    y = tn.reduce(x, tuple(dims[axis] for axis in axes), reducer, policy=policy)
    kept = tuple(dim for place, dim in enumerate(dims) if place not in axes)
    Y((0,) * max(len(kept), 1), kept or 1).store(y)


FLOAT_REDUCERS = [tn.add, tn.multiply, tn.maximum, tn.minimum]
SHAPES_AND_AXES = [
    ((1,), (0,)),
    ((33,), (0,)),
    ((257,), (0,)),
    ((5, 17), (0,)),
    ((5, 17), (1,)),
    ((5, 17), (0, 1)),
    ((3, 4, 18), (1,)),
    ((3, 4, 18), (0, 2)),
    ((0,), (0,)),
    ((4, 0), (1,)),
]


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n for place, n in enumerate(shape) if place not in axes) or (1,)


@pytest.mark.parametrize(("shape", "axes"), SHAPES_AND_AXES, ids=str)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.value)
@pytest.mark.parametrize("reducer", [tn.add, tn.maximum], ids=lambda reducer: reducer.name)
def test_reductions_of_floats(
    reducer: Any, policy: Any, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    x = normal(shape, seed=1)
    extent = int(np.prod([shape[axis] for axis in axes]))
    is_free = reducer is tn.add and policy not in FOLDS
    # Two orders of n - 1 additions, each off by at most half an epsilon of the sum of magnitudes.
    magnitude = np.abs(x).sum(axes).max(initial=0)
    slack = extent * float(np.finfo(np.float32).eps * magnitude) if is_free else 0.0
    out = Out(kept_shape(shape, axes))
    (y,) = check(reduce_over, x, out, axes=axes, reducer=reducer, policy=policy, slack=slack)
    if extent and reducer is tn.maximum:
        np.testing.assert_array_equal(y.reshape(-1), x.max(axes).reshape(-1))


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.value)
@pytest.mark.parametrize("reducer", FLOAT_REDUCERS, ids=lambda reducer: reducer.name)
def test_exact_sums_are_equal_under_every_policy(reducer: Any, policy: Any) -> None:
    x = whole((4, 300), seed=1) if reducer is not tn.multiply else 2.0 ** whole((4, 300), seed=1)
    if reducer is tn.multiply:
        x[:, 100:] = 1
    (y,) = check(reduce_over, x, Out((4,)), axes=(1,), reducer=reducer, policy=policy)
    np.testing.assert_array_equal(y, getattr(np, reducer.name).reduce(x, 1))


@pytest.mark.parametrize("reducer", [tn.maximum, tn.minimum], ids=lambda reducer: reducer.name)
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.value)
@pytest.mark.parametrize("axis", [0, 1])
def test_extremes_of_specials(reducer: Any, policy: Any, axis: int) -> None:
    x = special(20 * 37).reshape(20, 37)
    x[:5], x[:, :5] = np.nan_to_num(x[:5], nan=-0.0), np.nan_to_num(x[:, :5], nan=0.0)
    check(
        reduce_over, x, Out((37, 20)[axis : axis + 1]), axes=(axis,), reducer=reducer, policy=policy
    )


INTEGER_REDUCERS = [
    *FLOAT_REDUCERS,
    tn.bitwise_and,
    tn.bitwise_or,
    tn.bitwise_xor,
]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64], ids=str)
@pytest.mark.parametrize("reducer", INTEGER_REDUCERS, ids=lambda reducer: reducer.name)
def test_reductions_of_integers(reducer: Any, dtype: Any) -> None:
    x = integers((6, 67), dtype, 1)
    for axis in (0, 1):
        out = Out((67, 6)[axis : axis + 1], dtype)
        policy = POLICIES[axis * 2]
        (y,) = check(reduce_over, x, out, axes=(axis,), reducer=reducer, policy=policy)
        np.testing.assert_array_equal(y, getattr(np, reducer.name).reduce(x, axis, dtype=dtype))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)], ids=str)
def test_reductions_of_bools(name: str, axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).random((5, 35)) < 0.8
    x[1], x[:, 3] = True, False
    out = Out(kept_shape(x.shape, axes), np.bool_)
    (y,) = check(
        reduce_over, x, out, axes=axes, reducer=getattr(tn, name), policy=tn.reduction.ordered_tree
    )
    np.testing.assert_array_equal(y.reshape(-1), getattr(np, name).reduce(x, axes).reshape(-1))


@tn.kernel
def own_folds(X: Any, Y: Any, Z: Any, n: Any, *, policy: Any) -> None:
    w = tn.axis("w", X.shape[1])
    total, seen = tn.full(w, 1.0, tn.float32), tn.zeros(w, tn.int32)
    for step in tn.root().reduce(n, policy=policy):
        x = X[(step.index(), 0), (1, w)].at(0, axis=0)
        total = total * 0.5 + x
        seen = seen + (x > total).cast(tn.int32)
    Y(0, w).store(total)
    Z(0, w).store(seen)


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("policy", FOLDS, ids=lambda policy: policy.value)
def test_folds_of_any_body(policy: Any, n: int) -> None:
    x = normal((5, 35), seed=1)
    y, z = check(own_folds, x, Out((35,)), Out((35,), np.int32), n, policy=policy)
    total, seen = np.ones(35, np.float32), np.zeros(35, np.int32)
    for row in x[:n] if policy is tn.reduction.fold_left else x[:n][::-1]:
        total = total * np.float32(0.5) + row
        seen += row > total
    np.testing.assert_array_equal(y, total)
    np.testing.assert_array_equal(z, seen)


@tn.kernel
def statistics(X: Any, S: Any, P: Any, *, n: int) -> None:
    count = tn.axis("n", n)
    for row in tn.parallel(X.extent(0)):
        i = row.index()
        x = X[(i, 0), (1, count)].at(0, axis=0)
        total, peak, low = (tn.scalar(number, tn.float32) for number in (0, -9, 9))
        for c in row.reduce(count):
            total = total + x.at(c) * 2
            peak = tn.maximum(x.at(c), peak)
            low = tn.minimum(low, x.at(c))
        S.at(i).store(total)
        P((i, 0), (1, count)).store(x * (peak - low))


@pytest.mark.parametrize("shape", [(1, 1), (3, 33), (2, 0), (5, 300)], ids=str)
def test_a_product_of_independent_states(shape: tuple[int, int]) -> None:
    x = whole(shape, seed=1)
    s, p = check(statistics, x, Out(shape[:1]), Out(shape), n=shape[1])
    np.testing.assert_array_equal(s, 2 * x.sum(1))
    if shape[1]:
        np.testing.assert_array_equal(p, x * (x.max(1) - x.min(1))[:, None])


@tn.kernel
def seeded(X: Any, Y: Any, start: Any, *, policy: Any) -> None:
    m, n = tn.axis("m", X.shape[0]), tn.axis("n", X.shape[1])
    x = X[(0, 0), (m, n)]
    Y((0, 0), (1, m)).store(tn.reduce(x, n, tn.add, init=start, policy=policy))
    own = tn.reduce(x, n, lambda s, e: s * 0.5 - e, init=2.0, policy=policy)
    Y((1, 0), (1, m)).store(own)


@pytest.mark.parametrize("policy", FOLDS, ids=lambda policy: policy.value)
@pytest.mark.parametrize("extent", [0, 1, 18])
def test_seeds(policy: Any, extent: int) -> None:
    x = normal((3, extent), seed=1)
    (y,) = check(seeded, x, Out((2, 3)), 1.25, policy=policy)
    if extent == 0:
        np.testing.assert_array_equal(y, [[1.25] * 3, [2.0] * 3])


# Elementwise -------------------------------------------------------------------------------------


@tn.kernel
def divisions(X: Any, Y: Any, Q: Any, R: Any, S: Any, T: Any) -> None:
    n = tn.axis("n", X.shape[0])
    x, y = X[0, n], Y[0, n]
    Q(0, n).store(x // y)
    R(0, n).store(x % y)
    S(0, n).store(x // -3 if X.dtype in (tn.int8, tn.int16, tn.int32, tn.int64) else x // 3)
    T(0, n).store(x % 7)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
)
def test_division_is_pythons_and_never_traps(dtype: Any) -> None:
    kind = np.dtype(dtype)
    limits = np.iinfo(dtype)
    numbers = [limits.min, limits.min + 1, limits.max, 0, 1, 2, 3, 7]
    numbers += [-1, -2, -3, -7] if kind.kind == "i" else [limits.max - 1, limits.max // 2]
    edges = np.asarray(numbers, kind)
    x, y = (part.reshape(-1) for part in np.meshgrid(edges, edges))
    x, y = np.append(x, integers((50,), dtype, 1)), np.append(y, integers((50,), dtype, 2))
    q, r, s, t = check(divisions, x, y, *(Out(x.shape, dtype) for _ in range(4)))

    def wrapped(number: int) -> int:
        return int(np.asarray(number % (1 << limits.bits), f"u{kind.itemsize}").astype(kind))

    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    assert q.tolist() == [wrapped(a // b) if b else 0 for a, b in pairs]
    assert r.tolist() == [wrapped(a % b) if b else 0 for a, b in pairs]
    divisor = -3 if kind.kind == "i" else 3
    assert s.tolist() == [a // divisor for a in x.tolist()]
    assert t.tolist() == [a % 7 for a in x.tolist()]


@tn.kernel
def integer_algebra(X: Any, Y: Any, Z: Any) -> None:
    n = tn.axis("n", X.shape[0])
    x, y = X[0, n], Y[0, n]
    results = [x + y, x - y, x * y, -x, abs(x), ~x, x & y, x | y, x ^ y, x << y, x >> y]
    results += [tn.minimum(x, y), tn.maximum(x, y), tn.clip(x, 3, 90), x**3]
    results += [tn.where(x < y, x, 7), tn.where(x == y, 1, y)]
    for place, result in enumerate(results):
        Z((place, 0), (1, n)).store(result)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8, np.uint32], ids=str)
def test_integers_wrap_at_their_width(dtype: Any) -> None:
    x, y = integers((70,), dtype, 1), integers((70,), dtype, 2)
    y[10:40] = np.arange(-5 if np.dtype(dtype).kind == "i" else 0, 70)[:30]
    (z,) = check(integer_algebra, x, y, Out((17, 70), dtype))
    with np.errstate(over="ignore"):
        for place, expected in enumerate((x + y, x - y, x * y, -x, np.abs(x), ~x, x & y, x | y)):
            np.testing.assert_array_equal(z[place], expected)
    bits = np.iinfo(dtype).bits
    inside = (y >= 0) & (y < bits)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(z[9][inside], (x[inside] << y[inside]))
    np.testing.assert_array_equal(z[10][inside], x[inside] >> y[inside])
    past = y >= bits
    assert (z[9][past] == 0).all()
    np.testing.assert_array_equal(z[10][past], np.where(x < 0, -1, 0).astype(dtype)[past])


@tn.kernel
def float_algebra(X: Any, Y: Any, Z: Any, B: Any) -> None:
    n = tn.axis("n", X.shape[0])
    x, y = X[0, n], Y[0, n]
    results = [x + y, x - y, x * y, x / y, -x, abs(x), tn.fma(x, y, x), tn.sqrt(x)]
    results += [tn.floor(x), tn.ceil(x), tn.trunc(x), tn.rint(x), tn.fmax(x, y), tn.fmin(x, y)]
    results += [tn.minimum(x, y), tn.maximum(x, y), tn.clip(x, -1.5, 2.0), x * y + x, 1 / x]
    results += [tn.maximum(x, y, propagate_nan=False), tn.where(x <= y, x, y), x**5]
    for place, result in enumerate(results):
        Z((place, 0), (1, n)).store(result)
    tests = [x == y, x != y, x < y, x <= y, x > y, x >= y, x != x, tn.isinf(x), tn.isfinite(x)]
    for place, result in enumerate(tests):
        B((place, 0), (1, n)).store(result)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, bfloat16], ids=str)
def test_float_arithmetic_of_specials(dtype: Any) -> None:
    x, y = special(300, dtype, 1), special(300, dtype, 2)
    y[:100] = x[:100]
    z, b = check(float_algebra, x, y, Out((22, 300), dtype), Out((9, 300), np.bool_))
    with np.errstate(all="ignore"):
        for place, expected in enumerate((x + y, x - y, x * y, x / y)):
            assert_same(z[place], expected)
        np.testing.assert_array_equal(b[:6], [x == y, x != y, x < y, x <= y, x > y, x >= y])


TRANSCENDENTAL = [
    "rsqrt",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log1p",
    "tanh",
    "erf",
    "sin",
    "cos",
]


@tn.kernel
def transcendental(X: Any, Z: Any) -> None:
    n = tn.axis("n", 256)
    for part in tn.parallel(tn.cdiv(X.extent(0), 256)):
        start = part.index() * 256
        x = X[start, n]
        for place, name in enumerate(TRANSCENDENTAL):
            Z((place, start), (1, n)).store(getattr(tn, name)(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=str)
def test_transcendental_functions(dtype: Any) -> None:
    generator = np.random.default_rng(3)
    spread = generator.choice([-1, 1], 1500) * 10.0 ** generator.uniform(-30, 30, 1500)
    near = [1 + 1e-6 * normal((200,), seed=4), 700 * normal((300,), seed=5), special(300, dtype)]
    x = np.concatenate([spread, *near]).astype(dtype)
    check(transcendental, x, Out((len(TRANSCENDENTAL), x.size), dtype), ulps=2)


@tn.kernel
def places(X: Any, Y: Any, Z: Any) -> None:
    m, n = tn.axis("m", X.shape[0]), tn.axis("n", X.shape[1])
    rows, columns = tn.iota(m), tn.iota(n)
    x = X[(0, 0), (m, n)]
    lower = tn.where(rows >= columns, x, 0)
    Y((0, 0), (m, n)).store(tn.where((rows + columns) % 3 == 1, lower, -1))
    Z((0, 0), (m, n)).store(tn.map((m, n), lambda i, j: (i * 3 - j) // 2))


@pytest.mark.parametrize("shape", [(1, 1), (17, 33), (33, 5), (0, 4)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int32], ids=str)
def test_iota_and_where(shape: tuple[int, int], dtype: Any) -> None:
    x = whole(shape, dtype, 1)
    y, z = check(places, x, Out(shape, dtype), Out(shape, np.int64))
    i, j = np.indices(shape)
    np.testing.assert_array_equal(y, np.where((i + j) % 3 == 1, np.where(i >= j, x, 0), -1))
    np.testing.assert_array_equal(z, (i * 3 - j) // 2)


# Accesses ----------------------------------------------------------------------------------------


@tn.kernel
def masked(X: Any, M: Any, Y: Any, n: Any) -> None:
    w = tn.axis("w", 40)
    for row in tn.parallel(X.extent(0)):
        i = row.index()
        keep = M[(i, 0), (1, w)] & (tn.iota(w) < n)
        x = X((i, -1), (1, w), mask=keep).load(other=-5)
        Y((i, 2), (1, w), mask=~keep | (x > 0)).store(x * 2)


@pytest.mark.parametrize("n", [0, 7, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float64], ids=str)
def test_masked_loads_and_stores(n: int, dtype: Any) -> None:
    x, mask = whole((4, 37), dtype, 1), whole((4, 39), np.int8, 2) > 0
    before = whole((4, 36), dtype, 3)
    (y,) = check(masked, x, mask, InOut(before), n)
    expected = before.copy()
    for i, w in np.ndindex(4, 40):
        keep = w < 39 and mask[i, w] and w < n
        value = -5 if not keep or not 0 <= w - 1 < 37 else x[i, w - 1]
        if w + 2 < 36 and (not keep or value > 0):
            expected[i, w + 2] = value * 2
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_masked_accesses_of_layouts(layout: str) -> None:
    x, mask = whole((4, 37), seed=1), whole((4, 39), np.int8, 2) > 0
    check(masked, In(x, layout), In(mask, layout), InOut(whole((4, 36), seed=3), layout), 20)


@tn.kernel
def checked(X: Any, Y: Any, start: Any, *, bounds: str) -> None:
    n = tn.axis("n", 16)
    Y(0, n, bounds="zero").store(X(start, n, bounds=bounds).load())


def test_bounds_that_hold() -> None:
    x = whole((40,), seed=1)
    for bounds in ("zero", "assume", "check"):
        for start in (0, 5, 24):
            (y,) = check(checked, x, Out((16,)), start, bounds=bounds)
            np.testing.assert_array_equal(y, x[start : start + 16])


@pytest.mark.parametrize("start", [-40, -1, 25, 40, 2**62, -(2**62)])
def test_bounds_that_do_not_hold(start: int) -> None:
    x = whole((40,), seed=1)
    (y,) = check(checked, x, Out((16,)), start, bounds="zero")
    places = [start + k for k in range(16)]
    np.testing.assert_array_equal(y, [x[p] if 0 <= p < 40 else 0 for p in places])
    for target in ("cpu", "interpret"):
        y = np.full(16, np.nan, np.float32)
        call = checked.compile(x, y, start, target=target, bounds="check")
        with pytest.raises(tn.OutOfBounds, match="X"):
            call(x, y, start)


@tn.kernel
def scalars(X: Any, Y: Any, Z: Any, i: Any, a: Any, b: Any, flag: Any) -> None:
    x = X.at(i).load()
    Y.at(0).store(x * a + b)
    Y.at(1).store(X.at(i - 100).load(other=a))
    Y.at(X.extent(0)).store(9.0)
    Y.at(2).store(tn.where(flag, x, -x))
    total = x
    for step in tn.serial(i):
        total = total + X.at(step).load()
    Y.at(3).store(total)
    Z.at(0).store(i // 2 - X.stride(0) * X.extent(0))
    Z.at(1).store(max(i, 3) + min(i, abs(i - 5), 2))
    Z.at(2).store(tn.cdiv(i, 4))


@pytest.mark.parametrize("i", [0, 1, 6, 39])
def test_scalars(i: int) -> None:
    x = whole((40,), seed=1)
    given = (i, 0.1, np.float32(0.2), np.bool_(i % 2 == 0))
    y, z = check(scalars, x, InOut(np.zeros(40, np.float32)), Out((3,), np.int64), *given)
    assert y[:4].tolist() == [
        x[i] * np.float32(0.1) + np.float32(0.2),
        np.float32(0.1),
        x[i] if i % 2 == 0 else -x[i],
        x[: i + 1].sum() if i == 0 else x[i] + x[:i].sum(),
    ]
    assert z.tolist() == [i // 2 - 40, max(i, 3) + min(i, abs(i - 5), 2), -(-i // 4)]


@pytest.mark.parametrize(
    "number", [3, 2.5, np.float64(2.5), np.int32(3), -0.0, float("nan"), 1e300]
)
def test_run_time_numbers(number: Any) -> None:
    @tn.kernel
    def scaled(X: Any, Y: Any, a: Any) -> None:
        n = tn.axis("n", 33)
        Y(0, n).store(X[0, n] * a)

    weak = isinstance(number, float | int) and not isinstance(number, np.generic)
    dtype = np.float32 if weak else number.dtype
    x = whole((33,), dtype, 1)
    (y,) = check(scaled, x, Out((33,), dtype), number)
    with np.errstate(over="ignore", invalid="ignore"):
        assert_same(y, x * np.asarray(number).astype(dtype))
