"""Kernels as users meet them: calling, options, refusals before anything is written, inspection."""

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tilenest as tn
from tests.oracle import bounds

SCALE = 2.0


@tn.kernel
def scaled(X, Y, *, block: int = 16):
    n = tn.axis("n", block)
    for step in tn.parallel(tn.cdiv(X.shape[0], block)):
        i = step.index() * block
        Y(i, n).store(X[i, n] * SCALE)


@tn.kernel
def added(X, Y, alpha, bias=None):
    n = tn.axis("n", X.shape[0])
    value = X[0, n] * alpha
    if bias is not None:
        value = value + bias[0, n]
    Y(0, n).store(value)


@tn.kernel
def copied(X, Y):
    r, c = tn.axis("r", X.shape[0]), tn.axis("c", X.shape[1])
    Y((0, 0), (r, c)).store(X[(0, 0), (r, c)])


@tn.kernel
def gemm(A, B, C, *, bm: int = 32, bn: int = 48, bk: int = 16):
    M, K = A.shape
    N = B.shape[1]
    m, n, k = tn.axis("m", bm), tn.axis("n", bn), tn.axis("k", bk)
    for block in tn.parallel(tn.cdiv(M, bm), tn.cdiv(N, bn)):
        i, j = block.index()
        acc: Any = tn.zeros((m, n), tn.float32)
        for step in block.pipeline(tn.cdiv(K, bk), window=2):
            k0 = step.index() * bk
            step.stage("load")
            a = A[(i * bm, k0), (m, k)]
            b = B[(k0, j * bn), (k, n)]
            step.stage("compute")
            acc = tn.mma(a, b, acc)
        C((i * bm, j * bn), (m, n)).store(acc)


class Guarded:
    """An output of NaN between guard bytes."""

    def __init__(self, shape: tuple[int, ...], dtype: Any = np.float32) -> None:
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        self.raw = np.full(size + 128, 0xFF, np.uint8)
        self.array = self.raw[64 : 64 + size].view(dtype).reshape(shape)

    @property
    def is_untouched(self) -> bool:
        return bool((self.raw == 0xFF).all())

    @property
    def has_guards(self) -> bool:
        return bool((self.raw[:64] == 0xFF).all() and (self.raw[-64:] == 0xFF).all())


def marked(error: tn.TileError) -> str:
    """The source text that the carets of an error stand under."""
    place = error.location
    assert place is not None
    assert place.file == __file__
    return place.source[place.column - 1 : place.end_column - 1]


@pytest.fixture
def x() -> Any:
    return np.random.default_rng(0).standard_normal(37).astype(np.float32)


# Calls -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["cpu", "interpret"])
def test_a_call_may_name_its_target(target: str, x: Any) -> None:
    y = Guarded(x.shape)
    scaled(x, y.array, target=target)
    np.testing.assert_array_equal(y.array, x * 2)
    assert y.has_guards


def test_a_repeated_call_looks_at_no_argument(x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, y = tn.kernel(scaled.__wrapped__), np.empty_like(x)
    frozen = x.copy()
    frozen.flags.writeable = False
    for source in (x, frozen, torch.from_numpy(x)):
        kernel(source, y)

    def accept(name: str, argument: Any) -> Any:
        raise AssertionError(f"{name} is looked at: {argument}")

    monkeypatch.setattr("tilenest.runtime.dispatch.accept", accept)
    for source in (x, frozen, torch.from_numpy(x), x):
        y.fill(np.nan)
        kernel(source, y)
        np.testing.assert_array_equal(y, x * 2)


def test_coinciding_arrays_may_differ_in_strides_that_do_not_matter() -> None:
    base = np.arange(5, dtype=np.float32)
    one = np.lib.stride_tricks.as_strided(base, (1, 5), (400, 4))
    copied(one, base.reshape(1, 5))
    np.testing.assert_array_equal(base, np.arange(5))


@pytest.mark.parametrize("target", ["cpu", "interpret"])
@pytest.mark.parametrize("shape", [(97, 131, 61), (1, 1, 1), (32, 16, 48), (33, 1, 49)])
def test_the_matrix_product(target: str, shape: tuple[int, int, int]) -> None:
    M, K, N = shape
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((M, K), (K, N)))
    c = Guarded((M, N))
    gemm.compile(a, b, c.array, target=target)(a, b, c.array)
    bounds.assert_within(c.array, bounds.product(a, b))
    assert c.has_guards


