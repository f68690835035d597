"""Writes docs/reference/invariants.md: each invariant, its rules, and what they say of examples.

Run `python -m tools.write_invariants` at the root of the repository. In: the table of invariants,
their rules, and the examples beside the tests. Out: the page. For every rule it shows a module that
breaks the rule with the diagnostic it gets, and names the other examples.
"""

from collections.abc import Iterator
from pathlib import Path

import tilenest as tn
from tests.invariants.corpus import Example, examples
from tilenest.ir import Diagnostic, Rule
from tilenest.verify import INVARIANTS, TN_RULES, Invariant, diagnose_module

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "invariants.md"
HEAD = """\
# The invariants of TileIR

Written by `python -m tools.write_invariants` from `tilenest.verify` and the examples in
`tests/invariants`; change those. Every example is run by `make test`.

A module is verified after capture and after each pass under `TILENEST_VERIFY=1`. A rule that finds
a fault gives one diagnostic: the rule, the operation, the fact that does not hold, and a remedy.
Where a rule needs a proof, what is neither proven nor disproven is refused too. Several rules may
hold one invariant; theirs have letters.
"""


def page() -> str:
    """The text of the page."""
    known = examples()
    lines = [HEAD, "| rule | what holds |", "|---|---|"]
    lines += [f"| [{i.id}](#{_anchor(i)}) | {i.title} |" for i in INVARIANTS]
    for invariant in INVARIANTS:
        lines += ["", f"## {_heading(invariant)}", "", invariant.meaning]
        own = [example for example in known if example.invariant == invariant.id]
        for rule in TN_RULES:
            if rule.id[:4] == invariant.id:
                lines += _section(rule, [example for example in own if example.rule == rule.id])
        kept = [example for example in own if example.rule is None]
        if kept:
            lines += ["", "Accepted:", ""]
            lines += [_item(example) for example in kept]
    return "\n".join(lines) + "\n"


def _heading(invariant: Invariant) -> str:
    return f"{invariant.id}: {invariant.title}"


def _anchor(invariant: Invariant) -> str:
    kept = [c for c in _heading(invariant).lower() if c.isalnum() or c in " -"]
    return "".join(kept).replace(" ", "-")


def _section(rule: Rule, broken: list[Example]) -> Iterator[str]:
    yield from ("", f"### Rule {rule.id}: {rule.title}")
    if not broken:
        return
    # The first diagnostic of the shortest module says most in the least space.
    shown = min(broken, key=lambda example: len(example.text))
    found = diagnose_module(tn.parse(shown.text))[0]
    yield from ("", f"Refused, because {shown.meaning}:", "")
    yield from ("```", body(shown.text), "```", "")
    yield from ("```", *_diagnostic(found), "```")
    others = [example for example in broken if example is not shown]
    if others:
        yield from ("", "Refused as well:", "")
        yield from map(_item, others)


def _diagnostic(found: Diagnostic) -> list[str]:
    return [str(found), f"remedy: {found.remedy}"]


def _item(example: Example) -> str:
    path = f"../../tests/invariants/{example.invariant}/{example.name}.tileir"
    return f"- [{example.name.partition('-')[2].replace('-', ' ')}]({path}): {example.meaning}"


def body(text: str) -> str:
    """The module without the comments that open the example."""
    lines = text.splitlines()
    while lines and lines[0].startswith(";"):
        del lines[0]
    return "\n".join(lines).strip()


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
