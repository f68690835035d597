"""The native checks of a call: what runs, what is refused untouched, what it costs and keeps."""

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.llvm.programs import (
    Array,
    Kernel,
    Program,
    guarded,
    guards_intact,
    lane_type,
    load_kernel,
)
from tilenest.backends.llvm import (
    ENTRY,
    MISSED,
    RAN,
    ArrayArgument,
    EntryDescription,
    NoneArgument,
    ScalarArgument,
    generate,
    host_machine,
    undefined_symbols,
)
from tilenest.backends.llvm.object import compile_object
from tilenest.ir import (
    DType,
    Module,
    Value,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int64,
    uint8,
    uint64,
)
from tilenest.records import replace


def sums(rank: int) -> Module:
    """out[i] = a[i] + b[i] over the first axis, by the strides that are passed."""
    program = Program([rank] * 3)
    views = [program.view(place) for place in range(3)]
    (extent, *_) = views[2][1]

    def body(i: Value) -> list[Value]:
        places = [
            program.at(pointer, program.apply("mul", i, strides[0]), 4)
            for pointer, _, strides in views
        ]
        x, y = (program.load(place, lane_type(float32, 0)) for place in places[:2])
        program.store(program.apply("add", x, y), places[2])
        return []

    program.loop(program.number(0), extent, program.number(1), body)
    return program.finish()


_ANY = ArrayArgument(float32, (None,), (None,), is_written=False, group=0)


def three(a: ArrayArgument, b: ArrayArgument, out: ArrayArgument) -> EntryDescription:
    groups = (a, replace(b, group=1), replace(out, group=2, is_written=True))
    return EntryDescription(groups)


@pytest.fixture(scope="module")
def general() -> Kernel:
    return load_kernel(sums(1), three(_ANY, _ANY, _ANY))


def arrays(size: int = 5) -> list[Array]:
    a, b = np.arange(size, dtype=np.float32), np.full(size, 10, np.float32)
    return [guarded(a), guarded(b), guarded(np.full(size, np.nan, np.float32))]


def check_refused(kernel: Kernel, *given: Any) -> None:
    before = [one.tobytes() for one in given if isinstance(one, np.ndarray)]
    assert kernel.call(*given) == MISSED
    assert before == [one.tobytes() for one in given if isinstance(one, np.ndarray)]


def test_a_kernel_without_temporaries_needs_nothing_outside(general: Kernel) -> None:
    text = generate(sums(1), three(_ANY, _ANY, _ANY), host_machine())
    assert undefined_symbols(compile_object(text)) == frozenset()
    assert general.loaded is not None


@pytest.mark.parametrize("size", [0, 1, 5])
def test_it_runs(general: Kernel, size: int) -> None:
    a, b, out = arrays(size)
    assert general.call(a, b, out) == RAN
    np.testing.assert_array_equal(out, a + b)
    assert guards_intact(out)


def test_any_stride_is_passed_on(general: Kernel) -> None:
    a, b, out = arrays(12)
    assert general.call(a[::-2], np.broadcast_to(b, (1, 12)).copy()[0][:6], out[::2]) == RAN
    np.testing.assert_array_equal(out[::2], a[::-2] + b[:6])
    assert np.isnan(out[1::2]).all()


@pytest.mark.parametrize("count", [0, 2, 4])
def test_another_number_of_arguments_is_refused(general: Kernel, count: int) -> None:
    check_refused(general, *(arrays() + arrays())[:count])


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
    "spoil",
    [
        lambda x: x.astype(np.float64),
        lambda x: x.astype(np.float16),
        lambda x: x.view(np.int32),
        lambda x: x.astype(np.complex64),
        lambda x: x.reshape(1, -1),
        lambda x: x[0, ...],
        lambda _: 1,
        lambda _: 1.5,
        lambda _: None,
        lambda _: "text",
        memoryview,
    ],
    ids=["f64", "f16", "i32", "complex", "rank 2", "rank 0", "int", "float", "None", "str", "mem"],
)
def test_another_kind_of_argument_is_refused(
    general: Kernel, place: int, spoil: Callable[[Array], object]
) -> None:
    given: list[Any] = arrays()
    given[place] = spoil(given[place])
    check_refused(general, *given)


def test_a_misaligned_array_is_refused(general: Kernel) -> None:
    a, b, out = arrays()
    space = np.zeros(64, np.uint8)
    check_refused(general, a, space[1:21].view(np.float32), out)
    assert general.call(a, b, out) == RAN


