"""The whole compilation on one page: a Python function becomes machine code.

In: a function, the specs of its arguments and its configuration (`capture_kernel`), then what that
captured (`lower`). Out: a `Captured` program, whose text is the key under which code is kept, and a
`Compilation`: every stage, the plan with its reasons, the time of each step, and the object. With
`TILENEST_VERIFY=1` every pass is followed by the verifier.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import FunctionType

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
)
from tilenest.dialects import ATTRIBUTE_RECORDS, OPERATIONS
from tilenest.ir import Function, clone_module, Module, Registry, ViewType, parse_module, print_module
from tilenest.machine import Machine, host_machine, read_cache_sizes
from tilenest.passes import lower_machine, schedule, simplify_machine
from tilenest.plan import Plan
from tilenest.verify import verify_module

FORMS = ("candidate", "scheduled", "machine")
REGISTRY = Registry.of(OPERATIONS, ATTRIBUTE_RECORDS)


@dataclass(frozen=True, slots=True)
class Host:
    """The machine at hand: as the code generator is told, and as the plan sees it."""

    processor: HostMachineInfo
    machine: Machine


@cache
def host() -> Host:
    """The machine this process runs on."""
    processor = host_processor()
    features = [name[1:] for name in processor.features.split(",") if name.startswith("+")]
    cores = len(os.sched_getaffinity(0))
    return Host(processor, host_machine(features, cores, read_cache_sizes(), processor.cpu))


@dataclass(frozen=True, slots=True)
class Captured:
    """A kernel in Candidate form, under which guards, and how compiled code is called."""

    name: str
    parameters: tuple[str, ...]
    module: Module
    text: str
    guards: Guards
    entry: EntryDescription
    written: tuple[int, ...]
    """which arguments the kernel writes to"""


@dataclass(frozen=True, slots=True)
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

    def assembly(self) -> str:
        """The machine code as text."""
        return emit_assembly(self.llvm, machine=self.processor)


def capture_kernel(
    function: FunctionType,
    specs: Sequence[Specification],
    configuration: Mapping[str, object],
    *,
    bounds: str = "zero",
    math: str = "strict",
) -> Captured:
    """Run the function on staged arguments; the first of the two steps."""
    name = function.__name__
    found = capture(function, specs, configuration, name=name, bounds=bounds, math=math)
    if must_verify():
        verify_module(found.module)
    parameters = function.__code__.co_varnames[: len(specs)]
    entry = describe_entry(found, found.module.function(name), specs)
    text = print_module(found.module)
    written = tuple(sorted(found.written))
    return Captured(name, parameters, found.module, text, found.guards, entry, written)


def lower(captured: Captured, target: Host) -> Compilation:
    """From Candidate to machine code; the second step."""
    clock = _Clock()
    module = clone_module(captured.module)
    clock.lap("copy")
    plan = schedule(module, target.machine)
    clock.lap("schedule")
    machine = lower_machine(module)
    clock.lap("lower to loops")
    simplify_machine(machine)
    clock.lap("simplify")
    if must_verify():
        verify_module(module)
        verify_module(machine)
    text = generate(machine, captured.entry, target.processor)
    clock.lap("write llvm")
    code = compile_object(text, machine=target.processor)
    clock.lap("generate code")
    return Compilation(
        captured.text, module, machine, plan, text, code, target.processor, clock.laps
    )


def parse(text: str) -> Module:
    """The module that a text of TileIR stands for."""
    return parse_module(text, REGISTRY)


def must_verify() -> bool:
    """Whether the environment asks for the verifier."""
    return os.environ.get("TILENEST_VERIFY") == "1"


def describe_entry(
    found: CaptureResult, function: Function, specs: Sequence[Specification]
) -> EntryDescription:
    """What compiled code checks of each argument: that it is as the kernel was specialised."""
    parameters = dict(zip(found.arguments, function.arguments, strict=True))
    arguments: list[Argument] = []
    for place, spec in enumerate(specs):
        if isinstance(spec, NoneSpec):
            arguments.append(NoneArgument())
        elif isinstance(spec, ScalarSpec):
            arguments.append(ScalarArgument(spec.value_dtype))
        else:
            view = parameters[place].type
            assert isinstance(view, ViewType)
            array = ArrayArgument(
                spec.dtype,
                view.shape,
                view.strides,
                is_written=place in found.written,
                group=found.guards.alias_groups[place],
                unit_last=found.guards.unit_strides[place],
            )
            arguments.append(array)
    return EntryDescription(tuple(arguments))


class _Clock:
    """Seconds between laps."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name] = now - self._last
        self._last = now
