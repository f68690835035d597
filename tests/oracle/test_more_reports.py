"""More mistakes that users of other compilers reported: numbers, control flow, running.

The names and numbers say which project and report a case comes from; the texts are our own.
"""

# mypy: disable-error-code="untyped-decorator"
# `tn` is Any here, so its decorators are untyped.

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracle.arrays import Array, bfloat16, normal, poisoned, whole
from tests.oracle.compare import InOut, Out, assert_same, check, tn
from tilenest import Kernel

REPOSITORY = Path(__file__).resolve().parents[2]

# Integers and indices ----------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 1, 9, 10, 11, 24, -1, -24, 2**31 - 1, 2**40])
def test_ceiling_division_at_run_time(number: int) -> None:
    """tvm 18684, tilelang 1355: no bias that overflows; triton 954: the ceiling, not the floor."""

    @tn.kernel
    def kernel(Y: Any, n: Any) -> None:
        Y.at(0).store(tn.cdiv(n, 10))
        Y.at(1).store((n + 9) // 10)
        Y.at(2).store(-(-n // 10))

    kinds = [np.int64, np.int32] if abs(number) < 2**31 - 10 else [np.int64]
    for kind in kinds:
        (y,) = check(kernel, Out((3,), kind), kind(number))
        assert y.tolist() == [-(-number // 10)] * 3
    (y,) = check(kernel, Out((3,), np.int64), number)
    assert y.tolist() == [-(-number // 10)] * 3


def test_an_index_modulo_what_does_not_divide() -> None:
    """tilelang 2955: the modulo of a fused loop stays."""

    @tn.kernel
    def kernel(A: Any, B: Any, C: Any) -> None:
        m, n = tn.axis("m", 16), tn.axis("n", 64)
        b = tn.reindex(B[0, 7], n, lambda j: j % 7)
        C((0, 0), (m, n)).store(A[(0, 0), (m, n)] + b)

    a, b = whole((16, 64), seed=1), whole((7,), seed=2)
    (c,) = check(kernel, a, b, Out((16, 64)))
    np.testing.assert_array_equal(c, a + b[np.arange(64) % 7])


def test_division_by_negative_constants() -> None:
    """triton 619, 10930: floors, whether folded or not."""

    @tn.kernel
    def kernel(X: Any, Y: Any, d: Any) -> None:
        n = tn.axis("n", X.shape[0])
        x = X[0, n]
        for place, result in enumerate([x // -2, x % -2, x // d, x % d, (x * 0 - 7) // d]):
            Y((place, 0), (1, n)).store(result)

    for dtype in (np.int64, np.int32):
        x = np.arange(-16, 16, dtype=dtype)
        (y,) = check(kernel, x, Out((5, 32), dtype), -2)
        np.testing.assert_array_equal(y, [x // -2, x % -2, x // -2, x % -2, np.full(32, 3)])


def test_integer_division_is_not_done_in_floats() -> None:
    """taichi 969, tinygrad 16197: 299999 // 100000 is 2."""

    @tn.kernel
    def kernel(X: Any, D: Any, Y: Any) -> None:
        n = tn.axis("n", X.shape[0])
        Y((0, 0), (1, n)).store(X[0, n] // D[0, n])
        Y((1, 0), (1, n)).store(X[0, n] // 100_000)

    for dtype in (np.int32, np.int64, np.uint32):
        x = np.asarray([299_999, 300_000, 300_001, 2**31 - 1, 99_999, 0], dtype)
        (y,) = check(kernel, x, np.full(6, 100_000, dtype), Out((2, 6), dtype))
        np.testing.assert_array_equal(y, [x // 100_000] * 2)


def test_narrow_integers_wrap_before_they_widen() -> None:
    """pytorch 105264, 109105: 128 + 128 is 0 in uint8, whatever reads it."""

    @tn.kernel
    def kernel(A: Any, B: Any, Y: Any) -> None:
        n = tn.axis("n", A.shape[0])
        a, b = A[0, n], B[0, n]
        Y((0, 0), (1, n)).store((a + b).cast(tn.int16))
        Y((1, 0), (1, n)).store((a * (b + a)).cast(tn.int16))
        Y((2, 0), (1, n)).store(((a + b) // 2).cast(tn.int16))

    for dtype in (np.uint8, np.int8):
        a = np.arange(256).astype(dtype)
        for b in (a, a[::-1].copy()):
            (y,) = check(kernel, a, b, Out((3, 256), np.int16))
            with np.errstate(over="ignore"):
                meant = [(a + b), a * (b + a), (a + b) // 2]
            np.testing.assert_array_equal(y, [each.astype(np.int16) for each in meant])


def test_unsigned_and_signed_do_not_mix_into_floats() -> None:
    """numba 1386, 7888, 10261: uint64 beside int64 is an error, never a float64."""

    @tn.kernel
    def kernel(X: Any, Y: Any, n: Any) -> None:
        Y.at(0).store(X.at(0).load() + n)

    y = poisoned((1,), np.uint64)
    with pytest.raises(tn.DTypeError, match="uint64"):
        kernel(np.asarray([2**63], np.uint64), y.array, np.int64(3))
    assert y.is_unchanged
    (z,) = check(kernel, np.asarray([2**63 + 2**62 + 1], np.uint64), Out((1,), np.uint64), 3)
    assert z[0] == 2**63 + 2**62 + 4


def test_offsets_have_64_bits() -> None:
    """triton 832, 1058, FLA 1080: index times stride past 2**31."""

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        r, n = tn.axis("r", 64), tn.axis("n", 3)
        x = X[(0, 0), (r, n)]
        Y((0, 0), (r, n)).store(x + 1)
        for step in tn.serial(3):
            Y.at(63, step).store(X.at(63, step).load() + 2)

    step = 1 << 26
    # Python names MAP_NORESERVE (0x4000 on Linux) from 3.13 on.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000
    memory = np.frombuffer(mmap.mmap(-1, 64 * step, flags), np.int8)
    x = np.lib.stride_tricks.as_strided(memory, (64, 3), (step, 1))
    x[...] = np.arange(192).reshape(64, 3) % 100
    y = np.full((64, 3), -1, np.int8)
    kernel(x, y)
    np.testing.assert_array_equal(y[:63], x[:63] + 1)
    np.testing.assert_array_equal(y[63], x[63] + 2)
    kernel(y.copy(), x)
    np.testing.assert_array_equal(x[:63], y[:63] + 1)


# Floats and rounding -----------------------------------------------------------------------------


def test_bfloat16_arithmetic_rounds_to_nearest_even() -> None:
    """triton 11217: products are not truncated."""

    @tn.kernel
    def kernel(X: Any, Y: Any, Z: Any) -> None:
        n = tn.axis("n", X.shape[0])
        Z(0, n).store(X[0, n] * Y[0, n])

    for dtype in (bfloat16, np.dtype(np.float16)):
        x, y = normal((500,), dtype, 1), normal((500,), dtype, 2)
        (z,) = check(kernel, x, y, Out((500,), dtype))
        assert_same(
            z, (x.astype(np.float64) * y.astype(np.float64)).astype(np.float32).astype(dtype)
        )


def test_nan_and_infinity_become_themselves_in_bfloat16() -> None:
    """tilelang 2690, tinygrad 11843: no bias is added to the bits of a NaN."""

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        n = tn.axis("n", X.shape[0])
        Y(0, n).store(X[0, n].cast(Y.dtype))

    bits = [0x7FFFFFFF, 0x7F800001, 0xFFFFFFFF, 0xFF800001, 0x7F800000, 0xFF800000, 0x7F7FFFFF]
    bits += [0x3F808000, 0x3F818000, 0x3F808001, 0x80000000, 0x00000001, 0x00008000, 0x00018000]
    x = np.asarray(bits * 3, np.uint32).view(np.float32)
    for dtype in (bfloat16, np.dtype(np.float16)):
        (y,) = check(kernel, x, Out(x.shape, dtype))
        with np.errstate(over="ignore", invalid="ignore"):
            assert_same(y, x.astype(dtype))


@tn.kernel
def cross_entropy(X: Any, Y: Any, *, block: int) -> None:
    n = tn.axis("n", block)
    for row in tn.parallel(X.extent(0)):
        i = row.index()
        peak, total = tn.scalar(-np.inf, tn.float32), tn.scalar(0, tn.float32)
        for part in row.serial(tn.cdiv(X.extent(1), block)):
            x = X((i, part.index() * block), (1, n)).load(other=-np.inf).at(0, axis=0)
            following = tn.maximum(peak, tn.max(x, n))
            safe = tn.where(following == -np.inf, 0.0, following)
            total = total * tn.exp(peak - safe) + tn.sum(tn.exp(x - safe), n)
            peak = following
        Y.at(i).store(peak + tn.log(total))


def test_rows_that_are_infinite_but_for_one_element() -> None:
    """flash-attention 1930: the first blocks are all -inf."""
    x = np.full((2, 10_000), -np.inf, np.float32)
    x[0, 5000], x[1, 9999] = 0.25, -3
    (y,) = check(cross_entropy, x, Out((2,)), block=512)
    assert y.tolist() == [0.25, -3]
    softmax = tn.ops.softmax(x)
    np.testing.assert_array_equal(softmax, np.exp(x - x.max(1, keepdims=True)))


def test_rows_that_are_masked_whole() -> None:
    """TensorRT-LLM 17477, flashinfer 4401: a mask is not a large negative number."""
    x = np.full((3, 33), -1e30, np.float32)
    x[1, 4] = np.finfo(np.float32).min
    mask = np.ones((3, 33), bool)
    mask[0] = False
    y = tn.ops.softmax(x, mask=mask)
    assert (y[0] == 0).all()
    np.testing.assert_allclose(y[1:].sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(y[2], 1 / 33, rtol=1e-6)


# Loops, capture, control flow --------------------------------------------------------------------


@pytest.mark.parametrize("m", [0, 1, 3])
@pytest.mark.parametrize("n", [-1, 0, 2])
def test_loops_that_do_not_run(m: int, n: int) -> None:
    """triton 11519: an inner loop of no iterations inside one that runs."""

    @tn.kernel
    def kernel(Y: Any, m: Any, n: Any) -> None:
        for i in tn.serial(m):
            for j in i.serial(n):
                Y.at(i.index() * 2 + j.index()).store(1.0)
        if m > 1 and n > 1:
            Y.at(7).store(2.0)

    (y,) = check(kernel, InOut(np.zeros(8, np.float32)), m, n)
    expected = np.zeros(8)
    expected[: 2 * m if n > 0 else 0] = 1
    expected[7] = 2 * (m > 1 and n > 1)
    np.testing.assert_array_equal(y, expected)


def test_steps_other_than_one() -> None:
    """tilelang 2835: the step of a loop is kept, unrolled or not."""

    @tn.kernel
    def kernel(Y: Any, stop: Any) -> None:
        for i in range(1, 11, 3):
            Y.at(0, i).store(i)
        for step in tn.serial(range(1, 11, 3)):
            Y.at(1, step).store(step.index().cast(tn.int32))
        for i in range(1, stop, 3):
            Y.at(2, i).store(i)
        for part in tn.parallel(range(1, 11, 3)):
            Y.at(3, part).store(part.index().cast(tn.int32))

    (y,) = check(kernel, InOut(np.zeros((4, 12), np.int32)), 11)
    assert y.tolist() == [[0, 1, 0, 0, 4, 0, 0, 7, 0, 0, 10, 0]] * 4


def test_kernels_with_one_source_and_other_values() -> None:
    """numba 6093, warp 1211, cccl 6715: what a function captured is part of what is compiled."""

    def made(values: list[int], function: Callable[[Any], Any]) -> Kernel:
        @tn.kernel
        def kernel(X: Any, Y: Any) -> None:
            n = tn.axis("n", 9)
            Y(0, n).store(function(X[0, n]) + values[1])

        found: Kernel = kernel
        return found

    x = whole((9,), seed=1)
    cases: list[tuple[list[int], Callable[[Any], Any]]] = [
        ([100, 200], lambda v: v * 2),
        ([100, 300], lambda v: v * 2),
        ([100, 200], lambda v: v - 1),
    ]
    kernels = [made(*case) for case in cases]
    for _ in range(2):
        for kernel, (values, function) in zip(kernels, cases, strict=True):
            (y,) = check(kernel, x, Out((9,)))
            np.testing.assert_array_equal(y, function(x) + values[1])
    loop = [made([0, number], abs) for number in range(4)]
    assert [check(kernel, x, Out((9,)))[0][0] - abs(x[0]) for kernel in loop] == [0, 1, 2, 3]


def test_a_number_added_to_twice_in_a_loop() -> None:
    """numba 4922, 7344, 9829: carried in order, or refused where iterations are independent."""

    @tn.kernel
    def ordered(Y: Any, n: Any) -> None:
        c = 1
        for step in tn.serial(n):
            c = c + 1
            if step.index() % 2 == 0:
                c = c + 10
        Y.at(0).store(c)

    (y,) = check(ordered, Out((1,), np.int64), 9)
    assert y[0] == 1 + 9 + 50

    @tn.kernel
    def independent(Y: Any) -> None:
        c = 1
        for block in tn.parallel(9):
            c = c + 1
            Y.at(block).store(c)

    out = poisoned((9,), np.int64)
    with pytest.raises(tn.AncestorUpdateError):
        independent(out.array)
    assert out.is_unchanged


# Running -----------------------------------------------------------------------------------------

SHARED_CACHE = """
import numpy as np
import tilenest as tn

x = np.arange(-8, 9, dtype=np.float32)
for _ in range(3):
    assert np.array_equal(tn.ops.add(x, x), x * 2)
    assert tn.ops.sum(x.reshape(1, -1), 1) == 0
"""


def start(folder: Path) -> subprocess.Popen[str]:
    environment = os.environ | {
        "PYTHONPATH": str(REPOSITORY / "src"),
        "TILENEST_CACHE_DIR": str(folder),
    }
    command = [sys.executable, "-W", "ignore", "-c", SHARED_CACHE]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def test_one_cache_for_several_processes_and_files_cut_short(tmp_path: Path) -> None:
    """triton 2688, 11512, 8923: neither a race nor a torn file is ever seen by a user."""
    for turn in range(2):
        processes = [start(tmp_path) for _ in range(3)]
        for process in processes:
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 0, errors
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert files
        for place, path in enumerate(files):
            data = path.read_bytes()
            path.write_bytes(data[: len(data) // (place % 3 + 1)] if turn else data[:-1])
    assert start(tmp_path).wait(120) == 0


@pytest.mark.parametrize(("shape", "stride"), [((33, 61), 247), ((5, 17), 37), ((2, 1185), 1187)])
def test_rows_that_are_not_aligned(shape: tuple[int, int], stride: int) -> None:
    """triton 1297, 1330: no access assumes more alignment than an element's."""
    memory = whole((shape[0] * stride + 3,), seed=1)
    for offset in range(3):
        x = np.lib.stride_tricks.as_strided(memory[offset:], shape, (4 * stride, 4))
        assert_same(tn.ops.add(x, x), x + x)
        assert_same(tn.ops.max(x, 1), x.max(1))
        assert_same(tn.ops.matmul(x, x.T), x @ x.T)


def test_read_only_arrays_are_inputs() -> None:
    """numpy 20742, nanobind 42: accepted where never written, refused where written."""
    x: Array = normal((4, 33))
    x.flags.writeable = False
    y = poisoned(x.shape, x.dtype)
    assert_same(tn.ops.add(x, x, out=y.array), x + x)
    with pytest.raises(tn.ReadOnlyError):
        tn.ops.add(x, x, out=x)
