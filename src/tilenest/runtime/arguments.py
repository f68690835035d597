"""What a kernel may be called with: one table from argument types to what is done with them.

In: a parameter's name and an argument. Out: `Accepted`: the spec that capture sees, where the
elements lie, how later arguments of the same type become what the compiled function takes, and why
the array must not be written, if so. Types are found by name along the class's bases, so no library
is imported to recognise its arrays. What would be taken wrongly is refused, with a way out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tilenest.capture import ArraySpec, NoneSpec, ScalarSpec, Specification
from tilenest.errors import (
    ArgumentTypeError,
    DTypeError,
    RankError,
    ShapeError,
    TileError,
    shown,
)
from tilenest.ir import DTYPES, LARGEST_EXTENT, DType
from tilenest.records import record
from tilenest.runtime.foreign import any_tensor_of, retyped_tensor_of, tensor_of
from tilenest.runtime.memory import Memory

Prepare = Callable[[Any], Any]
"""From an argument to what the compiled function takes; raises NotPreparedError for one that needs
another way."""

MAX_RANK = 32
_DTYPES = {dtype.name.rstrip("_"): dtype for dtype in DTYPES if dtype.kind != "x"}
_BFLOAT16_WORD = 4 | 16 << 8 | 1 << 16
_UINT16 = np.dtype(np.uint16)
_INT64_RANGE = range(-(1 << 63), 1 << 63)


class NotPreparedError(Exception):
    """An argument does not fit the way its type was passed before."""


@record
class Accepted:
    """An argument that can be passed."""

    spec: Specification
    prepare: Prepare | None = None
    """None: passed as it is"""
    memory: Memory | None = None
    """of arrays"""
    write_refusal: tuple[str, str] | None = None
    """what the array is, and the remedy, when a kernel must not write to it"""


def accept(name: str, argument: Any) -> Accepted:
    """How this argument is passed. Raises a TileError for one that cannot be."""
    for cls in type(argument).__mro__:
        row = TABLE.get(f"{cls.__module__}.{cls.__qualname__}")
        if row is None:
            row = PACKAGES.get(cls.__module__.partition(".")[0])
        if row is not None:
            return row(name, argument)
    if hasattr(argument, "__dlpack__"):
        return _accept_dlpack(name, argument)
    remedy = "pass an array (NumPy, torch, JAX, DLPack), a real number or None"
    if hasattr(argument, "__array__") or isinstance(argument, list | tuple):
        remedy = f"pass np.asarray({name})"
    kind = type(argument).__name__
    raise _refusal(name, f"is of type {kind}, not an array, a real number or None", remedy)


def _refusal(
    name: str, what: str, remedy: str, error: type[TileError] = ArgumentTypeError
) -> TileError:
    return error(f"argument {name!r} {what}", remedy)


def _check_rank(name: str, rank: int) -> None:
    if rank > MAX_RANK:
        raise _refusal(name, f"has {rank} axes", f"pass at most {MAX_RANK} axes", RankError)


def _check_reach(name: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Kernels are compiled for arrays along whose axes counting and stepping stay far from the end
    of 64 bits."""
    for extent, step in zip(shape, strides, strict=True):
        if extent > LARGEST_EXTENT or (extent - 1) * abs(step) > LARGEST_EXTENT:
            raise _refusal(
                name,
                f"has shape {shape} and strides {strides}, which reach over more than 2**48 "
                "elements along an axis",
                "pass a smaller part of it",
                ShapeError,
            )


