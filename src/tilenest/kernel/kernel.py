"""Kernels as objects: calling, compiling ahead of a call, looking inside.

In: a Python function in the tile language. Out: a `Kernel`: called with arrays it runs the variant
made for them; `compile` gives one variant with its stages' texts; `capture` the program alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from types import FunctionType
from typing import Any

from tilenest.driver import Rearrange
from tilenest.errors import ArgumentTypeError, CaptureError, TargetError, shown
from tilenest.ir import Module
from tilenest.kernel.compiled import Compiled
from tilenest.kernel.declaration import Declaration
from tilenest.runtime import Dispatcher, KernelSource, Variant, run_interpreted

TARGETS = ("cpu", "interpret")
BOUNDS = ("zero", "assume", "check")
_MOST_KNOWN = 64
"""Configurations remembered by the identity of their values."""


class Kernel:
    """A tile kernel. Call it with arrays and scalars, in the order of its parameters."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., None]

    def __init__(
        self,
        function: Callable[..., None],
        *,
        bounds: str = "zero",
        rearrangements: tuple[Rearrange, ...] = (),
    ) -> None:
        if not isinstance(function, FunctionType):
            raise CaptureError(
                f"@tn.kernel decorates a {type(function).__name__}, not a function",
                "decorate a function defined with def",
            )
        check_choice("bounds", bounds, BOUNDS)
        functools.update_wrapper(self, function)
        self._function = function
        self._bounds = bounds
        self._rearrangements = rearrangements
        self._declaration = Declaration.of(function)
        self._dispatchers: dict[Hashable, Dispatcher] = {}
        self._default: Dispatcher | None = None
        self._known: dict[Hashable, tuple[Dispatcher, tuple[Any, ...]]] = {}
        self._count = len(self._declaration.parameters)

    def __call__(self, *arguments: Any, **configuration: Any) -> None:
        """Run the kernel, which writes to its arguments; `target=` runs it elsewhere."""
        if len(arguments) != self._count:
            arguments = self._declaration.arguments(arguments)
        if configuration:
            target = configuration.pop("target", "cpu")
            chosen = self._dispatcher(configuration)
            if checked_target(target) == "interpret":
                run_interpreted(chosen, arguments)
            else:
                chosen.call(arguments)
            return
        dispatcher = self._default
        if dispatcher is None:
            dispatcher = self._default = self._dispatcher({})
        dispatcher.call(arguments)

    def compile(self, *arguments: Any, target: str = "cpu", **configuration: Any) -> Compiled:
        """The variant for these arguments (or specs), made now."""
        checked_target(target)
        dispatcher = self._dispatcher(configuration)
        specs = dispatcher.specs(self._declaration.arguments(arguments))
        return Compiled(dispatcher, dispatcher.variant(specs), target)

    def capture(self, *arguments: Any, **configuration: Any) -> Module:
        """The program in Candidate form for specs (see `tn.spec`), arrays or scalars."""
        dispatcher = self._dispatcher(configuration)
        specs = dispatcher.specs(self._declaration.arguments(arguments))
        return dispatcher.source.capture(specs).module

    def rearranged(self, rearrange: Rearrange) -> Kernel:
        """This kernel with each of its programs rearranged in place before it is compiled.

        `rearrange` takes a module, as `tn.remap` does, once a specialisation, so that it does not
        see what changes outside later; what it raises ends the call. A remap that is not applied
        and another module are refused as its result, since they would change nothing. A kernel that
        another one calls is its function, however it was rearranged.
        """
        if not callable(rearrange):
            raise ArgumentTypeError(
                f"{self.__name__} is rearranged by {shown(rearrange)}",
                'give it a function, as lambda module: tn.remap(module, "i").split("i", 2).apply()',
            )
        rearrangements = (*self._rearrangements, rearrange)
        return Kernel(self._function, bounds=self._bounds, rearrangements=rearrangements)

    @property
    def variants(self) -> tuple[Variant, ...]:
        """Every specialisation made so far."""
        return tuple(v for found in list(self._dispatchers.values()) for v in found.variants)

    def __repr__(self) -> str:
        return f"<kernel {self.__module__}.{self.__qualname__}>"

    def __reduce__(self) -> str:
        # By name, like a function: a kernel is pickled as a reference and copied as itself.
        return self.__qualname__

    def _dispatcher(self, configuration: dict[str, Any]) -> Dispatcher:
        # The same objects are the same configuration, whatever their values.
        identity = (*configuration, *map(id, configuration.values()))
        known = self._known.get(identity)
        if known is not None:
            return known[0]
        found = self._find_dispatcher(configuration)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        # Keeping the objects alive keeps their identities theirs.
        self._known[identity] = found, tuple(configuration.values())
        return found

    def _find_dispatcher(self, configuration: dict[str, Any]) -> Dispatcher:
        values = self._declaration.complete(configuration)
        key = self._declaration.key(values)
        found = self._dispatchers.get(key)
        if found is None:
            source = KernelSource(
                self._function,
                self._declaration.parameters,
                values,
                self._bounds,
                self._rearrangements,
            )
            found = self._dispatchers.setdefault(key, Dispatcher(source))
        return found


def check_choice(name: str, given: object, known: tuple[str, ...]) -> None:
    """Refuse an option that is none of the known ones."""
    if not isinstance(given, str) or given not in known:
        raise CaptureError(f"{name}={shown(given)} is not known", f"use one of {', '.join(known)}")


def checked_target(target: object) -> str:
    """The name of a target there is."""
    if isinstance(target, str) and target in TARGETS:
        return target
    known = ", ".join(map(repr, TARGETS))
    raise TargetError(f"{shown(target)} is not a target of this version", f"use one of {known}")
