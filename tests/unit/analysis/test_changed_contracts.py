"""A changed contract drops the placement, protocol and cost derived from it, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.analysis.random_edits import TARGET, chosen, multiplied, piped, reduced, staged
from tests.unit.analysis.test_kept_answers import Question, ask, questions
from tilenest.analysis import (
    ASYNC_COPIES,
    Accuracy,
    Distributions,
    ExecutionStructure,
    LayoutFacts,
    MemoryEffects,
    Orderings,
    PipelineDependences,
    PipelineSchedules,
    Reductions,
    WorkEstimates,
)
from tilenest.dialects import (
    Alloc,
    AtomEffect,
    Call,
    Loop,
    MapReducePost,
    Pipeline,
    Reduce,
    Sched,
)
from tilenest.driver import parse
from tilenest.ir import Analysis, Function, Module, On, Operation, Rewriter, fresh
from tilenest.plan import NestPlans, Placements
from tilenest.records import replace
from tilenest.verify import diagnose_module

EXAMPLES = Path(__file__).parents[2] / "invariants"
COPYING = replace(TARGET, features=TARGET.features | {ASYNC_COPIES})


class Kept:
    """A module whose every question has been asked."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.rewriter = Rewriter()
        self.function = next(iter(module.functions))
        self.asked = list(questions(module))
        if module.form == "candidate":
            self.asked.append((PipelineSchedules, self.on_copying))

    @property
    def on_copying(self) -> On[Function, Any]:
        return On(self.function, COPYING)

    def of(self, cls: type[Operation]) -> list[Any]:
        return [op for op in self.module.walk() if isinstance(op, cls)]

    def dropped_by(self, edit: Callable[[Rewriter], object]) -> set[Question]:
        """What an edit drops; all else stays the same object, and all is as a fresh run has it."""
        analyses = self.rewriter.analyses
        for question in self.asked:
            ask(analyses, question)
        before = {q: analyses.get(*q) for q in self.asked if analyses.is_known(*q)}
        edit(self.rewriter)
        assert not diagnose_module(self.module)
        analyses.check()
        kept = {q for q in before if analyses.is_known(*q)}
        assert all(analyses.get(*question) is before[question] for question in kept)
        return set(before) - kept

    def get(self, analysis: type[Analysis[Any, Any]], subject: Any) -> Any:
        found = self.rewriter.analyses.get(analysis, subject)
        assert found == fresh(analysis, subject)
        return found


def test_a_changed_reduction_contract_drops_its_placement_protocol_and_cost() -> None:
    kept = Kept(staged(reduced, "scheduled"))
    function = kept.function
    op, place = next(
        (o, result)
        for o in kept.of(MapReducePost)
        for result in o.folded_results
        if o.spec(result).contract.is_tree
    )
    plan, cost = kept.get(NestPlans, On(op, TARGET)), kept.get(WorkEstimates, function)
    assert plan.sched.preset == "reduction_vectorized"
    assert [selection.contract.id for selection in plan.atoms] == ["cpu.lanes.reduce"]

    contract = replace(op.spec(place).contract, policy="fold_left")
    specs = tuple(
        replace(spec, contract=contract) if result == place else spec
        for result, spec in enumerate(op.specs)
    )

    in_order = Sched(tuple(Loop(dim, 1) for dim in range(op.rank)), "classic")

    def restrict(rewriter: Rewriter) -> None:
        rewriter.set_attribute(op, "specs", specs)
        rewriter.set_attribute(op, "sched", in_order)

    derived = {(Reductions, op), (NestPlans, On(op, TARGET)), (WorkEstimates, function)}
    # The dims of its results stand beside the contracts.
    assert kept.dropped_by(restrict) <= derived | {(LayoutFacts, function)}
    after = kept.get(NestPlans, On(op, TARGET))
    assert (after.sched.preset, after.atoms) == ("vectorized", ())
    assert kept.get(Reductions, op)[0].accuracy is Accuracy.CHAIN
    block = op.parent
    assert kept.get(WorkEstimates, function).times[block] > cost.times[block]


def test_an_edit_elsewhere_keeps_what_a_contract_led_to() -> None:
    kept = Kept(staged(reduced, "scheduled"))
    op = next(o for o in kept.of(MapReducePost) if o.folded_results)
    other = next(o for o in kept.of(MapReducePost) if o is not op)
    assert not kept.dropped_by(lambda r: r.set_attribute(op, "sched", op.sched))
    assert not kept.dropped_by(lambda r: r.set_function_attribute(kept.function, "title", 1))
    dropped = kept.dropped_by(lambda r: r.set_attribute(other, "specs", other.specs))
    assert not dropped & {(Reductions, op), (NestPlans, On(op, TARGET))}


