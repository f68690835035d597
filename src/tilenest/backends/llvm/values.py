"""LLVM types, operands and exact constants.

In: Python numbers and type names. Out: `LlvmType` and `Value`, the two things every instruction
method takes and returns, with the text LLVM reads. A type is an element name and a lane count; one
lane is the scalar, so code written for vectors of any width also writes scalars. Constants are
exact: floats are rounded once from the Python number and spelled by their bits, vectors are splats.
bfloat16 never appears as an LLVM type (its lowering needs routines a process lacks): it travels as
i16, see `casts`.
"""

import math
import struct
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from tilenest.records import record

FLOAT_BITS = {"half": 16, "float": 32, "double": 64}
_INTRINSIC_NAMES = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}


@record
class LlvmType:
    """`element` ("float", "i32", "ptr", ...) times `lanes`; one lane is a scalar. `llvm_type` makes
    it."""

    element: str
    lanes: int
    text: str
    suffix: str
    """how the names of intrinsics end that work on it"""

    @property
    def is_float(self) -> bool:
        return self.element in FLOAT_BITS

    @property
    def is_integer(self) -> bool:
        return self.element[0] == "i"

    @property
    def bits(self) -> int:
        """Width of one element; pointers count as 64."""
        if self.element[0] == "i":
            return int(self.element[1:])
        return FLOAT_BITS.get(self.element, 64)

    def with_element(self, element: str) -> "LlvmType":
        return llvm_type(element, self.lanes)

    def with_lanes(self, lanes: int) -> "LlvmType":
        return llvm_type(self.element, lanes)


@cache
def llvm_type(element: str, lanes: int = 1) -> LlvmType:
    name = _INTRINSIC_NAMES.get(element, element)
    if lanes == 1:
        return LlvmType(element, lanes, element, name)
    return LlvmType(element, lanes, f"<{lanes} x {element}>", f"v{lanes}{name}")


I1, I8, I16, I32, I64 = (llvm_type(f"i{bits}") for bits in (1, 8, 16, 32, 64))
HALF, FLOAT, DOUBLE = llvm_type("half"), llvm_type("float"), llvm_type("double")
POINTER, VOID = llvm_type("ptr"), llvm_type("void")


class Value(NamedTuple):
    """An operand: its type and the text that names it (`%v7`, `@table`, `splat (i32 3)`)."""

    type: LlvmType
    text: str

    @property
    def typed(self) -> str:
        return f"{self.type.text} {self.text}"


Operand = Value | int | float


def constant(kind: LlvmType, number: int | float) -> Value:
    """`number` rounded once to nearest even (floats) or wrapped (integers), in every lane."""
    if number == 0:  # the two zeros are equal keys
        return _constant(kind, number)
    return _kept_constant(kind, number)


def _constant(kind: LlvmType, number: int | float) -> Value:
    scalar = element_text(kind.element, number)
    return Value(kind, scalar if kind.lanes == 1 else f"splat ({kind.element} {scalar})")


_kept_constant = lru_cache(maxsize=4096)(_constant)


def vector_constant(element: str, numbers: Sequence[int | float]) -> Value:
    """A constant with its own number in each lane."""
    kind = llvm_type(element, len(numbers))
    if kind.lanes == 1:
        return constant(kind, numbers[0])
    lanes = ", ".join(f"{element} {element_text(element, number)}" for number in numbers)
    return Value(kind, f"<{lanes}>")


def poison(kind: LlvmType) -> Value:
    return Value(kind, "poison")


def zero(kind: LlvmType) -> Value:
    return Value(kind, "null" if kind.element == "ptr" and kind.lanes == 1 else "zeroinitializer")


def element_text(element: str, number: int | float) -> str:
    """The spelling of one scalar constant; float text is the bits of the rounded value."""
    if element == "float":
        return f"0x{_bits_of_double(round_to_float32(number)):016X}"
    if element == "double":
        return f"0x{_bits_of_double(float(number)):016X}"
    if element == "half":
        return f"0xH{_float16_bits(_round_to_odd(number, 53)):04X}"
    if element == "ptr":
        assert number == 0, "the only constant pointer is null"
        return "null"
    width = int(element[1:])
    wrapped = int(number) & ((1 << width) - 1)
    if wrapped >> (width - 1) and width > 1:
        wrapped -= 1 << width
    return str(wrapped)


def round_to_float32(number: int | float) -> float:
    """The float32 nearest to `number`, ties to even, as a Python float; overflow gives inf."""
    wide = _round_to_odd(number, 53)
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", wide))[0]
    except OverflowError:
        return math.copysign(math.inf, wide)
    return rounded


def _round_to_odd(number: int | float, precision: int) -> float:
    """A double that later rounds to any narrower format as `number` itself would."""
    if isinstance(number, float) or number.bit_length() <= precision:
        return float(number)
    excess = number.bit_length() - precision
    magnitude, sign = abs(number), -1.0 if number < 0 else 1.0
    kept = magnitude >> excess
    if kept << excess != magnitude:
        kept |= 1
    return sign * math.ldexp(kept, excess) if excess < 970 else sign * math.inf


def _bits_of_double(number: float) -> int:
    bits: int = struct.unpack("<Q", struct.pack("<d", number))[0]
    return bits


def _float16_bits(number: float) -> int:
    try:
        bits: int = struct.unpack("<H", struct.pack("<e", number))[0]
    except OverflowError:
        return 0xFC00 if number < 0 else 0x7C00
    return bits
