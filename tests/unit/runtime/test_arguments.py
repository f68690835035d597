"""The table of arguments, a test a row: what is accepted as what, what is refused with which way
out."""

import re
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

from tilenest.capture import ArraySpec, NoneSpec, ScalarSpec
from tilenest.errors import ArgumentTypeError, DTypeError, RankError, TileError
from tilenest.ir import DTYPES, bfloat16, bool_, float32, uint64
from tilenest.runtime.arguments import Accepted, NotPreparedError, accept

FLOATS = np.arange(12, dtype=np.float32).reshape(3, 4)
BFLOATS = np.arange(4).astype(ml_dtypes.bfloat16)


def tensor_from(accepted: Accepted, argument: Any) -> Any:
    """What the compiled function would get."""
    return argument if accepted.prepare is None else accepted.prepare(argument)


def read_only(array: Any) -> Any:
    array = array.copy()
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "dtype", [dtype for dtype in DTYPES if dtype.kind != "x" and dtype is not bfloat16]
)
def test_numpy_arrays_of_every_dtype(dtype: Any) -> None:
    array = np.zeros((2, 3), dtype.name.rstrip("_"))
    accepted = accept("A", array)
    assert accepted.spec == ArraySpec(dtype, (2, 3), (3, 1))
    assert accepted.prepare is None
    assert accepted.write_refusal is None
    assert accepted.memory is not None
    assert accepted.memory.address == array.ctypes.data


