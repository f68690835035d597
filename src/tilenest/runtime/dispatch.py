"""Calling a kernel: the variant made for these arguments runs, or is made first.

In: the arguments of a call. Out: the arrays written, or an error before anything was. A `Path` is
how a call went before: the argument types, how each is passed, and the compiled function, which
itself checks everything else and says whether it ran. A call tries the last path, the one of these
shapes, the other recent ones; then it looks at every argument, explains what is wrong, and finds or
compiles a variant. Compiling is one at a time in the process, and never while it forks.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import combinations
from types import FunctionType
from typing import Any

from tilenest.backends.llvm import RAN, Argument, ArrayArgument, ScalarArgument
from tilenest.capture import ArraySpec, Specification, known_location
from tilenest.driver import Captured, Compilation, Rearrange, capture_kernel
from tilenest.errors import (
    ArgumentTypeError,
    InternalError,
    OverlapError,
    ReadOnlyError,
    SourceLocation,
    TileError,
)
from tilenest.records import record, replace
from tilenest.runtime.arguments import Accepted, NotPreparedError, Prepare, accept
from tilenest.runtime.endings import finish_calls
from tilenest.runtime.faults import has_run
from tilenest.runtime.loading import Loaded, load
from tilenest.runtime.memory import coincide, nests, share_elements, shares_with_itself
from tilenest.runtime.watch import Watch

_RECENT = 4
_MOST_SHAPES = 4096
_MISSED: tuple[type[Exception], ...] = (
    NotPreparedError,
    AttributeError,
    BufferError,
    TypeError,
    ValueError,
    RuntimeError,
)
"""What passing an unfit argument raises, here and in TVM-FFI; the slow path explains it."""

_compiling = threading.RLock()
os.register_at_fork(
    before=_compiling.acquire,
    after_in_parent=_compiling.release,
    after_in_child=_compiling.release,
)


class KernelSource:
    """What is compiled: the function, the names of its arrays and scalars, its configuration, and
    how its programs are rearranged, if they are."""

    __slots__ = ("bounds", "configuration", "function", "parameters", "rearrangements")

    def __init__(
        self,
        function: FunctionType,
        parameters: tuple[str, ...],
        configuration: Mapping[str, object],
        bounds: str,
        rearrangements: tuple[Rearrange, ...] = (),
    ) -> None:
        self.function = function
        self.parameters = parameters
        self.configuration = configuration
        self.bounds = bounds
        self.rearrangements = rearrangements

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def location(self) -> SourceLocation | None:
        """Where the kernel is defined, when its source can be read."""
        return known_location(self.function)

    def capture(self, specs: Sequence[Specification]) -> Captured:
        """The program for arguments of these specs."""
        return capture_kernel(
            self.function,
            specs,
            self.configuration,
            bounds=self.bounds,
            rearrangements=self.rearrangements,
        )


class Variant:
    """The kernel specialised on guards; compiled once a call needs it."""

    __slots__ = ("_loaded", "captured", "watch")

    def __init__(self, captured: Captured) -> None:
        self.captured = captured
        self.watch = Watch(captured.guards.free_variables)
        self._loaded: dict[bool, Loaded] = {}

    def fits(self, specs: Sequence[Specification]) -> bool:
        """Whether a call with these arguments may run it."""
        return self.captured.guards.check_arguments(specs) and self.watch.holds()

    def loaded(self, *, checks_overlap: bool = True) -> Loaded:
        """The machine code; one that does not compare address ranges for interleaved arrays."""
        found = self._loaded.get(checks_overlap)
        if found is None:
            with _compiling:
                found = self._loaded.get(checks_overlap)
                if found is None:
                    found = load(self.captured, checks_overlap=checks_overlap)
                    self._loaded[checks_overlap] = found
        return found

    @property
    def compilation(self) -> Compilation:
        """Every stage of the compilation, made again where the code came from the cache."""
        return self.loaded().compilation

    @property
    def specialisation(self) -> str:
        """What it is made for, as `A: f32[97, ?], n: i64`."""
        described = zip(self.captured.parameters, self.captured.entry.arguments, strict=True)
        return ", ".join(f"{name}: {_argument_text(argument)}" for name, argument in described)

    def __repr__(self) -> str:
        return f"<variant of {self.captured.name}: {self.specialisation}>"


@record
class Path:
    """How a call went that ran."""

    types: tuple[type, ...]
    prepares: tuple[Prepare | None, ...] | None
    """None when every argument is passed as it is"""
    run: Callable[..., int | bytes]
    watch: Watch
    captured: Captured

    def try_run(self, arguments: tuple[Any, ...]) -> bool:
        """Run if the arguments fit; False when nothing was done."""
        if tuple(map(type, arguments)) != self.types or not self.watch.holds():
            return False
        try:
            if self.prepares is None:
                outcome = self.run(*arguments)
            else:
                outcome = self.run(*prepared(self.prepares, arguments))
        except _MISSED:
            return False
        return outcome == RAN or has_run(outcome, self.captured)


def prepared(prepares: Sequence[Prepare | None], arguments: Sequence[Any]) -> Iterator[Any]:
    """The arguments as the compiled function takes them."""
    for prepare, argument in zip(prepares, arguments, strict=True):
        yield argument if prepare is None else prepare(argument)


class Dispatcher:
    """All variants of one kernel with one configuration."""

    __slots__ = ("_by_shape", "_last", "_recent", "source", "variants")

    def __init__(self, source: KernelSource) -> None:
        self.source = source
        self.variants: tuple[Variant, ...] = ()
        self._last: Path | None = None
        self._recent: tuple[Path, ...] = ()
        self._by_shape: dict[Hashable, Path] = {}

    def call(self, arguments: tuple[Any, ...]) -> None:
        """Run for these arguments, in the quickest way that fits."""
        last = self._last
        if last is not None and last.try_run(arguments):
            return
        shapes = _shapes_of(arguments)
        for path in (self._by_shape.get(shapes), *self._recent):
            if path is not None and path is not last and path.try_run(arguments):
                self._use(path, shapes)
                return
        self._run_explained(arguments)

    def accept(self, arguments: Sequence[Any]) -> tuple[Accepted, ...]:
        """Every argument looked at, coinciding arrays grouped. Raises on the first bad one. A spec
        stands for an argument like it."""
        try:
            return grouped(
                [
                    Accepted(argument)
                    if isinstance(argument, Specification)
                    else accept(name, argument)
                    for name, argument in self._named(arguments)
                ]
            )
        except TileError as error:
            raise error.with_location(self.source.location) from error.__cause__

    def specs(self, arguments: Sequence[Any]) -> tuple[Specification, ...]:
        """The specs of arguments, some of which may be specs themselves."""
        return tuple(one.spec for one in self.accept(arguments))

    def _named(self, arguments: Sequence[Any]) -> list[tuple[str, Any]]:
        names = self.source.parameters
        if len(arguments) != len(names):
            raise ArgumentTypeError(
                f"{self.source.name} takes {len(names)} arguments, {len(arguments)} are given",
                f"call {self.source.name}({', '.join(names)})",
            )
        return list(zip(names, arguments, strict=True))

    def variant(self, specs: tuple[Specification, ...]) -> Variant:
        """The variant for these specs, captured now if there is none."""
        found = self._find(specs)
        if found is None:
            with _compiling:
                found = self._find(specs) or self._capture(specs)
        return found

    def _find(self, specs: tuple[Specification, ...]) -> Variant | None:
        return next((variant for variant in self.variants if variant.fits(specs)), None)

    def _capture(self, specs: tuple[Specification, ...]) -> Variant:
        variant = Variant(self.source.capture(specs))
        # What has died never comes back.
        alive = [one for one in self.variants if one.watch.can_hold()]
        self.variants = (*alive, variant)
        return variant

    def _run_explained(self, arguments: tuple[Any, ...]) -> None:
        accepted = self.accept(arguments)
        self.run(self.variant(tuple(one.spec for one in accepted)), accepted, arguments)

    def run(
        self, variant: Variant, accepted: Sequence[Accepted], arguments: tuple[Any, ...]
    ) -> Path | None:
        """Run a variant that fits these arguments, and remember how: the path later calls may try,
        if there is one."""
        is_interleaved = self.check_writes(variant.captured, accepted)
        prepares = tuple(one.prepare for one in accepted)
        run = variant.loaded(checks_overlap=not is_interleaved).function
        try:
            outcome = run(*prepared(prepares, arguments))
        except _MISSED as error:
            raise InternalError(
                f"the compiled {self.source.name} failed: {type(error).__name__}: {error}"
            ) from error
        if not has_run(outcome, variant.captured):
            raise InternalError(
                f"the compiled {self.source.name} refuses arguments that it was made for"
            )
        if is_interleaved:
            return None
        types = tuple(map(type, arguments))
        needed = None if not any(prepares) else prepares
        path = Path(types, needed, run, variant.watch, variant.captured)
        self._use(path, _shapes_of(arguments))
        return path

    def check_writes(self, captured: Captured, accepted: Sequence[Accepted]) -> bool:
        """Refuse calls that must not write where they would; True when a written array lies
        interleaved with itself or another one without sharing an element."""
        names = self.source.parameters
        is_interleaved = False
        for place, location in captured.written.items():
            refusal = accepted[place].write_refusal
            if refusal is not None:
                what, remedy = refusal
                raise ReadOnlyError(
                    f"argument {names[place]!r} {what}, and {self.source.name} writes to it",
                    remedy,
                    location,
                )
            memory = accepted[place].memory
            if memory is not None and shares_with_itself(memory):
                raise OverlapError(
                    f"elements of argument {names[place]!r} share memory, and {self.source.name} "
                    "writes to it",
                    f"pass an array whose elements lie apart, such as {names[place]}.copy()",
                    location,
                )
            is_interleaved |= memory is not None and not nests(memory)
        for one, other in combinations(range(len(accepted)), 2):
            writer = one if one in captured.written else other
            if writer in captured.written:
                location = captured.written[writer]
                is_interleaved |= self._check_pair(accepted, one, other, location)
        return is_interleaved

    def _check_pair(
        self,
        accepted: Sequence[Accepted],
        one: int,
        other: int,
        location: SourceLocation | None,
    ) -> bool:
        """True when two arrays lie interleaved; one of them is written at `location`."""
        left, right = accepted[one].memory, accepted[other].memory
        if left is None or right is None or left.is_empty or right.is_empty:
            return False
        if _group(accepted[one]) == _group(accepted[other]):
            return False
        if share_elements(left, right):
            names = self.source.parameters
            raise OverlapError(
                f"arguments {names[one]!r} and {names[other]!r} overlap in part, and "
                f"{self.source.name} writes to one of them",
                "pass arrays that are the same or apart; a copy of the one that is read is enough",
                location,
            )
        (low, high), (other_low, other_high) = left.span, right.span
        return low < other_high and other_low < high

    def _use(self, path: Path, shapes: Hashable) -> None:
        """Try this path first from now on, and for these shapes."""
        self._last = path
        self._recent = (path, *(other for other in self._recent if other is not path))[:_RECENT]
        if len(self._by_shape) >= _MOST_SHAPES:
            self._by_shape.clear()
        self._by_shape[shapes] = path


atexit.register(finish_calls, (Path.try_run.__code__, Dispatcher.run.__code__))


def _shapes_of(arguments: Sequence[Any]) -> Hashable:
    """What most often decides the variant."""
    shapes = tuple([getattr(argument, "shape", None) for argument in arguments])
    try:
        hash(shapes)
    except TypeError:
        return None
    return shapes


def grouped(accepted: Sequence[Accepted]) -> tuple[Accepted, ...]:
    """The same with every array's group: the first argument that coincides with it."""
    found: list[Accepted] = []
    for place, one in enumerate(accepted):
        spec = one.spec
        if isinstance(spec, ArraySpec):
            first = next((i for i, other in enumerate(found) if _coincide(other, one)), place)
            spec = replace(spec, group=first)
        found.append(replace(one, spec=spec))
    return tuple(found)


def _coincide(one: Accepted, other: Accepted) -> bool:
    return (
        one.memory is not None
        and other.memory is not None
        and not one.memory.is_empty
        and one.spec.kind == other.spec.kind
        and coincide(one.memory, other.memory)
    )


def _argument_text(argument: Argument) -> str:
    if isinstance(argument, ArrayArgument):
        extents = ", ".join("?" if n is None else str(n) for n in argument.extents)
        return f"{argument.dtype}[{extents}]"
    return str(argument.dtype) if isinstance(argument, ScalarArgument) else "None"


def _group(accepted: Accepted) -> int | None:
    return accepted.spec.group if isinstance(accepted.spec, ArraySpec) else None
