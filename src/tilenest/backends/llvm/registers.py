"""How elements of each dtype travel in registers and lie in memory.

In: dtypes and lane counts of the IR. Out: LLVM types and constants. A bool is one bit in registers
and a byte of 0 or 1 in memory; bfloat16 is its 16 bits as an integer in both; everything else is
the LLVM type of the same width.
"""

from collections.abc import Sequence
from functools import cache

import ml_dtypes
import numpy as np

from tilenest.backends.llvm.casts import ELEMENTS
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import (
    POINTER,
    LlvmType,
    Value,
    constant,
    llvm_type,
    vector_constant,
)
from tilenest.ir import DType, PointerType, ScalarType, Type, VectorType, bfloat16, bool_, index

Number = bool | int | float

_CAST_NAMES = {bool_: "bool", index: "int64"}


def cast_name(dtype: DType) -> str:
    """The name under which `casts` knows a dtype."""
    return _CAST_NAMES.get(dtype, dtype.name)


def element_of(dtype: DType) -> str:
    """The LLVM element that holds `dtype` in a register."""
    return ELEMENTS[cast_name(dtype)]


@cache
def register_type(type_: Type) -> LlvmType:
    """The LLVM type of a Machine value."""
    match type_:
        case PointerType():
            return POINTER
        case ScalarType():
            return llvm_type(element_of(type_.dtype))
        case VectorType():
            return llvm_type(element_of(type_.dtype), type_.lanes)
    raise AssertionError(f"{type_} is no Machine type")


def memory_type(register: LlvmType) -> LlvmType:
    """What lies in memory for a value of this register type."""
    return register.with_element("i8") if register.element == "i1" else register


def to_memory(f: FunctionText, value: Value) -> Value:
    return f.zext(value, "i8") if value.type.element == "i1" else value


def from_memory(f: FunctionText, value: Value, register: LlvmType) -> Value:
    return f.icmp("ne", value, 0) if register.element == "i1" else value


def number_constant(type_: Type, number: Number) -> Value:
    """`number` in every lane."""
    assert isinstance(type_, ScalarType | VectorType), type_
    return constant(register_type(type_), _as_element(type_.dtype, number))


def lane_numbers(dtype: DType, numbers: Sequence[Number]) -> Value:
    """A vector constant with its own number in each lane."""
    elements = [_as_element(dtype, number) for number in numbers]
    return vector_constant(element_of(dtype), elements)


def _as_element(dtype: DType, number: Number) -> int | float:
    if dtype is bfloat16:
        return int(np.asarray(number, ml_dtypes.bfloat16).view(np.uint16))
    return float(number) if dtype.is_float and not isinstance(number, int) else int(number)
