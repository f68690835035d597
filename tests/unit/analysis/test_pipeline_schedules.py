"""Pipelines as problems of a scheduler: what overlaps where, and what the loop remembers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, specs_of
from tilenest import language
from tilenest.analysis import (
    ASYNC_COPIES,
    ModuloSchedule,
    PipelineDependences,
    PipelineSchedules,
    StageSchedules,
    Work,
    WorkEstimates,
    carried_storage,
    pipeline_problem,
    schedule_record,
    stage_work,
)
from tilenest.capture import capture
from tilenest.dialects import Load, Pipeline, PipelineSchedule, Serial, Store
from tilenest.driver import parse
from tilenest.errors import RemapError
from tilenest.ir import Module, On, Rewriter, float32, fresh, print_module
from tilenest.machine import AVX2, Target, cpu_target
from tilenest.passes import SCHEDULE_PASSES, remap
from tilenest.records import replace
from tilenest.verify import diagnose_module

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

PLAIN = cpu_target(AVX2)
COPYING = replace(PLAIN, features=PLAIN.features | {ASYNC_COPIES})


def with_capacity(capacity: int) -> Target:
    """A target that copies on the side, and has few bytes for it."""
    resources = tuple(replace(resource, capacity=capacity) for resource in COPYING.resources)
    return replace(COPYING, resources=resources)


def summed(X: Any, Y: Any, *, window: int) -> None:
    rows, columns = tn.axis("r", 8), tn.axis("c", min(X.shape[1], Y.shape[1]))
    for block in tn.parallel(2):
        total = tn.zeros((rows, columns), float32)
        for step in block.pipeline(4, window=window):
            step.stage("load")
            x = X[(step.index() * 8, 0), (rows, columns)]
            step.stage("square")
            squared = x * x
            step.stage("sum")
            total = total + squared
        Y((block.index() * 8, 0), (rows, columns)).store(total)


def copied(X: Any, Y: Any, *, window: int) -> None:
    """Each iteration reads the rows that the one two before wrote."""
    rows, columns = tn.axis("r", 2), tn.axis("c", X.shape[1])
    for row in tn.parallel(1):
        for step in row.pipeline(4, window=window):
            step.stage("load")
            x = Y[(step.index() * 2, 0), (rows, columns)]
            step.stage("store")
            Y((step.index() * 2 + 4, 0), (rows, columns)).store(x + 1.0)


def shifted(X: Any, Y: Any, *, window: int) -> None:
    """Rows move down by one, which shows where the arguments are one array."""
    row = tn.axis("row", 1)
    columns = tn.axis("c", X.shape[1])
    for block in tn.parallel(1):
        for step in block.pipeline(7, window=window):
            step.stage("load")
            x = X[(step.index(), 0), (row, columns)]
            step.stage("store")
            Y((step.index() + 1, 0), (row, columns)).store(x)


def written_late(X: Any, Y: Any, *, window: int) -> None:
    """A memory of each iteration, and a last write to it that nobody reads."""
    row, columns = tn.axis("row", 1), tn.axis("c", X.shape[1])
    for block in tn.parallel(1):
        for step in block.pipeline(7, window=window):
            step.stage("load")
            cells = tn.memory(float32, (row, columns))
            cells.store(X[(step.index(), 0), (row, columns)])
            step.stage("use")
            Y((step.index(), 0), (row, columns)).store(tn.exp(cells.load()))
            step.stage("write")
            cells.store(X[(step.index(), 0), (row, columns)])


def recurring(X: Any, Y: Any, *, window: int) -> None:
    """A memory of all iterations: each reads what the one before wrote."""
    row, columns = tn.axis("row", 1), tn.axis("c", X.shape[1])
    for block in tn.parallel(1):
        cells = tn.memory(float32, (row, columns))
        cells.store(X[(0, 0), (row, columns)])
        for step in block.pipeline(7, window=window):
            step.stage("load")
            before = cells.load()
            step.stage("store")
            cells.store(before + X[(step.index(), 0), (row, columns)])
        Y((0, 0), (row, columns)).store(cells.load())


def captured(
    kernel: Any, window: int = 0, *, is_one_array: bool = False
) -> tuple[Module, Pipeline]:
    first = np.zeros((32, 8), np.float32)
    arrays: list[Array] = [first, first if is_one_array else first.copy()]
    module = capture(kernel, specs_of(arrays), {"window": window}).module
    (op,) = [op for op in module.walk() if isinstance(op, Pipeline)]
    return module, op


def scheduled(
    kernel: Any, target: Target, window: int = 0, *, is_one_array: bool = False
) -> ModuloSchedule:
    _, op = captured(kernel, window, is_one_array=is_one_array)
    return schedules_of(op, target).pipeline


def schedules_of(op: Pipeline, target: Target) -> StageSchedules:
    assert op.parent_function is not None
    return fresh(PipelineSchedules, On(op.parent_function, target)).schedules[op]


def work_of(op: Pipeline) -> tuple[Work, ...]:
    assert op.parent_function is not None
    times = fresh(WorkEstimates, op.parent_function).times
    return stage_work(op, times, PLAIN.features)


def test_pipeline_schedules_are_in_order_where_every_stage_holds_the_worker() -> None:
    found = scheduled(summed, PLAIN)
    works = work_of(captured(summed)[1])
    assert found.interval == sum(work.latency for work in works) == found.span
    assert found.in_flight == 1
    # The state is read while the next one is written; loads and squares have one place each.
    assert found.versions == (2, 1, 1)
    assert any("worker" in reason for reason in found.reasons)


def test_pipeline_schedules_overlap_loads_where_they_run_on_the_side() -> None:
    beside = scheduled(summed, COPYING)
    alone = scheduled(summed, PLAIN)
    assert beside.interval < alone.interval
    assert beside.in_flight == 2
    assert beside.time(100) < alone.time(100)


@pytest.mark.parametrize("window", [0, 1, 2, 4])
def test_pipeline_schedules_keep_windows(window: int) -> None:
    found = scheduled(summed, COPYING, window)
    assert found.in_flight == (1 if window == 1 else 2)


def test_pipeline_schedules_see_that_arguments_are_one_array() -> None:
    assert scheduled(shifted, COPYING).in_flight == 2
    assert scheduled(shifted, COPYING, is_one_array=True).in_flight == 1


def test_pipeline_schedules_keep_the_order_of_a_memory_of_all_iterations() -> None:
    found = scheduled(recurring, COPYING)
    assert found.in_flight == 1
    assert found.interval == found.span


def test_pipeline_storage_lives_until_its_last_write() -> None:
    module, op = captured(written_late)
    (function,) = module.functions
    graph = fresh(PipelineDependences, function).graphs[op]
    (storage,) = graph.storage
    assert (storage.producer, storage.readers) == (0, ((0, 0), (1, 0), (2, 0)))
    # Of the next iteration it is another one; only the stores to the same view wait.
    assert not [d for d in graph.dependences if d.kind == "effect" and d.distance]


def test_pipeline_schedules_drop_versions_that_do_not_fit() -> None:
    fitting = scheduled(summed, COPYING)
    # A state, what is loaded and its square, of 8 x 8 cells of 4 bytes.
    needed = sum(fitting.versions) * 256
    assert scheduled(summed, with_capacity(needed)) == fitting
    ordered = scheduled(summed, with_capacity(needed - 1))
    assert (ordered.in_flight, ordered.versions) == (1, (2, 1, 1))
    assert f"need {needed} of {needed - 1} bytes" in ordered.reasons[0]


def test_pipeline_schedules_wait_for_effects_over_their_distance() -> None:
    _, op = captured(copied)
    function = op.parent_function
    assert function is not None
    graph = fresh(PipelineDependences, function).graphs[op]
    edges = {(d.producer, d.consumer, d.kind, d.distance) for d in graph.dependences}
    # Rows of a store are loaded two iterations later, and what is loaded is never stored to again.
    assert edges == {(0, 1, "value", 0), (1, 0, "effect", 2)}


@pytest.mark.parametrize("kernel", [summed, copied])
def test_pipeline_schedules_pass_the_verifier_on_the_pipeline(kernel: Any) -> None:
    module, op = captured(kernel)
    (function,) = module.functions
    graph = fresh(PipelineDependences, function).graphs[op]
    found = schedules_of(op, COPYING).pipeline
    op.attributes["schedule"] = schedule_record(op, graph, found)
    assert not diagnose_module(module)
    again = parse(print_module(module))
    assert print_module(again) == print_module(module)
    # One step earlier, and a stage begins before what it needs, or too soon after its rival.
    for stage in range(1, len(op.regions)):
        starts = [start - (place == stage) for place, start in enumerate(found.starts)]
        ends = [end - (place == stage) for place, end in enumerate(found.ends)]
        earlier = ModuloSchedule(
            found.interval, tuple(starts), tuple(ends), found.versions, False, ()
        )
        op.attributes["schedule"] = schedule_record(op, graph, earlier)
        # What it hands on lives longer by as much.
        assert {"TN14c"} <= {d.rule for d in diagnose_module(module)} <= {"TN14c", "TN15"}


def test_pipeline_schedules_stay_with_the_loop() -> None:
    module, op = captured(summed, window=2)
    rewriter = Rewriter()
    decisions = [d for _, step in SCHEDULE_PASSES for d in step(module, cpu_target(AVX2), rewriter)]
    (loop,) = [op for op in module.walk() if isinstance(op, Serial)]
    found = loop.schedule
    assert isinstance(found, PipelineSchedule)
    assert found.names == ("load", "square", "sum")
    assert found.interval == found.span
    # The sum is one buf, updated in place; what stages handed on is within an iteration.
    (carried,) = carried_storage(loop)
    assert carried.result.name == "total" and carried.versions == 1
    assert found.versions == (1,)
    (decision,) = [d for d in decisions if d.subject == "pipeline"]
    assert "3 stages in order" in decision.choice
    assert decision.runner_up == "2 iterations in flight"
    assert "worker" in decision.reason
    assert not diagnose_module(module)
    assert op.parent is None


@pytest.mark.parametrize("kernel", [summed, copied, recurring, written_late])
@pytest.mark.parametrize("target", [PLAIN, COPYING], ids=["plain", "copying"])
def test_pipeline_schedules_of_loops_end_each_iteration_first(kernel: Any, target: Target) -> None:
    """A loop overlaps nothing, also where the target could."""
    module, op = captured(kernel)
    (function,) = module.functions
    graph = fresh(PipelineDependences, function).graphs[op]
    schedules = schedules_of(op, target)
    overlapping, found = schedules.pipeline, schedules.loop
    assert found.in_flight == 1 and found.interval == found.span
    op.attributes["schedule"] = schedule_record(op, graph, found)
    assert not diagnose_module(module)
    if overlapping.in_flight == 1:
        assert found == overlapping
    else:
        assert found.interval > overlapping.interval and not found.is_densest
        assert f"every {overlapping.interval}" in found.reasons[0]


@pytest.mark.parametrize(
    ("kernel", "names"), [(summed, ["total"]), (recurring, ["cells"]), (written_late, [])]
)
def test_tn15_carried_storage_is_what_iterations_read_and_write(
    kernel: Any, names: list[str]
) -> None:
    """After every step from the first buf on, the schedule counts what the loop updates."""
    module, _ = captured(kernel, window=2)
    rewriter, seen = Rewriter(), 0
    for _, step in SCHEDULE_PASSES:
        list(step(module, cpu_target(AVX2), rewriter))
        assert not diagnose_module(module)
        for loop in (op for op in module.walk() if isinstance(op, Serial)):
            assert isinstance(loop.schedule, PipelineSchedule)
            if module.form == "scheduled":
                assert [alloc.result.name for alloc in carried_storage(loop)] == names
            # Before, states are values, and a buf is only a memory of the user.
            count = len(names) if module.form == "scheduled" else 0
            assert loop.schedule.versions == (1,) * count
            seen += 1
    assert seen > 5


def test_pipeline_schedules_hold_the_iterations_they_time() -> None:
    module, _ = captured(summed)
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        list(step(module, cpu_target(AVX2), rewriter))
    (loop,) = [op for op in module.walk() if isinstance(op, Serial)]
    assert loop.schedule is not None
    with pytest.raises(RemapError, match="count iterations"):
        remap(module, "step").split("step", 2).apply()
    assert not diagnose_module(module)


def test_pipeline_problems_have_one_wait_for_each_dependence() -> None:
    module, op = captured(summed)
    (function,) = module.functions
    graph = fresh(PipelineDependences, function).graphs[op]
    work = work_of(op)
    problem = pipeline_problem(op, graph, work)
    in_order = len(op.regions) - 1
    assert len(problem.waits) == in_order + len(graph.dependences)
    assert [wait.latency for wait in problem.waits[in_order:]] == [
        work[d.producer].latency for d in graph.dependences
    ]


def test_pipeline_dependences_are_kept_until_an_edit_concerns_them() -> None:
    module, op = captured(summed)
    (function,) = module.functions
    rewriter = Rewriter()
    before = rewriter.analyses.get(PipelineDependences, function)
    rewriter.set_name(op.results[0], "sum")
    assert rewriter.analyses.is_known(PipelineDependences, function)
    rewriter.analyses.check()
    store = next(inner for inner in module.walk() if isinstance(inner, Store))
    load = next(inner for inner in op.body.operations if isinstance(inner, Load))
    # Another view is read now: the one that a later store may be to.
    rewriter.set_operand(load, 0, store.view)
    rewriter.clone_before(store, op.regions[2].block.terminator, {})
    rewriter.analyses.check()
    after = rewriter.analyses.get(PipelineDependences, function)
    assert set(after.graphs[op].dependences) > set(before.graphs[op].dependences)
