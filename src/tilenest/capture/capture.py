"""Capture: a Python function and what is known of its arguments become a Candidate module.

In: a live function, one spec per positional parameter, and the keyword-only configuration. Out:
a `CaptureResult`: the module, the guards under which it is valid, and which arguments the
kernel writes. The function's body is interpreted once over real Python objects; arrays are
views, scalars are run-time scalars, None is None.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any

from tilenest.analysis import stored_by
from tilenest.capture.annotations import check_annotations
from tilenest.capture.calls import call, call_function
from tilenest.capture.expressions import EXPRESSIONS
from tilenest.capture.guards import Guards, alias_groups, facts_of
from tilenest.capture.interpreter import Interpreter
from tilenest.capture.memory import finish_states
from tilenest.capture.reductions import resolve_reductions
from tilenest.capture.signature import ArraySpec, ScalarSpec, Specification
from tilenest.capture.source import definition_location, function_code
from tilenest.capture.statements import STATEMENTS
from tilenest.dialects import Return
from tilenest.errors import (
    ArgumentTypeError,
    CaptureError,
    InternalError,
    TileError,
)
from tilenest.ir import Builder, Function, Module, ScalarType, Type, ViewType
from tilenest.language import Scalar, Session, View, ViewAnnotation
from tilenest.records import record

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@record
class CaptureResult:
    """A captured kernel."""

    module: Module
    guards: Guards
    arguments: tuple[int, ...]
    """the positional parameter behind each argument of the function: those that are not None"""
    written: frozenset[int]
    """the positional parameters that the kernel stores to"""


def capture(
    function: FunctionType,
    specs: Sequence[Specification],
    configuration: Mapping[str, object] | None = None,
    *,
    name: str | None = None,
    bounds: str = "zero",
) -> CaptureResult:
    """Interpret `function` over `specs`.

    Raises a TileError at the user's line for what a kernel cannot mean; errors of host code that
    the kernel runs pass through with a note of the kernel's line.
    """
    try:
        return _Capture(function, specs, configuration or {}, name, bounds).result()
    except AssertionError as error:
        if any("while capturing" in note for note in getattr(error, "__notes__", ())):
            raise
        raise InternalError(f"an internal check failed: {error}") from error


class _Capture:
    def __init__(
        self,
        function: FunctionType,
        specs: Sequence[Specification],
        configuration: Mapping[str, object],
        name: str | None,
        bounds: str,
    ) -> None:
        self._function = function
        self._specs = specs
        self._parameters = _positional_parameters(function, len(specs))
        self._configuration = {**_defaults(function), **configuration}
        annotations = check_annotations(function, self._parameters, specs)
        self._module = Module("candidate")
        self._ir_function = self._make_function(name or function.__name__)
        builder = Builder(self._ir_function.body)
        self._session = Session(self._module, self._ir_function, builder, bounds)
        self._interpreter = Interpreter(self._session, EXPRESSIONS, STATEMENTS)
        self._interpreter.outside.add(self._configuration)
        self._session.on_call = self._inline
        self._views: dict[int, View] = {}
        self._arguments = self._make_arguments(annotations)

    @property
    def _places(self) -> list[int]:
        """The positional parameters that become arguments of the IR's function."""
        return [
            place
            for place, spec in enumerate(self._specs)
            if isinstance(spec, ArraySpec | ScalarSpec)
        ]

    def _make_function(self, name: str) -> Function:
        groups = alias_groups(self._specs)
        position = {place: number for number, place in enumerate(self._places)}
        made = Function(
            name,
            [_argument_type(self._specs[place]) for place in self._places],
            attributes={"alias_groups": tuple(position[groups[place]] for place in self._places)},
        )
        for argument, place in zip(made.arguments, self._places, strict=True):
            argument.name = self._parameters[place]
        return self._module.add(made)

    def _make_arguments(self, annotations: Sequence[object]) -> tuple[object, ...]:
        arguments: list[object] = [None] * len(self._specs)
        for value, place in zip(self._ir_function.arguments, self._places, strict=True):
            spec = self._specs[place]
            if isinstance(spec, ArraySpec):
                annotation = annotations[place]
                arguments[place] = self._views[place] = View(
                    value,
                    self._session,
                    self._parameters[place],
                    [extent if isinstance(extent, int) else None for extent in spec.shape],
                    spec.element_strides,
                    isinstance(annotation, ViewAnnotation) and annotation.is_const,
                )
            else:
                assert isinstance(spec, ScalarSpec)
                arguments[place] = Scalar(value, self._session, is_weak=spec.is_weak)
        return tuple(arguments)

    def _inline(self, implementation: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        place = self._session.builder.location
        return call(self._interpreter, implementation, arguments, {}, place)

    def result(self) -> CaptureResult:
        function, interpreter = self._function, self._interpreter
        start = definition_location(function)
        self._session.builder.location = start
        try:
            with self._session.active():
                returned = call_function(
                    interpreter, function, self._arguments, dict(self._configuration), None
                )
        except TileError as error:
            raise error.with_location(start) from error.__cause__
        finally:
            interpreter.outside.forget()
        if returned is not None:
            raise CaptureError(
                f"the kernel {function.__name__!r} returns a value",
                remedy="store results to views; a kernel returns nothing",
                location=self._session.builder.location,
            )
        self._session.builder.location = start
        self._session.builder.insert(Return())
        finish_states(self._ir_function)
        resolve_reductions(self._ir_function)
        guards = self._guards()
        self._specialise(guards)
        return CaptureResult(self._module, guards, guards.arguments, self._written_arguments())

    def _specialise(self, guards: Guards) -> None:
        """The function states its guards, and the types of its arguments what follows from them."""
        for number, argument in enumerate(self._ir_function.arguments):
            if isinstance(argument.type, ViewType):
                known = guards.layout_of(number, argument.type.rank)
                argument.type = ViewType(argument.type.dtype, *known)
        self._ir_function.attributes |= {"guards": guards.facts, "otherwise": "compile"}

    def _guards(self) -> Guards:
        places = self._places
        reads = {place: view.reads for place, view in self._views.items()}
        return Guards(
            facts=facts_of(self._specs, places, reads),
            arguments=tuple(places),
            kinds=tuple(spec.kind for spec in self._specs),
            free_variables=self._interpreter.guards.free_variables,
            configuration=tuple(sorted(self._configuration.items())),
        )

    def _written_arguments(self) -> frozenset[int]:
        stored = {view for operation in self._module.walk() for view in stored_by(operation)}
        return frozenset(place for place, view in self._views.items() if view.value in stored)


def _argument_type(spec: Specification) -> Type:
    if isinstance(spec, ScalarSpec):
        return ScalarType(spec.value_dtype)
    assert isinstance(spec, ArraySpec)
    rank = len(spec.shape)
    return ViewType(spec.dtype, (None,) * rank, (None,) * rank)


def _positional_parameters(function: FunctionType, given: int) -> list[str]:
    parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    starred = [item.name for item in parameters if item.kind.name.startswith("VAR_")]
    if starred:
        raise CaptureError(
            f"the kernel {function.__name__!r} has the parameter *{starred[0]}",
            remedy="name every parameter: positional ones are arrays and scalars, keyword-only "
            "ones are configuration",
            location=definition_location(function),
        )
    names = [item.name for item in parameters if item.kind in _POSITIONAL]
    if len(names) != given:
        raise ArgumentTypeError(
            f"the kernel {function.__name__!r} takes {len(names)} positional arguments and gets "
            f"{given}",
            remedy=f"pass {', '.join(names) or 'none'}",
            location=definition_location(function),
        )
    function_code(function)
    return names


def _defaults(function: FunctionType) -> dict[str, object]:
    return {
        item.name: item.default
        for item in inspect.signature(function, follow_wrapped=False).parameters.values()
        if item.kind is inspect.Parameter.KEYWORD_ONLY and item.default is not item.empty
    }
