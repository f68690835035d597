"""Answers that a rewriter keeps are those of a fresh run, whatever has been edited."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.analysis.random_edits import TARGET, Edits, modules
from tests.unit.ir.test_edits import Session
from tilenest.analysis import (
    Distributions,
    Dominance,
    ExecutionStructure,
    GuardFacts,
    LayoutFacts,
    Liveness,
    MemoryEffects,
    MemoryStates,
    Orderings,
    PipelineDependences,
    PipelineSchedules,
    Reductions,
    ResourcePressure,
    ScratchLayout,
    WorkEstimates,
)
from tilenest.dialects import Call, MapReducePost, Reduce
from tilenest.errors import TileError
from tilenest.ir import Analysis, AnalysisManager, Function, Module, On
from tilenest.plan import NestPlans, Placements

OF_FUNCTIONS: tuple[type[Analysis[Function, Any]], ...] = (
    Distributions,
    Dominance,
    ExecutionStructure,
    GuardFacts,
    LayoutFacts,
    Liveness,
    MemoryEffects,
    MemoryStates,
    PipelineDependences,
    ResourcePressure,
    ScratchLayout,
    WorkEstimates,
)
OF_TARGETS: tuple[type[Analysis[Any, Any]], ...] = (PipelineSchedules, Placements)
Question = tuple[type[Analysis[Any, Any]], Any]


def questions(module: Module) -> Iterator[Question]:
    """All that may be asked of a module and its parts."""
    for function in module.functions:
        yield from ((analysis, function) for analysis in OF_FUNCTIONS)
        if module.form != "machine":
            yield from ((analysis, On(function, TARGET)) for analysis in OF_TARGETS)
    for op in module.walk():
        if isinstance(op, Reduce | MapReducePost):
            yield Reductions, op
        if isinstance(op, Reduce | Call):
            yield Orderings, op
        if isinstance(op, MapReducePost) and module.form == "scheduled":
            yield NestPlans, On(op, TARGET)


def ask(analyses: AnalysisManager, question: Question) -> bool:
    """Ask, and say whether the answer was known; some programs a target refuses."""
    is_known = analyses.is_known(*question)
    try:
        analyses.get(*question)
    except TileError:
        assert not is_known
    return is_known


def check_edits(seed: int, edits: int) -> tuple[Counter[str], Counter[str]]:
    """How often each analysis was asked under edits of modules of every form, and was known."""
    asked, known = Counter[str](), Counter[str]()
    for place, module in enumerate(modules(seed)):
        session = Edits(module, seed + place)
        analyses, chance = session.rewriter.analyses, session.chance
        for _ in range(edits):
            for question in questions(module):
                if chance.random() < 0.5:
                    asked[question[0].NAME] += 1
                    known[question[0].NAME] += ask(analyses, question)
            session.edit()
            analyses.check()
    return asked, known


def test_answers_of_all_analyses_are_kept_rightly_in_every_form() -> None:
    asked, known = check_edits(3, 15)
    of_operations: list[type[Analysis[Any, Any]]] = [Reductions, Orderings, NestPlans]
    for analysis in (*OF_FUNCTIONS, *OF_TARGETS, *of_operations):
        assert known[analysis.NAME] > 10, analysis
        assert known[analysis.NAME] < asked[analysis.NAME]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_answers_are_kept_rightly_under_twenty_thousand_edits(seed: int) -> None:
    asked, known = check_edits(seed, 42)
    assert 0 < known.total() < asked.total()


@pytest.mark.parametrize("analysis", OF_FUNCTIONS, ids=lambda analysis: analysis.NAME)
def test_answers_about_functions_are_kept_rightly(analysis: type[Analysis[Function, Any]]) -> None:
    session = Session(3, 60)
    mirror, analyses = session.mirror, session.mirror.rewriter.analyses
    kept = 0
    for _ in range(200):
        for function in mirror.lists.functions:
            kept += analyses.is_known(analysis, function)
            analyses.get(analysis, function)
        session.edit()
        analyses.check()
    assert kept > 0
