"""Modules built natively for the tests of the language: a session, no capture.

In: a Python function over views and the arrays that stand for them. Out: the module, or what the
interpreter makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilenest import ir
from tilenest import language as tn
from tilenest.dialects import Return
from tilenest.interp import interpret

Array = NDArray[Any]
OperationT = TypeVar("OperationT", bound=ir.Operation)
untyped: Any = tn
"""The language for tests that misuse it on purpose."""


@contextmanager
def open_session(
    types: Sequence[ir.Type] = (), bounds: str = "zero"
) -> Iterator[tuple[tn.Session, list[ir.BlockArgument]]]:
    """A session that fills a fresh function with arguments of these types."""
    module = ir.Module()
    function = module.add(ir.Function("kernel", types))
    session = tn.Session(module, function, ir.Builder(function.body), bounds=bounds)
    with session.active():
        yield session, function.arguments


def view_type(array: Array) -> ir.ViewType:
    """The type of a fully specialised array."""
    strides = tuple(stride // array.itemsize for stride in array.strides)
    return ir.ViewType(tn.as_dtype(array.dtype), array.shape, strides)


def build(body: Callable[..., Any], *arrays: Array, bounds: str = "zero") -> tn.Session:
    """The session after `body` ran over one view per array; what it gives is returned."""
    types = [view_type(array) for array in arrays]
    with open_session(types, bounds) as (session, arguments):
        views = [
            tn.View(argument, session, f"A{place}", type_.shape, type_.strides)
            for place, (argument, type_) in enumerate(zip(arguments, types, strict=True))
        ]
        given = body(*views)
        results = [] if given is None else list(given) if isinstance(given, tuple) else [given]
        session.insert(Return(values=[session.value_of(result) for result in results]))
    return session


def evaluate(body: Callable[..., Any], *arrays: Array) -> Any:
    """What `body` gives over one whole-array tile per array, run by the interpreter."""
    session = build(lambda *views: body(*(whole(view) for view in views)), *arrays)
    results = interpret(session.module, list(arrays))
    return results[0] if len(results) == 1 else results


def run(body: Callable[..., Any], *arrays: Array) -> None:
    """Run `body` over one view per array; it stores its results."""
    interpret(build(body, *arrays).module, list(arrays))


def whole(view: tn.View) -> Any:
    """All of an array."""
    if view.rank == 0:
        return view.at().load()
    return view[(0,) * view.rank, tuple(view.shape)]


def find(session: tn.Session, kind: type[OperationT]) -> list[OperationT]:
    """The operations of one class, in order."""
    return [op for op in session.function.walk() if isinstance(op, kind)]


def names(session: tn.Session) -> list[str]:
    """The names of the operations directly in the function."""
    return [op.NAME for op in session.function.body.operations]


def random_array(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Numbers around 0; small integers for an integer dtype."""
    generator = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        return generator.integers(0 if kind.kind == "u" else -20, 20, shape).astype(kind)
    return generator.standard_normal(shape).astype(kind)


def zeros(*shape: Any, dtype: ir.DType = ir.float32) -> tn.Tile:
    """A tile of zeros over axes and extents, at least one."""
    made = tn.zeros(shape, dtype)
    assert isinstance(made, tn.Tile)
    return made
