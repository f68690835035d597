"""All proof engines on one corpus: none is ever wrong, and some one decides what a person can."""

from collections import Counter
from itertools import chain
from random import Random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.layouts.corpus import (
    Case,
    affine_cases,
    cases,
    matrix_cases,
    named_cases,
    random_cases,
)
from tests.unit.layouts.judge import ENGINES, check
from tilenest.layouts import affine_engine, bit_engine, isl_engine
from tilenest.layouts.answers import Answer

KINDS = ("affine", "bits", "quotients", "run-time")


def ask(engine: ModuleType, case: Case) -> str:
    """The engine's verdict, which has to be right."""
    question = getattr(engine, case.question, None)
    answer: Answer | None = None if question is None else question(*case.maps)
    verdict = check(answer, case.question, case.maps, case.choices)
    if verdict in ("proven", "disproven") and case.verdict is not None:
        assert verdict == case.verdict, f"{engine.ENGINE}: {case.name}: {answer}"
    return verdict


@pytest.mark.parametrize("case", list(named_cases()), ids=lambda case: case.name)
def test_some_engine_decides_and_none_is_wrong(case: Case) -> None:
    verdicts = {ask(engine, case) for engine in ENGINES}
    assert verdicts & {"proven", "disproven"}, f"{case.name}: {verdicts}"


def test_9375_affine_maps() -> None:
    counts = Counter(ask(affine_engine, case) for case in affine_cases())
    assert counts.total() == 9375
    assert counts["unknown"] == 0
    assert counts["none"] < 1500


def test_all_3x3_matrices() -> None:
    counts = Counter(ask(bit_engine, case) for case in matrix_cases())
    assert counts.total() == 512 * 2 * 3
    assert counts["unknown"] == 0
    # Left open: what a ragged box covers whose points share places.
    assert counts["none"] < 300


@pytest.mark.parametrize("engine", ENGINES, ids=lambda engine: str(engine.ENGINE))
@pytest.mark.parametrize("kind", KINDS)
def test_random_maps(engine: ModuleType, kind: str) -> None:
    counts = Counter(ask(engine, case) for case in random_cases(kind, 25, seed=2))
    assert counts.total() > 100
    if engine is isl_engine and kind in ("quotients", "run-time"):
        assert counts["none"] == 0
        assert counts["unknown"] <= 2


@given(st.sampled_from(KINDS), st.integers(0, 2**32))
def test_no_engine_contradicts_enumeration(kind: str, seed: int) -> None:
    for case in random_cases(kind, 1, seed):
        for engine in ENGINES:
            assert ask(engine, case) in ("proven", "disproven", "unknown", "none")


@pytest.mark.slow
def test_every_engine_on_the_whole_corpus() -> None:
    more = (random_cases(kind, 150, seed=Random(kind).randrange(2**32)) for kind in KINDS)
    for case in chain(cases(), *more):
        for engine in ENGINES:
            ask(engine, case)
