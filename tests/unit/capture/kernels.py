"""How capture tests run a kernel: capture it from arrays, check the module, interpret it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from tilenest import dialects, ir, language
from tilenest.capture import (
    ArraySpec,
    CaptureResult,
    NoneSpec,
    ScalarSpec,
    Specification,
    capture,
)
from tilenest.interp import interpret
from tilenest.verify import verify_module

tn: Any = SimpleNamespace(
    **{name: getattr(language, name) for name in language.__all__},
    **{dtype.name: dtype for dtype in ir.DTYPES},
)
"""The names a kernel writes as `tn.x`."""

WEAK_KINDS: dict[type, str] = {bool: "b", int: "i", float: "f"}


def spec_of(argument: Any) -> Specification:
    """What the runtime would tell capture about an argument."""
    if argument is None:
        return NoneSpec()
    if isinstance(argument, np.ndarray):
        strides = tuple(stride // argument.itemsize for stride in argument.strides)
        return ArraySpec(language.as_dtype(argument.dtype), argument.shape, strides)
    if isinstance(argument, np.generic):
        return ScalarSpec(language.as_dtype(argument.dtype))
    return ScalarSpec(None, WEAK_KINDS[type(argument)])


def captured(kernel: Callable[..., None], *arguments: Any, **configuration: Any) -> CaptureResult:
    """The kernel's capture; its module obeys every rule and has a place on each op."""
    specs = [spec_of(argument) for argument in arguments]
    result = capture(kernel, specs, configuration)  # type: ignore[arg-type]  # a Python function
    verify_module(result.module)
    placeless = [op.NAME for op in result.module.walk() if op.location is None]
    assert not placeless, f"operations without a place: {placeless}"
    return result


def run(kernel: Callable[..., None], *arguments: Any, **configuration: Any) -> CaptureResult:
    """Capture the kernel and run it on the arguments."""
    result = captured(kernel, *arguments, **configuration)
    interpret(result.module, [arguments[place] for place in result.arguments])
    return result


def only(result: CaptureResult, kind: type[ir.Operation]) -> Any:
    """The module's only operation of this class."""
    (found,) = operations(result, kind)
    return found


def operations(result: CaptureResult, kind: type[ir.Operation]) -> list[Any]:
    """The module's operations of this class, in order."""
    return [op for op in result.module.walk() if isinstance(op, kind)]


def nests(result: CaptureResult) -> list[Any]:
    """Every nest of the module."""
    return operations(result, dialects.Nest)


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Small whole numbers: sums and products of them are exact in float32."""
    generator = np.random.default_rng(seed)
    return generator.integers(-4, 5, shape).astype(np.float32)


def poisoned(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """An output that shows which elements were never written."""
    return np.full(shape, np.nan, np.float32)