def test_a_call_compiles_once_for_equal_arguments(x: Any) -> None:
    kernel = tn.kernel(scaled.__wrapped__)
    for _ in range(3):
        y = Guarded(x.shape)
        kernel(x.copy(), y.array)
        np.testing.assert_array_equal(y.array, x * 2)
    assert len(kernel.variants) == 1
    longer = np.ones(38, np.float32)
    kernel(longer, longer.copy())
    assert len(kernel.variants) == 2


def test_extents_that_are_not_read_specialise_nothing() -> None:
    @tn.kernel
    def first(X, Y):
        n = tn.axis("n", 8)
        Y(0, n).store(X[0, n])

    for size in (3, 8, 20):
        y = np.full(size, np.nan, np.float32)
        first(np.ones(size, np.float32), y)
        assert np.nansum(y) == min(size, 8)
    assert len(first.variants) == 1


def test_options_choose_the_variant(x: Any) -> None:
    kernel = tn.kernel(scaled.__wrapped__)
    for block in (4, 16, 64, 4):
        y = np.empty_like(x)
        kernel(x, y, block=block)
        np.testing.assert_array_equal(y, x * 2)
    assert len(kernel.variants) == 3


def test_scalars_and_none(x: Any) -> None:
    y = np.empty_like(x)
    added(x, y, 3)
    np.testing.assert_array_equal(y, x * np.float32(3))
    added(x, y, 0.5, x)
    np.testing.assert_array_equal(y, x * np.float32(0.5) + x)
    added(x, y, np.float32(0.1))
    np.testing.assert_array_equal(y, x * np.float32(0.1))


def test_read_only_broadcast_and_strided_inputs() -> None:
    row = np.arange(5, dtype=np.float32)
    wide = np.broadcast_to(row, (3, 5))
    frozen = wide.copy()
    frozen.flags.writeable = False
    backwards = np.ascontiguousarray(wide)[::-1, ::-1]
    for source in (wide, frozen, backwards, np.asfortranarray(wide), wide[:, ::2]):
        for _ in range(2):
            y = Guarded(source.shape)
            copied(source, y.array)
            np.testing.assert_array_equal(y.array, source)
            assert y.has_guards


def test_bfloat16_travels_from_numpy_and_torch() -> None:
    values = np.arange(6).reshape(2, 3).astype(ml_dtypes.bfloat16)
    y = np.zeros_like(values)
    copied(values, y)
    np.testing.assert_array_equal(y.view(np.uint16), values.view(np.uint16))
    frozen = values.copy()
    frozen.flags.writeable = False
    copied(frozen, y)
    tensor = torch.arange(6, dtype=torch.bfloat16).reshape(2, 3)
    out = torch.zeros_like(tensor)
    copied(tensor, out)
    assert torch.equal(out, tensor)
    with pytest.raises(tn.ReadOnlyError):
        copied(values, frozen)
    bits = values.view(np.uint16)
    target = np.zeros_like(bits)
    copied(bits, target)
    np.testing.assert_array_equal(target, bits)


def test_torch_tensors(x: Any) -> None:
    source, y = torch.from_numpy(x), torch.empty(37)
    scaled(source, y)
    assert torch.equal(y, source * 2)
    with pytest.raises(tn.ArgumentTypeError, match="requires gradients"):
        scaled(source.clone().requires_grad_(), y)
    with torch.no_grad():
        scaled(source.clone().requires_grad_(), y)


