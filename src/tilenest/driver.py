"""The whole compilation on one page: a Python function becomes machine code.

In: a function, the specs of its arguments and its configuration (`capture_kernel`), then what that
captured (`lower`). Out: a `Captured` program, whose text is the key under which code is kept, and a
`Compilation`: every stage, the plan with its reasons, the time of each step, and the object. With
`TILENEST_VERIFY=1` every pass is followed by the verifier.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import FunctionType, ModuleType

from tilenest import analysis
from tilenest.backends.llvm import (
    Argument,
    ArrayArgument,
    EntryDescription,
    HostMachineInfo,
    NoneArgument,
    ScalarArgument,
    compile_object,
    emit_assembly,
    generate,
)
from tilenest.backends.llvm import host_machine as host_processor
from tilenest.capture import (
    CaptureResult,
    Guards,
    NoneSpec,
    ScalarSpec,
    Specification,
    capture,
    definition_location,
    known_location,
)
from tilenest.decisions import Plan
from tilenest.dialects import capabilities_of, chain_of, registry, view_name
from tilenest.errors import (
    ArgumentTypeError,
    OverlapError,
    ParseError,
    SourceLocation,
    SourceUnavailableError,
    VerifyError,
    shown,
)
from tilenest.ir import (
    MOST_CHARACTERS,
    BlockArgument,
    Function,
    Module,
    Rewriter,
    Value,
    clone_module,
    parse_module,
    print_module,
)
from tilenest.machine import Machine, Target, cpu_target, host_machine, read_cache_sizes
from tilenest.records import record

FORMS = ("candidate", "scheduled", "machine")
Rearrange = Callable[[Module], object]
"""What the user does to a program between the two steps, in place."""


@record
class Host:
    """The machine at hand: as the code generator is told, and as the plan sees it."""

    processor: HostMachineInfo
    machine: Machine

    @property
    def features(self) -> frozenset[str]:
        """What code may need: features of the instruction set, and of what the plan saw."""
        return self.processor.enabled | self.machine.features


@cache
def host() -> Host:
    """The machine this process runs on."""
    processor = host_processor()
    cores = len(os.sched_getaffinity(0))
    machine = host_machine(processor.enabled, cores, read_cache_sizes(), processor.cpu)
    return Host(processor, machine)


@record
class CheckedAccess:
    """An access that checks its bounds, as errors name it: of each view down to the storage."""

    texts: tuple[str, ...]
    location: SourceLocation | None


@record
class Captured:
    """A kernel in Candidate form, under which guards, and how compiled code is called."""

    name: str
    parameters: tuple[str, ...]
    location: SourceLocation | None
    """where the kernel is defined"""
    module: Module
    text: str
    guards: Guards
    entry: EntryDescription
    written: Mapping[int, SourceLocation | None]
    """which arguments the kernel writes to, and where first"""
    checked: Mapping[int, CheckedAccess]
    """the accesses that check their bounds, by the number that compiled code knows them by"""


@record
class Compilation:
    """Everything one compilation made, in order; texts are printed when they are asked for."""

    candidate: str
    scheduled: Module
    machine: Module
    plan: Plan
    llvm: str
    object_code: bytes
    processor: HostMachineInfo
    timings: Mapping[str, float]
    """seconds per step"""

    def ir(self, form: str) -> str:
        """The program in one of `FORMS`."""
        if form == "candidate":
            return self.candidate
        return print_module({"scheduled": self.scheduled, "machine": self.machine}[form])

    @property
    def needs(self) -> frozenset[str]:
        """The features that the code needs: what its guards state, and the instruction set that it
        was generated for."""
        stated = map(capabilities_of, self.machine.functions)
        return self.processor.enabled.union(*stated)

    def assembly(self) -> str:
        """The machine code as text."""
        return emit_assembly(self.llvm, machine=self.processor)


def capture_kernel(
    function: FunctionType,
    specs: Sequence[Specification],
    configuration: Mapping[str, object],
    *,
    bounds: str = "zero",
    rearrangements: Sequence[Rearrange] = (),
) -> Captured:
    """Run the function on staged arguments; the first of the two steps."""
    name = function.__name__
    found = capture(function, specs, configuration, name=name, bounds=bounds)
    check(found.module, "capture")
    for rearrange in rearrangements:
        _refuse_result(rearrange(found.module), found.module, name, rearrange)
        check(found.module, "rearrange")
    parameters = function.__code__.co_varnames[: len(specs)]
    program = found.module.function(name)
    refuse_hazard(found, program, parameters)
    entry = describe_entry(found, specs)
    text = print_module(found.module)
    written = {found.arguments[argument]: place for argument, place in stored_at(program).items()}
    checked = checked_accesses(program)
    start = definition_location(function)
    return Captured(
        name, parameters, start, found.module, text, found.guards, entry, written, checked
    )


def _refuse_result(result: object, module: Module, name: str, rearrange: Rearrange) -> None:
    """Refuse what would be thrown away: a plan that nobody applied, and another module."""
    if isinstance(result, _import_passes().Remapping):
        what, remedy = "a remap that is not applied", "end its steps with .apply()"
    elif isinstance(result, Module) and result is not module:
        what, remedy = "another module", "change the module that it is given, in place"
    else:
        return
    place = known_location(rearrange) if isinstance(rearrange, FunctionType) else None
    raise ArgumentTypeError(f"the function that rearranges {name} returns {what}", remedy, place)


def lower(captured: Captured, target: Host) -> Compilation:
    """From Candidate to machine code; the second step."""
    clock = _Clock()
    passes = _import_passes()
    module = clone_module(captured.module)
    plan = Plan()
    rewriter = Rewriter()
    cpu = cpu_target(target.machine)
    for name, step in passes.SCHEDULE_PASSES:
        plan = plan.with_decisions(step(module, cpu, rewriter))
        clock.lap(name)
        check(module, name, rewriter, cpu)
    machine = passes.lower_machine(module, rewriter)
    clock.lap("lower to loops")
    check(machine, "lower to loops", target=cpu)
    passes.simplify_machine(machine)
    clock.lap("simplify loops")
    check(machine, "simplify loops", target=cpu)
    text = generate(machine, captured.entry, target.processor)
    clock.lap("write llvm")
    code = compile_object(text, machine=target.processor)
    clock.lap("generate code")
    return Compilation(
        captured.text, module, machine, plan, text, code, target.processor, clock.laps
    )


def check(
    module: Module, step: str, rewriter: Rewriter | None = None, target: Target | None = None
) -> None:
    """Verify what a step left, where the environment asks for it, and that the answers the rewriter
    keeps are those of the module."""
    if os.environ.get("TILENEST_VERIFY") != "1":
        return
    if rewriter is not None:
        rewriter.analyses.check()
    try:
        _import_verify().verify_module(module, target)
    except VerifyError as error:
        error.add_note(f"after the step {step!r}")
        raise


def parse(source: str | os.PathLike[str]) -> Module:
    """The module that a text of TileIR stands for, or the file at a path."""
    if isinstance(source, os.PathLike):
        file = os.fspath(source)
        return parse_module(_read(file), registry(), file=file)
    if not isinstance(source, str):
        raise ArgumentTypeError(
            f"TileIR is read from a text or a path, not from {type(source).__name__}",
            "pass a str, or a pathlib.Path for a file",
        )
    return parse_module(source, registry())


def _read(file: str) -> str:
    """The text of a file; one that is too long for a text is not read to its end."""
    try:
        with open(file, encoding="utf-8") as stream:
            return stream.read(MOST_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise ParseError(
            f"{file} is not UTF-8: {error.reason}", "save the text as UTF-8"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceUnavailableError(
            f"{shown(file)} cannot be read: {reason}", "check the path"
        ) from error


def stored_at(function: Function) -> dict[int, SourceLocation | None]:
    """The arguments that are stored to, and where first."""
    places: dict[int, SourceLocation | None] = {}
    for op in function.walk():
        for storage in analysis.stored_by(op):
            if isinstance(storage, BlockArgument):
                places.setdefault(storage.index, op.location)
    return places


def checked_accesses(function: Function) -> dict[int, CheckedAccess]:
    """The accesses that check their bounds, by their numbers."""
    found: dict[int, CheckedAccess] = {}
    for op in function.walk():
        if op.ACTION and op.attributes["bounds"] == "check":
            (touch,) = op.accesses()
            views = [touch.memory, *(remap.view for remap in chain_of(touch.memory))]
            texts = tuple(f"{op.ACTION} of {view_name(view)}" for view in views)
            found[op.attributes["site"]] = CheckedAccess(texts, op.location)
    return found


def refuse_hazard(found: CaptureResult, function: Function, parameters: Sequence[str]) -> None:
    """Refuse arguments that are the same array where the order of instances would show."""
    groups = function.attributes.get("alias_groups") or ()
    is_alone = len(set(groups)) == len(groups)
    hazard = None if is_alone else analysis.coincidence_hazard(function)
    if hazard is None:
        return
    place_of: dict[Value, int] = dict(zip(function.arguments, found.arguments, strict=True))
    names = [parameters[place_of[argument]] for argument in hazard.arguments]
    raise OverlapError(
        f"arguments {names[0]!r} and {names[1]!r} are the same array, and {function.name} touches "
        f"parts of {names[0]!r} that other instances write through {names[1]!r}",
        f"pass a copy as {names[0]!r}",
        hazard.access.location,
    )


def describe_entry(found: CaptureResult, specs: Sequence[Specification]) -> EntryDescription:
    """What compiled code checks of each argument: that it is as the kernel was specialised."""
    number_of = {place: number for number, place in enumerate(found.arguments)}
    arguments: list[Argument] = []
    for place, spec in enumerate(specs):
        if isinstance(spec, NoneSpec):
            arguments.append(NoneArgument())
        elif isinstance(spec, ScalarSpec):
            arguments.append(ScalarArgument(spec.value_dtype))
        else:
            number = number_of[place]
            array = ArrayArgument(
                spec.dtype,
                *found.guards.layout_of(number, len(spec.shape)),
                is_written=place in found.written,
                group=found.guards.first_alike(number),
                unit_last=found.guards.unit_stride_of(number),
            )
            arguments.append(array)
    return EntryDescription(tuple(arguments))


@cache
def _import_passes() -> ModuleType:
    """The middle of the compiler, which code from the cache does without."""
    from tilenest import passes

    return passes


@cache
def _import_verify() -> ModuleType:
    from tilenest import verify

    return verify


class _Clock:
    """Seconds between laps."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = self.laps.get(name, 0.0) + now - self._last
        self._last = now
