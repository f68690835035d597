"""The one door to TVM-FFI: its import, and tensors it refuses or mistypes made passable.

In: NumPy arrays and DLPack objects. Out: `tvm_ffi` itself, loaded on first use and without torch;
functions from code addresses; tensors over memory that TVM-FFI would refuse: read-only arrays, and
arrays of dtypes that NumPy has from `ml_dtypes`. A DLPack capsule is read and retyped in place.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tilenest.records import record

_VERSION = (1, 0)
"""Of DLPack: the first whose capsules say that memory is read-only."""
_CAPSULE = b"dltensor_versioned"
_FLAGS_OFFSET = 24
_DTYPE_OFFSET = 52
_READ_ONLY = 1
_word_at = ctypes.c_uint32.from_address
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


@record
class _WithoutTorch:
    """Hides torch from one thread: TVM-FFI would import it, seconds for nothing we use."""

    thread: int

    def find_spec(self, name: str, *_: object) -> None:
        if name == "torch" and threading.get_ident() == self.thread:
            raise ModuleNotFoundError("torch is not needed here", name=name)


@cache
def _import_tvm_ffi() -> Any:
    finder = _WithoutTorch(threading.get_ident())
    sys.meta_path.insert(0, finder)
    try:
        import tvm_ffi
    finally:
        sys.meta_path.remove(finder)
    return tvm_ffi


def function_at(address: int, keep_alive: object) -> Callable[..., Any]:
    """The TVM-FFI function whose code lies at `address`; it keeps `keep_alive` alive."""
    function: Callable[..., Any] = _import_tvm_ffi().Function.__from_extern_c__(
        address, keep_alive_object=keep_alive
    )
    return function


def library_symbols(names: Sequence[str]) -> dict[str, int]:
    """Addresses of functions of TVM-FFI's own library, which compiled code raises errors with."""
    if not names:
        return {}
    library = ctypes.CDLL(_import_tvm_ffi().libinfo.find_libtvm_ffi())
    found = {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names}
    return {name: address for name, address in found.items() if address is not None}


def tensor_of(array: Any) -> Any:
    """A tensor over an array's memory, which may be read-only: who writes must have asked."""
    return _import_tvm_ffi().from_dlpack(array.__dlpack__(max_version=_VERSION))


def retyped_tensor_of(array: Any, dtype_word: int) -> Any:
    """The same with another dtype: `code | bits << 8 | lanes << 16`."""
    capsule = array.__dlpack__(max_version=_VERSION)
    _word_at(_pointer_of(capsule, _CAPSULE) + _DTYPE_OFFSET).value = dtype_word
    return _import_tvm_ffi().from_dlpack(capsule)


def any_tensor_of(producer: Any) -> tuple[Any, bool]:
    """A tensor from any DLPack producer, and whether it must not be written to."""
    try:
        capsule = producer.__dlpack__(max_version=_VERSION)
    except TypeError:
        return _import_tvm_ffi().from_dlpack(producer.__dlpack__()), False
    is_read_only = False
    if ctypes.pythonapi.PyCapsule_IsValid(ctypes.py_object(capsule), _CAPSULE):
        flags = _word_at(_pointer_of(capsule, _CAPSULE) + _FLAGS_OFFSET).value
        is_read_only = bool(flags & _READ_ONLY)
    return _import_tvm_ffi().from_dlpack(capsule), is_read_only


@cache
def _import_ml_dtypes() -> Any:
    import ml_dtypes

    return ml_dtypes


def bfloat16_dtype() -> np.dtype[Any]:
    """NumPy's bfloat16."""
    dtype: np.dtype[Any] = np.dtype(_import_ml_dtypes().bfloat16)
    return dtype
