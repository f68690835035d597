"""Checks of a kernel's parameter annotations against what it is called with.

In: a function and one spec per positional parameter. Out: the annotation records by parameter,
or an error that names the parameter. Annotations that are not tilenest's say nothing here.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from types import FunctionType

from tilenest.capture.signature import ArraySpec, NoneSpec, ScalarSpec, Specification
from tilenest.capture.source import definition_location
from tilenest.errors import ArgumentTypeError, RankError
from tilenest.language import ConstView, Scalar, ScalarAnnotation, View, ViewAnnotation


def check_annotations(
    function: FunctionType, names: Sequence[str], specs: Sequence[Specification]
) -> list[object]:
    """The annotation of each positional parameter, once it is sure that its spec fits."""
    try:
        annotations = inspect.get_annotations(function, eval_str=True)
    except (NameError, SyntaxError, TypeError):
        # Written as text that means nothing at run time, as names imported for a type checker.
        annotations = inspect.get_annotations(function)
    found = [annotations.get(name) for name in names]
    for name, annotation, spec in zip(names, found, specs, strict=True):
        if isinstance(annotation, ViewAnnotation) or annotation in (View, ConstView):
            _check_view(function, name, annotation, spec)
        elif isinstance(annotation, ScalarAnnotation) or annotation is Scalar:
            _check_scalar(function, name, annotation, spec)
    return found


def _check_view(function: FunctionType, name: str, annotation: object, spec: Specification) -> None:
    if not isinstance(spec, ArraySpec):
        raise ArgumentTypeError(
            f"{name!r} is annotated as a view and gets {_describe(spec)}",
            remedy=f"pass an array, or leave the annotation of {name!r} away",
            location=definition_location(function),
        )
    if not isinstance(annotation, ViewAnnotation):
        return
    if annotation.dtype is not spec.dtype:
        raise ArgumentTypeError(
            f"{name!r} is annotated as a view of {annotation.dtype} and gets {_describe(spec)}",
            remedy=f"convert the array to {annotation.dtype}, or change the annotation",
            location=definition_location(function),
        )
    if annotation.rank is not None and annotation.rank != len(spec.shape):
        raise RankError(
            f"{name!r} is annotated as a view of rank {annotation.rank} and gets an array of "
            f"rank {len(spec.shape)}",
            remedy="reshape the array, or change the annotation",
            location=definition_location(function),
        )


def _check_scalar(
    function: FunctionType, name: str, annotation: object, spec: Specification
) -> None:
    is_scalar = isinstance(spec, ScalarSpec)
    dtype = spec.dtype if isinstance(spec, ScalarSpec) else None
    wanted = annotation.dtype if isinstance(annotation, ScalarAnnotation) else None
    if is_scalar and (wanted is None or dtype is wanted):
        return
    raise ArgumentTypeError(
        f"{name!r} is annotated as a scalar{f' of {wanted}' if wanted else ''} and gets "
        f"{_describe(spec)}",
        remedy="pass a NumPy scalar of that dtype, or change the annotation",
        location=definition_location(function),
    )


def _describe(spec: Specification) -> str:
    match spec:
        case ArraySpec():
            return f"an array of {spec.dtype}"
        case ScalarSpec(dtype=None):
            return "a Python number"
        case ScalarSpec():
            return f"a scalar of {spec.dtype}"
        case NoneSpec():
            return "None"
