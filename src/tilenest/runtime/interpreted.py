"""Running a captured kernel in the NumPy interpreter, on the caller's own arrays.

In: the arguments of a call. Out: the arrays written, as the program means it. Arguments are refused
by the same rules as compiled code's; arrays of other libraries are seen through their memory.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from tilenest.capture import ArraySpec, NoneSpec
from tilenest.ir import DType, bfloat16
from tilenest.runtime.arguments import Accepted
from tilenest.runtime.dispatch import Dispatcher
from tilenest.runtime.foreign import bfloat16_dtype


def run_interpreted(dispatcher: Dispatcher, arguments: tuple[Any, ...]) -> None:
    """Capture for these arguments, if that is not done, and interpret."""
    accepted = dispatcher.accept(arguments)
    variant = dispatcher.variant(tuple(one.spec for one in accepted))
    dispatcher.check_writes(variant.captured, accepted)
    pairs = zip(accepted, arguments, strict=True)
    values = [
        _value(one, argument) for one, argument in pairs if not isinstance(one.spec, NoneSpec)
    ]
    _import_interp().interpret(variant.captured.module, values)


@cache
def _import_interp() -> ModuleType:
    """The interpreter, which compiled calls do without."""
    from tilenest import interp

    return interp


def _value(accepted: Accepted, argument: Any) -> Any:
    if not isinstance(accepted.spec, ArraySpec) or isinstance(argument, np.ndarray):
        return argument
    assert accepted.memory is not None
    return accepted.memory.as_array(_numpy_dtype(accepted.spec.dtype))


def _numpy_dtype(dtype: DType) -> np.dtype[Any]:
    return bfloat16_dtype() if dtype is bfloat16 else np.dtype(dtype.name.rstrip("_"))
