"""How remaps are named and shown: every name that is told works, and no text is long."""

from __future__ import annotations

import numpy as np
import pytest

import tilenest as tn
from tests.unit.passes.remapped import CASES, captured
from tilenest.errors import RemapError
from tilenest.ir import Rewriter, names_in_text, print_module
from tilenest.passes import remap
from tilenest.verify import verify_module


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


@pytest.mark.parametrize("case", CASES)
def test_the_names_of_values_are_those_of_the_text(case: str) -> None:
    module = captured(CASES[case])
    read = tn.parse(print_module(module))
    for function, again in zip(module.functions, read.functions, strict=True):
        names = names_in_text(function)
        for name, value in zip(names.values(), names_in_text(again), strict=True):
            assert value.name == (None if name.isdigit() else name)


def halved(A, C, row, count):
    for i in tn.parallel(2):
        for j in i.parallel(count):
            C.at(row, i.index() * 4 + j.index()).store(A.at(row, i.index() * 4 + j.index()).load())


@tn.kernel
def twice(A, C):
    halved(A, C, 0, 4)
    halved(A, C, 1, A.extent(1) // 2)


def test_nests_of_one_name_are_named_as_in_the_text() -> None:
    module = twice.capture(*[tn.spec((2, 8), tn.int32)] * 2)
    with pytest.raises(RemapError, match="no runs") as refused:
        remap(module, "nobody")
    assert str(refused.value.remedy).endswith(": i, j, i_1, j_1")
    for name, levels in (("j", ["i", "j"]), ("i_1", ["i_1"]), ("j_1", ["i_1", "j_1"])):
        assert [level.identity for level in remap(module, name).levels.levels] == levels
    remap(module, "j_1").split("j_1", 3).fuse("i_1", "j_1.0").apply()
    remap(module, "j").split("j", 2).permute("j.0", "i").apply()
    verify_module(tn.parse(print_module(module)))
    source, result = np.arange(16, dtype=np.int32).reshape(2, 8), np.full((2, 8), -1, np.int32)
    tn.interpret(module, [source, result])
    np.testing.assert_array_equal(result, source)
    remap(module, "j_inner").split("j_inner", 2).apply()


@tn.kernel
def taken(A, C):
    for i in tn.parallel(A.extent(0)):
        C.at(i.index()).store(A.at(i.index()).load())


def test_a_name_that_the_text_gives_to_another_value_still_names_a_nest() -> None:
    module = taken.capture(*[tn.spec((8,), tn.int32)] * 2)
    first = next(op for op in module.walk() if op.results)
    Rewriter().set_name(first.results[0], "i")
    assert "|%i_1: index|" in print_module(module)
    for name in ("i", "i_1"):
        plan = remap(module, name)
        assert [level.identity for level in plan.levels.levels] == [name]
        assert plan.split(name, 2).levels.levels[0].identity == f"{name}.0"