def test_a_changed_reduction_contract_of_a_nest_drops_its_legal_placements() -> None:
    kept = Kept(staged(chosen, "candidate"))
    nest = next(op for op in kept.of(Reduce) if op.contract.is_tree)
    assert kept.get(Reductions, nest)[0].policy == nest.policy
    contract = replace(nest.contract, policy="fold_left")
    dropped = kept.dropped_by(lambda r: r.set_attribute(nest, "contract", contract))
    assert dropped == {(Reductions, nest)}
    assert kept.get(Reductions, nest)[0].policy == "fold_left"


def test_a_changed_ordering_contract_drops_its_answer_alone() -> None:
    scan = EXAMPLES / "TN10" / "accepted-a-scan-by-blocks.tileir"
    kept = Kept(parse(scan))
    (op,) = kept.of(Call)
    assert kept.get(Orderings, op).blocks.is_legal
    combining = replace(op.ordering.reduction, policy="fold_left")
    changed = replace(op.ordering, reduction=combining)
    dropped = kept.dropped_by(lambda r: r.set_attribute(op, "ordering", changed))
    assert dropped == {(Orderings, op)}
    assert not kept.get(Orderings, op).blocks.is_legal


@pytest.mark.parametrize("name", ["window", "interval"])
def test_a_changed_pipeline_contract_drops_its_protocol(name: str) -> None:
    kept = Kept(staged(piped, "candidate"))
    (op,) = kept.of(Pipeline)
    before = kept.get(PipelineSchedules, kept.on_copying).schedules[op].pipeline
    assert before.in_flight == 2
    value = 1 if name == "window" else 1000
    dropped = kept.dropped_by(lambda r: r.set_attribute(op, name, value))
    schedules = {(PipelineSchedules, On(kept.function, t)) for t in (TARGET, COPYING)}
    assert dropped == schedules
    after = kept.get(PipelineSchedules, kept.on_copying).schedules[op].pipeline
    assert after.in_flight == 1 and after.interval > before.interval


def test_stated_dependences_drop_the_protocol_through_the_graph_of_stages() -> None:
    kept = Kept(staged(piped, "candidate"))
    (op,) = kept.of(Pipeline)
    stated = kept.get(PipelineDependences, kept.function).graphs[op].dependences
    effects = tuple(d for d in stated if d.kind == "effect")
    dropped = kept.dropped_by(lambda r: r.set_attribute(op, "dependences", effects))
    assert dropped == {
        (PipelineDependences, kept.function),
        *((PipelineSchedules, On(kept.function, t)) for t in (TARGET, COPYING)),
    }


def test_a_changed_spread_drops_the_distribution() -> None:
    kept = Kept(staged(multiplied, "scheduled"))
    alloc = next(op for op in kept.of(Alloc) if op.spread is not None)
    before = kept.get(Distributions, kept.function).held[alloc.result].spread
    same = replace(alloc.spread, replicated=not alloc.spread.replicated)
    ask_all = kept.dropped_by(lambda r: r.set_attribute(alloc, "spread", same))
    assert (Distributions, kept.function) in ask_all
    assert not {(Placements, On(kept.function, TARGET)), (MemoryEffects, kept.function)} & ask_all
    assert kept.get(Distributions, kept.function).held[alloc.result].spread != before


PRINTED = """module "candidate"

func @main(%A: view<f32, [4], [1]>) {
  %i = scalar.constant 0 : index
  %t = scalar.constant true : bool
  %x = tile.load(%A, [%i]) : f32
  atom.call "cpu.print"(%t, semantic = "print", touches = [#atom_effect<kind = "call">])
  tile.store(%A, [%i], %x)
  func.return
}
"""


def test_a_changed_atom_contract_drops_what_its_effects_led_to() -> None:
    kept = Kept(parse(PRINTED))
    call = next(op for op in kept.module.walk() if op.NAME == "atom.call")
    effects = kept.get(MemoryEffects, kept.function)
    assert effects.writes[call] is None

    def fault_instead(rewriter: Rewriter) -> None:
        rewriter.set_attribute(call, "atom", "cpu.assert")
        rewriter.set_attribute(call, "semantic", "assert")
        rewriter.set_attribute(call, "touches", (AtomEffect("fault"),))

    dropped = kept.dropped_by(fault_instead)
    assert {(MemoryEffects, kept.function), (ExecutionStructure, kept.function)} <= dropped
    assert (WorkEstimates, kept.function) not in dropped
    assert call not in kept.get(MemoryEffects, kept.function).writes
