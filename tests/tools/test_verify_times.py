"""The program that times the verifier goes through every stage, and finds the costly rules."""

from tilenest.verify import diagnose_module
from tools.verify_times import SHOWN, costliest, seconds_of, stages


def test_every_form_is_timed() -> None:
    found = list(stages(200))
    forms = [module.form for _, module, is_form in found if is_form]
    assert forms == ["candidate", "scheduled", "machine"]
    assert all(not diagnose_module(module) for _, module, _ in found)
    _, module, _ = found[0]
    assert min(seconds_of(module)) > 0
    spent = [seconds for seconds, _ in costliest(module)]
    assert len(spent) == SHOWN
    assert spent == sorted(spent, reverse=True)