class _Tensor(ctypes.Structure):
    """A DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("dtype", ctypes.c_uint32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Record(ctypes.Structure):
    """A TVM-FFI value: a pointer to a DLTensor has tag 7."""

    _fields_ = (("tag", ctypes.c_int64), ("value", ctypes.c_int64))


def tensor_of(array: Array) -> _Tensor:
    size, stride = (ctypes.c_int64(number) for number in (array.size, 1))
    dtype = 2 | 32 << 8 | 1 << 16
    pointers = ctypes.pointer(size), ctypes.pointer(stride)
    return _Tensor(array.ctypes.data, 1, 0, 1, dtype, *pointers, 0)


def call_with_tensors(kernel: Kernel, *tensors: _Tensor) -> int:
    """As a caller in C would."""
    kinds = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_void_p]
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(kernel.loaded.address(ENTRY))
    records = (_Record * len(tensors))(*(_Record(7, ctypes.addressof(t)) for t in tensors))
    result = _Record(-1, -1)
    assert entry(None, records, len(tensors), ctypes.byref(result)) == 0
    assert result.tag == 1
    return int(result.value)


def test_plain_tensors_and_their_byte_offset(general: Kernel) -> None:
    a, b, out = arrays(6)
    tensors = [tensor_of(one) for one in (a, b, out)]
    assert call_with_tensors(general, *tensors) == RAN
    np.testing.assert_array_equal(out, a + b)
    out[:] = 0
    for tensor in tensors:
        tensor.byte_offset, tensor.shape[0] = 8, 4
    assert call_with_tensors(general, *tensors) == RAN
    np.testing.assert_array_equal(out[2:], (a + b)[2:])
    np.testing.assert_array_equal(out[:2], 0)


@pytest.mark.parametrize(
    ("field", "value"),
    [("data", None), ("device", 2), ("dtype", 2 | 32 << 8 | 4 << 16), ("byte_offset", 2)],
)
@pytest.mark.parametrize("place", range(3))
def test_tensors_without_memory_or_elsewhere_are_refused(
    general: Kernel, place: int, field: str, value: int | None
) -> None:
    given = arrays()
    tensors = [tensor_of(one) for one in given]
    setattr(tensors[place], field, value)
    assert call_with_tensors(general, *tensors) == MISSED
    assert np.isnan(given[2]).all()


def test_an_empty_tensor_needs_no_memory(general: Kernel) -> None:
    tensors = [tensor_of(np.zeros(0, np.float32)) for _ in range(3)]
    for tensor in tensors:
        tensor.data = None
    assert call_with_tensors(general, *tensors) == RAN


def test_a_read_only_array_does_not_reach_the_entry(general: Kernel) -> None:
    a, b, out = arrays()
    b.flags.writeable = False
    with pytest.raises(BufferError):
        general.call(a, b, out)


@pytest.mark.parametrize(
    ("expected", "fits", "misses"),
    [
        (replace(_ANY, extents=(6,)), [np.zeros(6)], [np.zeros(5), np.zeros(7), np.zeros(0)]),
        (replace(_ANY, strides=(1,)), [np.zeros(6), np.zeros(0), np.zeros(4)[::4]],
         [np.zeros(12)[::2], np.zeros(6)[::-1]]),
        (replace(_ANY, strides=(2,)), [np.zeros(12)[::2], np.zeros(1)], [np.zeros(6)]),
        (replace(_ANY, unit_last=True), [np.zeros(6), np.zeros(3)[::3]], [np.zeros(12)[::2]]),
        (replace(_ANY, unit_last=False), [np.zeros(12)[::2]], [np.zeros(6)]),
        (replace(_ANY, extents=(0,), strides=(7,)), [np.zeros(0)], [np.zeros(1)]),
        (replace(_ANY, extents=(1,), strides=(7,)), [np.zeros(1)], [np.zeros(2)]),
    ],
)  # fmt: skip
def test_guards(expected: ArrayArgument, fits: list[Array], misses: list[Array]) -> None:
    """Extents, strides and the unit stride; strides that matter for nothing are not compared."""
    program = Program([1])
    kernel = load_kernel(program.finish(), EntryDescription((expected,)))
    assert [kernel.call(one.astype(np.float32) if one.base is None else as_single(one))
            for one in fits] == [RAN] * len(fits)  # fmt: skip
    for one in misses:
        check_refused(kernel, as_single(one))


def as_single(array: Array) -> Array:
    """The same layout in float32."""
    strides = [step // 2 for step in array.strides]
    if array.size == 0:
        return np.zeros(array.shape, np.float32)
    space = np.zeros(64, np.float32)
    start = 32 if strides[0] < 0 else 0
    return np.lib.stride_tricks.as_strided(space[start:], array.shape, strides)


def test_a_written_array_with_shared_elements_is_refused(general: Kernel) -> None:
    a, b, _ = arrays()
    shared = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (5,), (0,))
    check_refused(general, a, b, shared)
    assert general.call(a, shared, np.empty_like(a)) == RAN


@pytest.mark.parametrize("shift", [-4, -1, 0, 1, 4])
def test_an_output_that_overlaps_an_input_is_refused(general: Kernel, shift: int) -> None:
    space = np.arange(32, dtype=np.float32)
    a, b = space[10:15], np.ones(5, np.float32)
    check_refused(general, a, b, space[10 + shift : 15 + shift])
    check_refused(general, b, a, space[10 + shift : 15 + shift])
    check_refused(general, a[::-1], b, space[10 + shift : 15 + shift])


def test_neighbours_and_overlapping_inputs_run(general: Kernel) -> None:
    space = np.arange(32, dtype=np.float32)
    assert general.call(space[5:10], space[7:12], space[12:17]) == RAN
    assert general.call(space[10:15], space[11:16], space[5:10]) == RAN
    assert general.call(space[3:3], space[:0], space[:0]) == RAN


def test_coinciding_arguments_must_coincide_exactly() -> None:
    same = EntryDescription((_ANY, replace(_ANY, group=1), replace(_ANY, group=0, is_written=True)))
    kernel = load_kernel(sums(1), same)
    a, b, out = arrays()
    expected = a + b
    assert kernel.call(a, b, a) == RAN
    np.testing.assert_array_equal(a, expected)
    check_refused(kernel, a, b, out)
    check_refused(kernel, a, b, a[:-1])
    check_refused(kernel, a[1:], b[1:], a[:-1])
    check_refused(kernel, a, a, a)


def test_lone_groups_coincide_with_nothing() -> None:
    lone = replace(_ANY, group=-1)
    kernel = load_kernel(sums(1), EntryDescription((lone, lone, replace(lone, is_written=True))))
    a, b, out = arrays()
    assert kernel.call(a, b, out) == RAN
    check_refused(kernel, a, b, a)


_SCALARS: list[tuple[DType, list[Any], list[Any]]] = [
    (int64, [0, -1, 2**63 - 1, -(2**63)], [2**63, 1.0, True, None, "1"]),
    (int8, [0, 127, -128], [128, -129, 2**40, 1.0, True]),
    (uint8, [0, 255], [-1, 256, True]),
    (uint64, [0, 2**63 - 1], [-1, 2**63]),
    (bool_, [True, False], [1, 0.0, None]),
    (float64, [0.0, -1.5, float("inf"), 1e300], [1, True, None]),
    (float32, [1.1, 1e39, 1e-46], [1, True]),
    (float16, [1.0 + 2.0**-11 + 2.0**-40, 65519.0, 65520.0], [2]),
]


@pytest.mark.parametrize(("dtype", "fits", "misses"), _SCALARS, ids=lambda v: str(v)[:20])
def test_scalars(dtype: DType, fits: list[Any], misses: list[Any]) -> None:
    """Rounded once to the dtype; integers must be in its range."""
    program = Program([1], [dtype])
    program.store(program.scalars[0], program.view(0)[0])
    kind = np.dtype(dtype.name.rstrip("_"))
    view = ArrayArgument(dtype, (1,), (1,), is_written=True, group=0)
    kernel = load_kernel(program.finish(), EntryDescription((view, ScalarArgument(dtype))))
    for number in fits:
        out = np.zeros(1, kind)
        assert kernel.call(out, number) == RAN
        with np.errstate(over="ignore"):
            assert out[0] == np.asarray(number).astype(kind)
    for number in misses:
        check_refused(kernel, np.ones(1, kind), number)


def test_none_is_checked_and_not_passed() -> None:
    program = Program([], [bool_])
    description = EntryDescription((NoneArgument(), ScalarArgument(bool_)))
    kernel = load_kernel(program.finish(), description)
    assert kernel.call(None, True) == RAN
    check_refused(kernel, 0, True)
    check_refused(kernel, False, True)


def test_references_are_given_back(general: Kernel) -> None:
    a, b, out = arrays()
    general.call(a, b, out)
    gc.collect()
    before = [sys.getrefcount(one) for one in (a, b, out)]
    for _ in range(1000):
        general.call(a, b, out)
        general.call(a, b, a)
    assert [sys.getrefcount(one) for one in (a, b, out)] == before