def test_free_variables_are_watched(x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tn.kernel(scaled.__wrapped__)
    y = np.empty_like(x)
    kernel(x, y)
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    kernel(x, y)
    np.testing.assert_array_equal(y, x * 4)
    monkeypatch.setitem(globals(), "SCALE", 2.0)
    kernel(x, y)
    np.testing.assert_array_equal(y, x * 2)
    assert len(kernel.variants) == 2


def test_closures_are_watched(x: Any) -> None:
    factor = 3.0

    @tn.kernel
    def kernel(X, Y):
        n = tn.axis("n", X.shape[0])
        Y(0, n).store(X[0, n] * factor)

    y = np.empty_like(x)
    kernel(x, y)
    np.testing.assert_array_equal(y, x * 3)
    factor = 5.0
    kernel(x, y)
    np.testing.assert_array_equal(y, x * 5)


# Refusals ----------------------------------------------------------------------------------------


def test_outputs_that_cannot_be_written(x: Any) -> None:
    y = Guarded(x.shape)
    scaled(x, np.empty_like(x))
    y.array.flags.writeable = False
    with pytest.raises(tn.ReadOnlyError, match=r"'Y'.*read-only") as caught:
        scaled(x, y.array)
    assert "copy" in (caught.value.remedy or "")
    assert marked(caught.value) == "Y(i, n).store(X[i, n] * SCALE)"
    assert y.is_untouched


def test_outputs_whose_elements_overlap() -> None:
    raw = np.full(5, np.nan, np.float32)
    window = np.lib.stride_tricks.as_strided(raw, (3, 3), (4, 4))
    repeated = np.lib.stride_tricks.as_strided(raw, (3, 3), (0, 4))
    for output in (window, repeated, torch.from_numpy(raw)[:3].expand(3, 3)):
        with pytest.raises(tn.OverlapError, match="'Y' share memory") as caught:
            copied(np.ones((3, 3), np.float32), output)
        assert marked(caught.value) == "Y((0, 0), (r, c)).store(X[(0, 0), (r, c)])"
    assert np.isnan(raw).all()


def test_arguments_that_overlap_in_part() -> None:
    base = np.arange(40, dtype=np.float32)
    before = base.copy()
    scaled(base[:20], np.empty(20, np.float32))
    with pytest.raises(tn.OverlapError, match="'X' and 'Y' overlap") as caught:
        scaled(base[:20], base[1:21])
    assert "copy" in (caught.value.remedy or "")
    assert marked(caught.value) == "Y(i, n).store(X[i, n] * SCALE)"
    np.testing.assert_array_equal(base, before)


def test_interleaved_arguments_run() -> None:
    base = np.arange(40, dtype=np.float32)
    expected = base.copy()
    expected[1::2] = expected[::2] * 2
    for _ in range(2):
        scaled(base[::2], base[1::2])
        np.testing.assert_array_equal(base, expected)


def test_arguments_that_coincide_run_in_place(x: Any) -> None:
    y = x.copy()
    scaled(y, y)
    np.testing.assert_array_equal(y, x * 2)
    scaled(y, y[:])
    np.testing.assert_array_equal(y, x * 4)


def test_a_product_into_its_own_operand() -> None:
    a = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float32)
    before = a.copy()
    gemm(a, a, np.empty_like(a))
    with pytest.raises(tn.OverlapError, match="'A' and 'C' are the same array") as caught:
        gemm(a, before, a)
    assert "copy as 'A'" in (caught.value.remedy or "")
    assert marked(caught.value) == "A[(i * bm, k0), (m, k)]"
    np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("call", [scaled.compile, scaled.__call__])
def test_the_wrong_number_of_arguments(call: Any, x: Any) -> None:
    with pytest.raises(tn.ArgumentTypeError, match="takes 2 arguments, 1 are given") as caught:
        call(x)
    assert "scaled(X, Y)" in (caught.value.remedy or "")


def test_dtypes_that_do_not_fit() -> None:
    c = Guarded((4, 4))
    a, b = np.ones((4, 4), np.float32), np.ones((4, 4), np.float64)
    with pytest.raises(tn.DTypeError) as caught:
        gemm(a, b, c.array)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    assert c.is_untouched


def test_masked_arrays_after_plain_ones(x: Any) -> None:
    y = Guarded(x.shape)
    scaled(x, np.empty_like(x))
    with pytest.raises(tn.ArgumentTypeError, match="mask") as caught:
        scaled(np.ma.masked_array(x, x > 0), y.array)
    assert marked(caught.value).startswith("def scaled(X, Y")
    assert y.is_untouched


def test_errors_of_the_users_own_code_pass_through(x: Any) -> None:
    def helper() -> int:
        raise LookupError("of the user")

    @tn.kernel
    def kernel(X, Y):
        n = tn.axis("n", helper())
        Y(0, n).store(X[0, n])

    with pytest.raises(LookupError, match="of the user"):
        kernel(x, x.copy())


