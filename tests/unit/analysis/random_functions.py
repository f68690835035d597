"""Random functions for analyses: branches by random edits, structure by random kernels.

In: seeds. Out: functions whose regions hold several blocks, and functions with loops, stages and
conditions in every form from capture to loops.
"""

from __future__ import annotations

from collections.abc import Iterator

import tilenest as tn
from tests.random_programs import Writer, arguments, staged_kernel
from tests.unit.ir.test_edits import Session
from tilenest.ir import Function, Module, Rewriter
from tilenest.machine import AVX2, cpu_target
from tilenest.passes import SCHEDULE_PASSES


def branching(seed: int) -> list[Function]:
    """The functions of a module after random edits."""
    session = Session(seed, 40)
    for _ in range(150):
        session.edit()
    return list(session.mirror.module.functions)


def forms(seed: int) -> Iterator[Module]:
    """One random kernel in each form up to Scheduled; the module is changed on the way."""
    module = tn.kernel(staged_kernel(Writer(seed).text())).capture(*arguments(1))
    yield module
    rewriter, form = Rewriter(), module.form
    for _, step in SCHEDULE_PASSES:
        step(module, cpu_target(AVX2), rewriter)
        if module.form != form:
            form = module.form
            yield module
    yield module


def structured(seed: int) -> Iterator[Function]:
    """The functions of one random kernel in each form."""
    for module in forms(seed):
        yield from module.functions
