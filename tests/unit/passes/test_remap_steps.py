"""Steps that name levels which are not there, or name them wrongly."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from tests.unit.ir.photograph import photograph
from tests.unit.passes.remapped import CASES, Case, captured, results, same_instances
from tilenest.dialects import Reduce, ReductionContract
from tilenest.errors import ArgumentTypeError, RemapError, VerifyError
from tilenest.execution import Definition, ExecStructure, identity
from tilenest.ir import print_module
from tilenest.layouts import Const, Sym
from tilenest.passes import Remapping, remap
from tilenest.records import replace

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


@pytest.mark.parametrize(
    "step",
    [
        lambda plan: plan.split("row", 2),
        lambda plan: plan.permute("column", "row"),
        lambda plan: plan.coalesce(),
        lambda plan: plan.insert_unit(0, "u"),
        lambda plan: plan.then(identity(plan.levels)),
    ],
)
def test_no_step_follows_a_re_anchoring(step: Step) -> None:
    plan = remap(captured(CASES["scaled"]), "column")
    (read,) = [one for one in plan.observers if one.is_repeatable]
    moved = plan.unite("row", "column").reanchor(read, 2)
    with pytest.raises(RemapError, match=r"follows a re-anchoring of anchor") as refused:
        step(moved)
    assert "re-anchor then" in str(refused.value.remedy)
    assert moved.reanchor(read, 1).reanchors[-1].cut.depth == 1


@pytest.mark.parametrize("policy", ["fold_left", "fold_right", "ordered_tree", "unordered_tree"])
def test_a_reduce_level_of_one_instance_has_a_policy(policy: str) -> None:
    case = CASES["folded"]
    module = captured(case)
    expected = results(case, module)
    plan = remap(module, "step").insert_unit(1, "once", "reduce", policy=policy)
    if policy.startswith("fold"):
        plan.apply()
        once = next(op for op in module.walk() if isinstance(op, Reduce))
        assert once.contract == ReductionContract(policy)
        np.testing.assert_array_equal(results(case, module), expected)
        if policy == "fold_left":
            remap(module, "step").fuse("once", "step").apply()
            assert len([op for op in module.walk() if isinstance(op, Reduce)]) == 1
            np.testing.assert_array_equal(results(case, module), expected)
    else:
        # A tree needs a merge, and this body has none.
        with pytest.raises(RemapError, match=f"{policy}, which regroups .* shows no merge") as e:
            plan.apply()
        assert e.value.remedy == "give the reduction a fold policy such as tn.reduction.fold_left"


@pytest.mark.parametrize("policy", ["", "fold", "left"])
def test_a_reduce_level_without_a_policy_says_which_there_are(policy: str) -> None:
    plan = remap(captured(CASES["folded"]), "step")
    with pytest.raises(RemapError, match="has no policy") as refused:
        plan.insert_unit(1, "once", "reduce", policy=policy)
    assert "policy=" in str(refused.value.remedy) and "fold_left" in str(refused.value.remedy)
    with pytest.raises(VerifyError, match="of kind serial has the policy 'fold_left'"):
        plan.insert_unit(1, "once", policy="fold_left")


def test_a_step_speaks_of_extents_that_there_are() -> None:
    """An extent that no level has could not be computed."""
    plan = remap(captured(CASES["run_time"]), "step")
    block, step = plan.levels.levels
    other = replace(block, extent="other")
    further = Definition("other", Sym(0) + 1, ("unknown",))
    for definitions, missing in (((), "other"), ((further,), "unknown")):
        new = ExecStructure((other, step), definitions)
        with pytest.raises(RemapError, match=rf"needs {missing}, which no level") as refused:
            plan.then(same_instances(plan.levels, new))
        assert str(block.extent) in str(refused.value.remedy)


def test_a_step_defines_no_extent_of_the_program() -> None:
    """Three instances are not all, whatever a definition says."""
    module = captured(CASES["run_time"])
    plan = remap(module, "step")
    block, step = plan.levels.levels
    assert isinstance(block.extent, str)
    three = Definition(block.extent, Const(3), ())
    new = ExecStructure((replace(block, extent=3), step), (three,))
    with pytest.raises(RemapError, match="a name of the old levels"):
        plan.then(same_instances(plan.levels, new)).apply()


def test_names_do_not_grow_with_the_remaps() -> None:
    """Each level is split and fused again; what the text gains is a record a remap."""
    case = CASES["gemm"]
    module = captured(case)
    expected = results(case, module)
    lengths = []
    for turn in range(12):
        names = [
            level.identity
            for level in remap(module, "step" if turn % 2 == 0 else "step_inner").levels.levels
        ]
        if turn % 2 == 0:
            remap(module, "step").split("block_0", 1).split("step", 5).apply()
        else:
            plan = remap(module, "step_inner")
            plan.fuse(*names[:2]).fuse(*names[-2:]).apply()
        lengths.append(len(print_module(module)))
    gained = [after - before for before, after in pairwise(lengths)]
    assert max(gained[2:]) <= max(gained[:2])
    assert [level.name for level in remap(module, "step").levels.levels] == names_of_levels(case)
    np.testing.assert_array_equal(results(case, module), expected)


def names_of_levels(case: Case) -> list[str]:
    return [level.name for level in remap(captured(case), "step").levels.levels]


def test_names_of_levels_are_text() -> None:
    plan = remap(captured(CASES["gemm"]), "step")
    with pytest.raises(ArgumentTypeError, match="the name of a level"):
        plan.permute(1)  # type: ignore[arg-type]  # what is tested
