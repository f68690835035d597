"""TN05 where many nests are alike: what it reads, not how long that takes."""

from __future__ import annotations

import pytest

import tilenest as tn
from tests.unit.verify.test_remapped_bodies import SPLIT, said_of
from tilenest.analysis import remembered_remaps
from tilenest.analysis.remapped_bodies import OldBody, RemapProblem, Rung, old_body
from tilenest.dialects import AppliedRemap
from tilenest.ir import print_module
from tilenest.passes import remap

MANY = 12


@pytest.mark.parametrize("order", [range(MANY), reversed(range(MANY))])
def test_each_record_reads_one_body(order: range, monkeypatch: pytest.MonkeyPatch) -> None:
    """The nest whose levels are called as it says is tried first, and holds."""
    start, end = SPLIT.index("  exec.parallel"), SPLIT.index("  func.return")
    nest = SPLIT[start:end]
    nests = [nest.replace("%b", f"%b{place}") for place in range(MANY)]
    module = tn.parse(SPLIT[:start] + "".join(nests) + SPLIT[end:])
    for place in order:
        remap(module, f"b{place}").split(f"b{place}", 4).apply()
    read = list[str]()

    def reading(applied: AppliedRemap, rungs: tuple[Rung, ...]) -> OldBody | RemapProblem:
        read.append(applied.steps[0])
        return old_body(applied, rungs)

    monkeypatch.setattr(remembered_remaps, "old_body", reading)
    text = print_module(module)
    assert said_of(text) == "accepted"
    assert len(read) == len(set(read)) == MANY
    # Where one does not hold, no other one is called as it says, and all are tried.
    assert "no condition holds" in said_of(text.replace("constant 9 :", "constant 8 :"))
