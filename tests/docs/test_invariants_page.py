"""The page of the invariants is what the program writes from the rules and the examples."""

from tests.invariants.corpus import examples
from tilenest.verify import INVARIANTS, TN_RULES
from tools.write_invariants import PAGE, page


def test_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tools.write_invariants"


def test_page_shows_every_rule_and_example() -> None:
    text = page()
    assert all(f"## {invariant.id}: {invariant.title}" in text for invariant in INVARIANTS)
    for rule in TN_RULES:
        section = text.split(f"### Rule {rule.id}: {rule.title}\n")[1].split("\n#")[0]
        assert f"```\n{rule.id} " in section
        assert "\nremedy: " in section
    named = [example for example in examples() if f"{example.name}.tileir" in text]
    shown = [example for example in examples() if example.meaning in text]
    assert len(shown) == len(examples()) == len(named) + len(TN_RULES)
