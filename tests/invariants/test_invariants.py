"""Every example of an invariant: accepted without a diagnostic, or refused by its rule alone."""

from collections import Counter

import pytest

import tilenest as tn
from tests.invariants.corpus import Example, examples
from tilenest.verify import INVARIANTS, TN_RULES, Invariant, diagnose_module

EXAMPLES = examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_example(example: Example) -> None:
    found = diagnose_module(tn.parse(example.text))
    if example.rule is None:
        assert not found, [str(diagnostic) for diagnostic in found]
        return
    assert {diagnostic.rule for diagnostic in found} == {example.rule}, [str(d) for d in found]
    assert any(example.message in diagnostic.message for diagnostic in found), str(found[0])
    assert all(diagnostic.remedy for diagnostic in found)
    if example.blamed is not None:
        blamed = [d.operation.NAME for d in found if d.operation is not None]
        assert example.blamed in blamed


@pytest.mark.parametrize("invariant", INVARIANTS, ids=lambda invariant: invariant.id)
def test_invariant_has_examples(invariant: Invariant) -> None:
    assert any(rule.id.startswith(invariant.id) for rule in TN_RULES)
    counts = Counter(e.rule is None for e in EXAMPLES if e.invariant == invariant.id)
    assert counts[True] >= 1
    assert counts[False] >= 2


def test_every_rule_refuses_an_example() -> None:
    refusing = {example.rule for example in EXAMPLES}
    assert {rule.id for rule in TN_RULES} <= refusing
