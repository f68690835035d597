"""Answers that a rewriter keeps are those of a fresh run, whatever has been edited."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.ir.test_edits import Session
from tilenest.analysis import Distributions, Dominance, LayoutFacts, Liveness, MemoryEffects
from tilenest.ir import Analysis, Function

OF_FUNCTIONS: tuple[type[Analysis[Function, Any]], ...] = (
    Dominance,
    Distributions,
    LayoutFacts,
    Liveness,
    MemoryEffects,
)


@pytest.mark.parametrize("analysis", OF_FUNCTIONS, ids=lambda analysis: analysis.NAME)
def test_answers_about_functions_are_kept_rightly(analysis: type[Analysis[Function, Any]]) -> None:
    session = Session(3, 60)
    mirror, analyses = session.mirror, session.mirror.rewriter.analyses
    kept = 0
    for _ in range(400):
        for function in mirror.lists.functions:
            kept += analyses.is_known(analysis, function)
            analyses.get(analysis, function)
        session.edit()
        analyses.check()
    assert kept > 0
