"""Steps that name levels which are not there, or name them wrongly."""

from collections.abc import Callable

import pytest

from tests.unit.ir.photograph import photograph
from tests.unit.passes.remapped import CASES, captured
from tilenest.errors import ArgumentTypeError, RemapError
from tilenest.passes import Remapping, remap

Step = Callable[[Remapping], Remapping]


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda plan: plan.split("nope", 2), "level 'nope' is not there"),
        (lambda plan: plan.fuse("block_0", "nope"), "level 'nope' is not there"),
        (lambda plan: plan.unite("nope", "step"), "level 'nope' is not there"),
        (lambda plan: plan.permute("nope"), "level 'nope' is not there"),
        (lambda plan: plan.reshape(("nope",), (5,)), "level 'nope' is not there"),
        (lambda plan: plan.remove_unit("nope"), "level 'nope' is not there"),
        (lambda plan: plan.permute("step", "step"), "level 'step' is named twice"),
        (lambda plan: plan.fuse("block_0", "block_0"), "level 'block_0' is named twice"),
        (lambda plan: plan.split("step", 5).split("step", 5), "level 'step' is not there"),
        (lambda plan: plan.insert_unit(0, "step"), "a level 'step' is there already"),
    ],
)
def test_levels_have_to_be_there_and_named_once(step: Step, message: str) -> None:
    module = captured(CASES["gemm"])
    before = photograph(module)
    with pytest.raises(RemapError, match=message) as refused:
        step(remap(module, "step"))
    assert refused.value.remedy and "step" in refused.value.remedy
    assert photograph(module) == before


@pytest.mark.parametrize("step", [lambda plan: plan.fuse(), lambda plan: plan.unite()])
def test_steps_of_no_levels_say_that_they_need_two(step: Step) -> None:
    with pytest.raises(RemapError, match="no level is named") as refused:
        step(remap(captured(CASES["gemm"]), "step"))
    assert "at least two" in str(refused.value.remedy)


def test_names_of_levels_are_text() -> None:
    plan = remap(captured(CASES["gemm"]), "step")
    with pytest.raises(ArgumentTypeError, match="the name of a level"):
        plan.permute(1)  # type: ignore[arg-type]  # what is tested
