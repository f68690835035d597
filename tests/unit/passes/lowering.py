"""A module on its way down, step by step, for tests that look at it after each.

In: a Candidate module and a machine. Out: the name of every step and the module it leaves, verified
and with every remembered answer checked; the last is the module in Machine form.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.ir import Module, Rewriter
from tilenest.machine import Machine, cpu_target
from tilenest.passes import SCHEDULE_PASSES, lower_machine, simplify_machine
from tilenest.verify import verify_module


def lowered(module: Module, machine: Machine) -> Iterator[tuple[str, Module]]:
    """The module is changed in place up to Scheduled form."""
    rewriter = Rewriter()
    for name, step in SCHEDULE_PASSES:
        step(module, cpu_target(machine), rewriter)
        verify_module(module)
        rewriter.analyses.check()
        yield name, module
    result = lower_machine(module)
    simplify_machine(result)
    verify_module(result)
    yield "lower to loops", result
