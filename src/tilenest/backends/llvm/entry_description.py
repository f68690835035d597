"""What a compiled kernel expects of its arguments: the guards of one variant, as frozen data.

Made by whoever specialised the kernel; `entry` writes the native checks from it. Extents and
strides are in elements; None is known at run time only and is handed to the kernel unchecked.
"""

from tilenest.ir import DType
from tilenest.records import record

ENTRY = "__tvm_ffi_main"
"""The name of the function that callers see."""
RAN, MISSED = 0, 1
"""What it hands back; less than 0 for so many bytes that the system did not give, and the bytes of
a `Fault` when an access that checks its bounds was outside."""


@record
class ArrayArgument:
    """A tensor on the CPU.

    `unit_last` tells whether the last stride is 1; None leaves it open. No stride matters along an
    axis of at most one element, nor in an array without elements. Arguments of equal `group`
    coincide exactly and have elements (a negative one coincides with none); a written one of
    another group shares no byte with any. Arrays of different groups that are only read may
    coincide all the same: code that reads one of them twice is no different.
    """

    dtype: DType
    extents: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    is_written: bool
    group: int
    unit_last: bool | None = None

    @property
    def rank(self) -> int:
        return len(self.extents)


@record
class ScalarArgument:
    """A run-time number; integers out of the dtype's range are refused."""

    dtype: DType


@record
class NoneArgument:
    """None, which the kernel was specialised on and never sees."""


Argument = ArrayArgument | ScalarArgument | NoneArgument


@record
class EntryDescription:
    """The arguments in the kernel's order."""

    arguments: tuple[Argument, ...]