def test_faults_of_the_compiler_say_so(x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise KeyError("lost")

    monkeypatch.setattr("tilenest.runtime.loading.lower", broken)
    monkeypatch.setenv("TILENEST_CACHE", "0")
    y = Guarded(x.shape)
    with pytest.raises(tn.InternalError, match="compiling scaled failed: KeyError") as caught:
        tn.kernel(scaled.__wrapped__)(x, y.array)
    assert "report it" in (caught.value.remedy or "")
    assert y.is_untouched


def test_options_are_checked(x: Any) -> None:
    with pytest.raises(tn.ArgumentTypeError, match="no option 'blok'") as caught:
        scaled(x, x, blok=4)
    assert "block" in (caught.value.remedy or "")
    for call in (scaled, scaled.compile):
        with pytest.raises(tn.TargetError, match="'gpu' is not a target") as refused:
            call(x, x, target="gpu")
        assert "'cpu', 'interpret'" in (refused.value.remedy or "")


# Declaring ---------------------------------------------------------------------------------------


def test_defaults_of_accesses_are_checked() -> None:
    with pytest.raises(tn.CaptureError, match="bounds='none'"):
        tn.kernel(bounds="none")
    with pytest.raises(tn.CaptureError, match="decorates a int"):
        tn.kernel(3)  # type: ignore[call-overload]  # what a user may do wrong
    assert isinstance(tn.kernel(bounds="assume")(scaled.__wrapped__), tn.Kernel)


def test_a_kernel_is_known_by_its_name() -> None:
    assert scaled.__name__ == "scaled"
    assert repr(scaled) == f"<kernel {__name__}.scaled>"
    assert copy.deepcopy(scaled) is scaled
    assert pickle.dumps(scaled) == pickle.dumps(scaled)


@pytest.mark.parametrize("values", [(1, 1.0, True), (0.0, -0.0), ((1,), (1.0,)), ("1", b"1")])
def test_equal_options_of_other_types_are_other_options(values: tuple[Any, ...]) -> None:
    kernel = tn.kernel(_with_option)
    spec = tn.spec((4,), tn.float32)
    for _ in range(2):
        for value in values:
            kernel.compile(spec, option=value)
    assert len(kernel.variants) == len(values)


def test_options_made_anew_for_every_call_are_the_same_option() -> None:
    kernel = tn.kernel(_with_option)
    spec = tn.spec((4,), tn.float32)
    for number in range(200):
        kernel.compile(spec, option=(float(str(number % 2)), "a"))
    assert len(kernel.variants) == 2


def _with_option(X, *, option):
    n = tn.axis("n", 4)
    X(0, n).store(X[0, n] if option else -X[0, n])


# Inspection --------------------------------------------------------------------------------------


def test_a_compiled_kernel_shows_its_stages(x: Any) -> None:
    compiled = scaled.compile(x, np.empty_like(x))
    for form in ("candidate", "scheduled", "machine"):
        assert compiled.ir(form).startswith(f'module "{form}"')
    assert "define" in compiled.text("llvm")
    assert "__tvm_ffi_main" in compiled.text("asm")
    assert "generate code" in compiled.report()
    assert "X: tilenest.float32[37]" in repr(compiled)
    with pytest.raises(tn.TargetError, match="'loops'"):
        compiled.ir("loops")
    with pytest.raises(tn.TargetError, match="'ptx'"):
        compiled.text("ptx")


def test_a_compiled_kernel_takes_only_what_it_is_made_for(x: Any) -> None:
    compiled = scaled.compile(x, np.empty_like(x))
    y = Guarded((38,))
    with pytest.raises(tn.ArgumentTypeError, match="made for other arguments"):
        compiled(np.ones(38, np.float32), y.array)
    assert y.is_untouched
    z = np.empty_like(x)
    compiled(x, z)
    np.testing.assert_array_equal(z, x * 2)


def test_a_repeated_compiled_call_still_refuses_others(
    x: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.SCALE", 2.0)
    kernel = tn.kernel(scaled.__wrapped__)
    y, short = np.empty_like(x), Guarded((8,))
    compiled = kernel.compile(x, y)
    for _ in range(3):
        y.fill(np.nan)
        compiled(x, y)
        np.testing.assert_array_equal(y, x * 2)
    for arguments in ((x[:8], short.array), (x.astype(np.float64), short.array), (x,)):
        with pytest.raises(tn.ArgumentTypeError):
            compiled(*arguments)
    monkeypatch.setattr(f"{__name__}.SCALE", 3.0)
    with pytest.raises(tn.ArgumentTypeError, match="made for other arguments"):
        compiled(x, y)
    assert short.is_untouched
    np.testing.assert_array_equal(y, x * 2)


def test_a_captured_program_shows_its_text_and_parses_back() -> None:
    spec = tn.spec((40,), tn.float32)
    module = added.capture(spec, np.ones(40, np.float32), 2.0, None)
    text = str(module)
    assert text.startswith('module "candidate"')
    assert "tile.store" in text
    assert str(tn.parse(text)) == text
    assert repr(module) == "<candidate module of added>"


def test_variants_say_what_they_are_made_for(x: Any) -> None:
    kernel = tn.kernel(scaled.__wrapped__)
    kernel.compile(x, np.empty_like(x))
    assert [repr(variant) for variant in kernel.variants] == [
        "<variant of scaled: X: tilenest.float32[37], Y: tilenest.float32[?]>"
    ]
