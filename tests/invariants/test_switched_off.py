"""No rule is idle: without it, an example that it refuses is judged differently.

`pytest -rP` on this file lists the examples that need each rule.
"""

import sys

import pytest

import tilenest as tn
from tests.invariants.corpus import Example, examples
from tilenest.ir import Rule
from tilenest.verify import RULE_STEPS, TN_RULES, diagnose_module

EXAMPLES = examples()


def outcome(example: Example, rule: Rule, *, is_on: bool) -> list[str]:
    """What is said of an example by the rules up to the step of this one: later steps assume it."""
    place = next(place for place, rules in enumerate(RULE_STEPS) if rule in rules)
    steps = [tuple(r for r in rules if r is not rule or is_on) for rules in RULE_STEPS[: place + 1]]
    return [str(found) for found in diagnose_module(tn.parse(example.text), steps)]


@pytest.mark.parametrize("rule", TN_RULES, ids=lambda rule: rule.id)
def test_switching_a_rule_off_changes_an_example(rule: Rule) -> None:
    changed = [
        example.id
        for example in EXAMPLES
        if example.rule == rule.id
        and outcome(example, rule, is_on=False) != outcome(example, rule, is_on=True)
    ]
    sys.stdout.write(f"{rule.id} -> {', '.join(changed)}\n")
    assert changed, f"no example needs {rule.id}"