@pytest.mark.parametrize(
    ("array", "shape", "strides"),
    [
        (FLOATS.T, (4, 3), (1, 4)),
        (FLOATS[::-1, ::2], (3, 2), (-4, 2)),
        (FLOATS[1, 2:3].reshape(()), (), ()),
        (FLOATS[:0], (0, 4), (4, 1)),
    ],
)
def test_numpy_views(array: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    assert accept("A", array).spec == ArraySpec(float32, shape, strides)


@pytest.mark.parametrize(
    "array", [read_only(FLOATS), np.broadcast_to(FLOATS[0], (5, 4)), FLOATS[None].view()]
)
def test_read_only_arrays_can_be_read(array: Any) -> None:
    array.flags.writeable = False
    accepted = accept("A", array)
    tensor = tensor_from(accepted, array)
    assert tensor.data_ptr() == array.ctypes.data
    assert tuple(tensor.shape) == array.shape
    assert accepted.write_refusal is not None
    assert "read-only" in accepted.write_refusal[0]


@pytest.mark.parametrize("array", [BFLOATS, read_only(BFLOATS), BFLOATS[::2], BFLOATS[1:1]])
def test_bfloat16_arrays(array: Any) -> None:
    accepted = accept("A", array)
    assert accepted.spec.kind == (bfloat16, 1)
    tensor = tensor_from(accepted, array)
    assert str(tensor.dtype) == "bfloat16"
    assert tuple(tensor.shape) == array.shape
    if array.size:
        assert tensor.data_ptr() == array.ctypes.data
    assert (accepted.write_refusal is None) is array.flags.writeable


def test_the_way_of_writable_bfloat16_arrays_fits_no_other() -> None:
    prepare = accept("A", BFLOATS).prepare
    assert prepare is not None
    for other in (read_only(BFLOATS), FLOATS, np.zeros(4, np.uint16)):
        with pytest.raises(NotPreparedError):
            prepare(other)


class Subclass(np.ndarray):
    pass


def test_numpy_subclasses() -> None:
    assert accept("A", FLOATS.view(Subclass)).spec == ArraySpec(float32, (3, 4), (4, 1))


def unaligned() -> Any:
    return np.zeros(17, np.uint8)[1:].view(np.float32)


def field_of_packed_record() -> Any:
    return np.zeros(4, np.dtype([("a", "f4"), ("b", "i1")]))["a"]


@pytest.mark.parametrize(
    ("argument", "error", "message", "remedy"),
    [
        (unaligned, ArgumentTypeError, "not aligned", "copy"),
        (field_of_packed_record, ArgumentTypeError, "not aligned", "copy"),
        (lambda: FLOATS.astype(">f4"), ArgumentTypeError, "'>f4'.*order", "newbyteorder"),
        (lambda: np.ma.masked_array(FLOATS, FLOATS > 1), ArgumentTypeError, "mask", "filled"),
        (lambda: FLOATS.astype(object), DTypeError, "object", "float32"),
        (lambda: FLOATS.astype(complex), DTypeError, "complex128", "float32"),
        (lambda: np.zeros(3, "M8[s]"), DTypeError, "datetime64", "float32"),
        (lambda: np.zeros(3, "f4,i4"), DTypeError, "void64", "float32"),
        (lambda: np.zeros(3, np.longdouble), DTypeError, "longdouble|float128", "float32"),
        (lambda: np.zeros((1,) * 33), RankError, "33 axes", "32"),
        (lambda: 1 << 63, ArgumentTypeError, "64 bits", "smaller"),
        (lambda: np.uint64(1 << 63), ArgumentTypeError, "signed 64-bit", "array"),
        (lambda: np.complex64(1), DTypeError, "complex64", "float32"),
        (lambda: 1j, ArgumentTypeError, "complex", "array"),
        (lambda: "text", ArgumentTypeError, "str", "array"),
        (lambda: [1.0, 2.0], ArgumentTypeError, "list", r"np\.asarray\(A\)"),
        (lambda: memoryview(b"abc"), ArgumentTypeError, "memoryview", "array"),
    ],
)
def test_what_is_refused(
    argument: Callable[[], Any], error: type[TileError], message: str, remedy: str
) -> None:
    with pytest.raises(error, match="argument 'A'") as caught:
        accept("A", argument())
    assert re.search(message, caught.value.message)
    assert re.search(remedy, caught.value.remedy or "")


@pytest.mark.parametrize(
    ("argument", "spec"),
    [
        (True, ScalarSpec(None, "b")),
        (7, ScalarSpec(None, "i")),
        (0.5, ScalarSpec(None, "f")),
        (np.float32(0.5), ScalarSpec(float32)),
        (np.bool_(True), ScalarSpec(bool_)),
        (np.uint64(7), ScalarSpec(uint64)),
        (ml_dtypes.bfloat16(2.5), ScalarSpec(bfloat16)),
        (None, NoneSpec()),
    ],
)
def test_scalars_and_none(argument: Any, spec: Any) -> None:
    accepted = accept("n", argument)
    assert accepted.spec == spec
    passed = tensor_from(accepted, argument)
    assert passed == argument
    assert type(passed) in (bool, int, float, type(None))


class Mode(IntEnum):
    FAST = 3


def test_members_of_an_enumeration_are_numbers() -> None:
    accepted = accept("mode", Mode.FAST)
    assert accepted.spec == ScalarSpec(None, "i")
    assert tensor_from(accepted, Mode.FAST) == 3
    with pytest.raises(TileError, match="does not fit 64 bits"):
        accept("mode", type("Large", (int,), {})(2**63))


TORCH_DTYPES = ["float16", "bfloat16", "float32", "float64", "int8", "int32", "int64", "bool"]


@pytest.mark.parametrize("name", TORCH_DTYPES)
def test_torch_tensors(name: str) -> None:
    tensor = torch.zeros(3, 4, dtype=getattr(torch, name)).T
    accepted = accept("A", tensor)
    assert isinstance(accepted.spec, ArraySpec)
    assert accepted.spec.dtype.name.rstrip("_") == name
    assert (accepted.spec.shape, accepted.spec.strides) == ((4, 3), (1, 4))
    assert tensor_from(accepted, tensor) is tensor
    assert accepted.memory is not None
    assert accepted.memory.address == tensor.data_ptr()


def test_torch_tensors_that_follow_gradients() -> None:
    tensor = torch.zeros(3, requires_grad=True)
    with pytest.raises(ArgumentTypeError, match="requires gradients") as caught:
        accept("A", tensor)
    assert "detach" in (caught.value.remedy or "")
    prepare = accept("A", torch.zeros(3)).prepare
    assert prepare is not None
    with pytest.raises(NotPreparedError):
        prepare(tensor)
    with torch.no_grad():
        assert accept("A", tensor).spec == ArraySpec(float32, (3,), (1,))
        assert prepare(tensor) is tensor
    assert accept("A", torch.nn.Parameter(torch.zeros(3), requires_grad=False)).prepare is not None


def test_torch_lazy_negatives() -> None:
    negative = torch.zeros(3, dtype=torch.complex64).conj().imag
    assert negative.is_neg()
    with pytest.raises(ArgumentTypeError, match="lazy negative") as caught:
        accept("A", negative)
    assert "resolve_neg" in (caught.value.remedy or "")
    prepare = accept("A", torch.zeros(3)).prepare
    assert prepare is not None
    with pytest.raises(NotPreparedError):
        prepare(negative)


def fake_tensor() -> Any:
    with FakeTensorMode():
        return torch.zeros(3)


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
@pytest.mark.parametrize(
    ("argument", "message", "remedy"),
    [
        (fake_tensor, "FakeTensor", "plain tensor"),
        (lambda: torch.zeros(3, device="meta"), "meta", "CPU"),
        (lambda: torch.eye(3).to_sparse(), "sparse_coo", "to_dense"),
        (
            lambda: torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.qint8),
            "quantized",
            "dequantize",
        ),
        (lambda: torch.zeros(3, dtype=torch.complex64).conj(), "complex64", "float32"),
    ],
)
def test_torch_tensors_that_are_refused(
    argument: Callable[[], Any], message: str, remedy: str
) -> None:
    with pytest.raises(TileError, match=message) as caught:
        accept("A", argument())
    assert remedy in (caught.value.remedy or "")