def _element_strides(name: str, strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    if any(step % itemsize for step in strides):
        raise _refusal(
            name,
            f"has byte strides {strides}, no multiples of its {itemsize}-byte elements",
            f"pass a copy, as {name}.copy()",
        )
    return tuple(step // itemsize for step in strides)


# NumPy -------------------------------------------------------------------------------------------


def _accept_numpy(name: str, array: np.ndarray[Any, Any]) -> Accepted:
    dtype = _numpy_dtype(name, array.dtype)
    _check_rank(name, array.ndim)
    if not array.flags.aligned:
        raise _refusal(name, "is not aligned to its elements", f"pass a copy, as {name}.copy()")
    strides = _element_strides(name, array.strides, array.itemsize)
    _check_reach(name, array.shape, strides)
    refusal = None
    if not array.flags.writeable:
        refusal = ("is a read-only array", f"pass a writable array, such as {name}.copy()")
    prepare: Prepare | None = None
    if dtype.name == "bfloat16":
        prepare = _prepare_read_only_bfloat16 if refusal else _prepare_bfloat16
    elif refusal:
        prepare = _prepare_read_only
    memory = Memory(array.ctypes.data, array.shape, array.strides, array.itemsize)
    return Accepted(ArraySpec(dtype, array.shape, strides), prepare, memory, refusal)


def _numpy_dtype(name: str, dtype: np.dtype[Any]) -> DType:
    if not dtype.isnative:
        raise _refusal(
            name,
            f"has dtype {dtype.str!r}, whose bytes are in another order than this machine's",
            f"pass {name}.astype({name}.dtype.newbyteorder('='))",
        )
    return _known_dtype(name, dtype.name)


def _known_dtype(name: str, spelled: str) -> DType:
    dtype = _DTYPES.get(spelled)
    if dtype is None:
        raise _refusal(
            name,
            f"has elements of dtype {spelled}",
            f"convert it to one of {', '.join(sorted(_DTYPES))}",
            DTypeError,
        )
    return dtype


def _prepare_read_only(array: Any) -> Any:
    return tensor_of(array)


def _prepare_bfloat16(array: Any) -> Any:
    # The retyped tensor forgets that an array is read-only.
    if not array.flags.writeable:
        raise NotPreparedError
    return _prepare_read_only_bfloat16(array)


def _prepare_read_only_bfloat16(array: Any) -> Any:
    if array.dtype.name != "bfloat16":
        raise NotPreparedError
    return retyped_tensor_of(array.view(_UINT16), _BFLOAT16_WORD)


def _refuse_masked(name: str, _: Any) -> Accepted:
    raise _refusal(name, "is a masked array; its mask would be lost", f"pass {name}.filled(value)")


def _accept_numpy_scalar(name: str, scalar: np.generic) -> Accepted:
    dtype = _numpy_dtype(name, scalar.dtype)
    if dtype.is_integer and int(scalar) not in _INT64_RANGE:
        raise _refusal(
            name,
            f"is {scalar}, and scalars are passed as signed 64-bit numbers",
            "pass it in an array of one element",
        )
    return Accepted(ScalarSpec(dtype), _prepare_scalar)


def _prepare_scalar(scalar: Any) -> Any:
    # `item` would leave an ml_dtypes scalar as it is.
    return scalar.item() if scalar.dtype.kind in "biuf" else float(scalar)


# Python ------------------------------------------------------------------------------------------


def _accept_bool(_: str, __: bool) -> Accepted:
    return Accepted(ScalarSpec(None, "b"))


def _accept_int(name: str, number: int) -> Accepted:
    # A range is walked through for subclasses of int, such as members of an IntEnum.
    if int(number) not in _INT64_RANGE:
        raise _refusal(
            name,
            f"is {shown(number)}, which does not fit 64 bits",
            "pass a smaller number, or a float",
        )
    return Accepted(ScalarSpec(None, "i"))


def _accept_float(_: str, __: float) -> Accepted:
    return Accepted(ScalarSpec(None, "f"))


def _accept_none(_: str, __: None) -> Accepted:
    return Accepted(NoneSpec())


# torch, JAX and other libraries ------------------------------------------------------------------


def _accept_torch(name: str, tensor: Any) -> Accepted:
    _check_torch_storage(name, tensor)
    if _tracks_gradients(tensor):
        raise _refusal(
            name,
            "requires gradients, which a kernel does not compute",
            f"pass {name}.detach(), or call the kernel under torch.no_grad()",
        )
    dtype = _known_dtype(name, str(tensor.dtype).removeprefix("torch."))
    if tensor.is_neg():
        raise _refusal(name, "is a lazy negative of its memory", f"pass {name}.resolve_neg()")
    _check_rank(name, tensor.dim())
    itemsize, strides = tensor.element_size(), tuple(tensor.stride())
    address = tensor.data_ptr()
    if address % itemsize:
        raise _refusal(name, "is not aligned to its elements", f"pass {name}.clone()")
    shape = tuple(tensor.shape)
    _check_reach(name, shape, strides)
    memory = Memory(address, shape, tuple(step * itemsize for step in strides), itemsize)
    return Accepted(ArraySpec(dtype, shape, strides), _prepare_torch, memory)


def _check_torch_storage(name: str, tensor: Any) -> None:
    kind = type(tensor).__name__
    if kind not in ("Tensor", "Parameter", "Buffer"):
        raise _refusal(
            name, f"is a torch {kind}, which has no memory of its own", "pass a plain tensor"
        )
    if tensor.device.type != "cpu":
        raise _refusal(
            name, f"is a torch tensor on {tensor.device}", f"pass {name}.cpu(), or CPU data"
        )
    layout = str(tensor.layout).removeprefix("torch.")
    if layout != "strided":
        raise _refusal(name, f"is a torch tensor of layout {layout}", f"pass {name}.to_dense()")
    if tensor.is_quantized:
        raise _refusal(name, "is a quantized torch tensor", f"pass {name}.dequantize()")


def _tracks_gradients(tensor: Any) -> bool:
    """Whether autograd would follow this tensor here. Where there is a tensor, torch is loaded."""
    return bool(tensor.requires_grad) and bool(sys.modules["torch"].is_grad_enabled())


def _prepare_torch(tensor: Any) -> Any:
    if tensor.is_neg() or _tracks_gradients(tensor):
        raise NotPreparedError
    return tensor


def _accept_jax(name: str, array: Any) -> Accepted:
    if "Tracer" in type(array).__name__:
        raise _refusal(
            name, "is traced by a JAX transformation", "call the kernel outside jit and grad"
        )
    found = _accept_dlpack(name, array)
    refusal = ("is a JAX array, which never changes", "pass a NumPy array for what is written")
    return Accepted(found.spec, found.prepare, found.memory, refusal)


def _refuse_pandas(name: str, argument: Any) -> Accepted:
    raise _refusal(name, f"is a pandas {type(argument).__name__}", f"pass {name}.to_numpy()")


def _accept_dlpack(name: str, producer: Any) -> Accepted:
    try:
        tensor, is_read_only = any_tensor_of(producer)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        kind = type(producer).__name__
        raise ArgumentTypeError(
            f"argument {name!r} is a {kind} whose memory cannot be shared: {error}",
            "pass a NumPy array",
        ) from error
    if not str(tensor.device).startswith("cpu"):
        raise _refusal(name, f"lies on {tensor.device}", "copy it to the CPU first")
    dtype = _known_dtype(name, str(tensor.dtype))
    shape, strides = tuple(tensor.shape), tuple(tensor.strides)
    _check_reach(name, shape, strides)
    if tensor.data_ptr() % dtype.bytes:
        raise _refusal(name, "is not aligned to its elements", "pass a copy")
    byte_strides = tuple(step * dtype.bytes for step in strides)
    memory = Memory(tensor.data_ptr(), shape, byte_strides, dtype.bytes)
    refusal = ("is read-only", "pass memory that may be written") if is_read_only else None
    prepare = _prepare_read_only_dlpack if is_read_only else _prepare_dlpack
    return Accepted(ArraySpec(dtype, shape, strides), prepare, memory, refusal)


def _prepare_read_only_dlpack(producer: Any) -> Any:
    return any_tensor_of(producer)[0]


def _prepare_dlpack(producer: Any) -> Any:
    tensor, is_read_only = any_tensor_of(producer)
    if is_read_only:
        raise NotPreparedError
    return tensor


TABLE: dict[str, Callable[[str, Any], Accepted]] = {
    "numpy.ma.MaskedArray": _refuse_masked,
    "numpy.ma.core.MaskedArray": _refuse_masked,
    "numpy.ndarray": _accept_numpy,
    "numpy.generic": _accept_numpy_scalar,
    "builtins.bool": _accept_bool,
    "builtins.int": _accept_int,
    "builtins.float": _accept_float,
    "builtins.NoneType": _accept_none,
    "torch.Tensor": _accept_torch,
}
PACKAGES: dict[str, Callable[[str, Any], Accepted]] = {
    "jax": _accept_jax,
    "jaxlib": _accept_jax,
    "pandas": _refuse_pandas,
}
