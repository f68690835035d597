"""The tally of proof questions counts verdicts, and an answer that enumeration refutes as wrong."""

from types import SimpleNamespace

from tests.unit.layouts.corpus import named_cases
from tilenest.layouts import proven, unknown
from tools.layout_questions import Tally, first_sure_answer

CASES = [case for case in named_cases() if case.name.startswith(("row-major", "stride 0"))]


def test_a_wrong_proof_is_counted_and_named(capsys) -> None:
    careless = SimpleNamespace(is_injective=lambda _: proven("careless", "why not"))
    tally = Tally("careless", [careless])
    for case in CASES:
        tally.ask(case)
    assert tally.counts == {"proven": 1, "wrong": 1, "none": 6}
    assert "wrong: careless: stride 0: is_injective" in capsys.readouterr().out
    assert tally.row().split()[:5] == ["careless", "1", "0", "0", "6"]


def test_the_next_engine_is_asked_after_unknown() -> None:
    unsure = SimpleNamespace(is_total=lambda _: unknown("unsure", "too long"))
    sure = SimpleNamespace(is_total=lambda _: proven("sure", "by bounds"))
    for engines, engine in (([unsure, sure], "sure"), ([unsure], "unsure"), ([sure], "sure")):
        answer = first_sure_answer(engines, CASES[0])
        assert answer is not None
        assert answer.engine == engine
    assert first_sure_answer([], CASES[0]) is None