class Producer:
    """A DLPack exporter of no library; `versioned` ones say whether they may be written to."""

    def __init__(self, array: Any, *, versioned: bool = True) -> None:
        self.array = array
        self.versioned = versioned

    def __dlpack__(self, **options: Any) -> Any:
        if options and not self.versioned:
            raise TypeError("no such option")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack_producers(versioned: bool) -> None:
    producer = Producer(FLOATS[:, 1:], versioned=versioned)
    accepted = accept("A", producer)
    assert accepted.spec == ArraySpec(float32, (3, 3), (4, 1))
    assert accepted.write_refusal is None
    assert tensor_from(accepted, producer).data_ptr() == FLOATS.ctypes.data + 4


def test_dlpack_producers_that_are_read_only() -> None:
    producer = Producer(read_only(FLOATS))
    accepted = accept("A", producer)
    assert accepted.write_refusal is not None
    assert tensor_from(accepted, producer).data_ptr() == producer.array.ctypes.data
    writable = accept("A", Producer(FLOATS)).prepare
    assert writable is not None
    with pytest.raises(NotPreparedError):
        writable(producer)


def test_dlpack_producers_that_fail() -> None:
    with pytest.raises(ArgumentTypeError, match="cannot be shared"):
        accept("A", Producer(FLOATS.astype(object)))


def class_of(module: str, name: str, base: type = object) -> type:
    made = type(name, (base,), {})
    made.__module__ = module
    return made


def test_jax_arrays_are_never_written() -> None:
    array = class_of("jaxlib.xla_extension", "ArrayImpl", Producer)(FLOATS)
    accepted = accept("A", array)
    assert accepted.spec == ArraySpec(float32, (3, 4), (4, 1))
    assert accepted.write_refusal is not None
    assert "JAX" in accepted.write_refusal[0]
    with pytest.raises(ArgumentTypeError, match="traced"):
        accept("A", class_of("jax._src.core", "DynamicJaxprTracer")())


def test_pandas_objects_name_their_way_out() -> None:
    with pytest.raises(ArgumentTypeError, match="pandas Series") as caught:
        accept("A", class_of("pandas.core.series", "Series")())
    assert "to_numpy()" in (caught.value.remedy or "")


def test_no_library_is_imported_to_recognise_its_arrays() -> None:
    assert "jax" not in sys.modules
