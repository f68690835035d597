"""How remaps are named and shown: every name that is told works, and no text is long."""

from __future__ import annotations

import pytest

from tests.unit.passes.remapped import CASES, captured
from tilenest.errors import RemapError
from tilenest.passes import remap


@pytest.mark.parametrize("case", ["ordered", "owned", "staged", "triangle"])
def test_every_name_that_is_told_names_a_run_of_nests(case: str) -> None:
    module = captured(CASES[case])
    with pytest.raises(RemapError, match="no runs of nests with a level 'nobody'") as refused:
        remap(module, "nobody")
    told = (refused.value.remedy or "").partition(": ")[2].split(", ")
    for name in told:
        assert name in [level.identity for level in remap(module, name).levels.levels]
    innermost = [level.identity for level in remap(module, told[-1]).levels.levels]
    assert set(innermost) <= set(told), "levels of outer nests are told as well"


def test_plans_and_proofs_are_shown_in_a_line_each() -> None:
    plan = remap(captured(CASES["ordered"]), "column").split("column", 2)
    assert repr(plan).startswith("<Remapping of [") and len(repr(plan)) < 300
    for proof in plan.apply():
        assert repr(proof).startswith("<RemapProof of ") and repr(proof).endswith(": proven>")
        assert len(repr(proof)) < 150
    proofs = remap(captured(CASES["ordered"]), "column").permute("column", "step").proofs()
    broken = [repr(proof) for proof in proofs if proof.failure is not None]
    assert broken and all(text.endswith("is not proven>") for text in broken)
