"""Checks of bounds through the passes: one comparison a window, raised after every step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.unit.passes.stepwise import Array, run, run_stepwise, specs_of
from tilenest.capture import ScalarSpec, capture
from tilenest.dialects import Check, If, Load, MapReducePost, Serial
from tilenest.errors import OutOfBounds
from tilenest.ir import Module, Rewriter, int64
from tilenest.machine import AVX2, cpu_target
from tilenest.passes import SCHEDULE_PASSES, lower_machine, simplify_machine
from tilenest.verify import verify_module

F32 = np.float32


def arrays() -> list[Array]:
    x = np.arange(60, dtype=F32).reshape(6, 10)
    return [x, np.full((6, 10), np.nan, F32)]


def window(X: Any, Y: Any, *, at: int) -> None:
    assert X.shape == Y.shape == (6, 10)
    m, n = tn.axis("m", 4), tn.axis("n", 10)
    for part in tn.parallel(2):
        first: Any = part.index()
        i = first * 2 + at
        x: Any = X((i, 0), (m, n), bounds="check").load()
        Y((i, 0), (m, n), bounds="check").store(x + 1.0)


def masked(X: Any, Y: Any, *, at: int) -> None:
    m, n = tn.axis("m", 4), tn.axis("n", 10)
    for part in tn.parallel(2):
        first: Any = part.index()
        i = first * 2 + at
        rows: Any = tn.iota(m, tn.int32)
        x = X((i, 0), (m, n), mask=rows < 3, bounds="check").load()
        Y((0, 0), (m, n)).store(x)


def fold(X: Any, Y: Any, *, at: int) -> None:
    n = tn.axis("n", 10)
    for part in tn.parallel(1):
        total: Any = tn.zeros((1, n), tn.float32)
        for step in part.reduce(4):
            place: Any = step.index()
            total = total + X((place + at, 0), (1, n), bounds="check").load()
        Y((0, 0), (1, n)).store(total)


def scheduled(kernel: Any, at: int) -> Module:
    module = capture(kernel, specs_of(arrays()), {"at": at}).module
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        step(module, cpu_target(AVX2), rewriter)
    return module


@pytest.mark.parametrize(("kernel", "good", "bad"), [(window, 0, 1), (masked, 1, 2), (fold, 2, 3)])
@pytest.mark.parametrize("is_low", [True, False])
def test_every_step_keeps_the_checks(kernel: Any, good: int, bad: int, is_low: bool) -> None:
    run_stepwise(kernel, arrays(), {"at": good})
    meant = f"X.* axis 0 has extent 6, the index is {-1 if is_low else 6} "
    module = capture(kernel, specs_of(arrays()), {"at": -1 if is_low else bad}).module
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        step(module, cpu_target(AVX2), rewriter)
        verify_module(module)
        rewriter.analyses.check()
        with pytest.raises(OutOfBounds, match=meant):
            run(module, arrays())
    machine = lower_machine(module)
    simplify_machine(machine)
    verify_module(machine)
    with pytest.raises(OutOfBounds, match=meant):
        run(machine, arrays())


def test_a_window_is_one_comparison_an_axis_that_may_be_left() -> None:
    found = run_stepwise(window, arrays(), {"at": 0})
    assert not found.all(Check), "what is proven inside is not checked"
    module = scheduled(window, 1)
    checks = [op for op in module.walk() if isinstance(op, Check)]
    assert [(op.access, op.axis, op.count, op.site) for op in checks] == [
        ("load of X", 0, 4, 0),
        ("store of Y", 0, 4, 1),
    ]
    assert not any(isinstance(op, If | Load) for op in module.walk())


@pytest.mark.parametrize(
    ("make", "meant"),
    [
        (lambda X: X.T, [("a view of X", 0, 0), ("a view of X", 1, 0)]),
        (lambda X: X.reshape(-1, 5), [("a view of X", 0, 0), ("a view of X", 1, 0)]),
        (
            lambda X: X.slice((1, 0), (X.extent(0) - 1, X.extent(1))),
            [("a view of X", 0, 0), ("a view of X", 1, 0)],
        ),
        (
            lambda X: X.slice((0, 0), (3, 10), (3, 1)),
            [("a view of X", 0, 0), ("a view of X", 1, 0), ("X", 0, 1), ("X", 0, 1), ("X", 1, 1)],
        ),
        (
            lambda X: X.slice((-1, 0), (4, X.extent(1))).T,
            [("a view of a view of X", 0, 0), ("a view of a view of X", 1, 0), ("X", 0, 2)],
        ),
    ],
)
def test_what_a_view_shows_is_checked_below_only_where_it_may_leave(make: Any, meant: Any) -> None:
    def kernel(X: Any, Y: Any, at: Any) -> None:
        m, n = tn.axis("m", 2), tn.axis("n", 3)
        for _ in tn.parallel(1):
            Y((0, 0), (m, n)).store(make(X)((at, at), (m, n), bounds="check").load())

    checked: Any = kernel
    module = capture(checked, [*specs_of(arrays()), ScalarSpec(int64)]).module
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        step(module, cpu_target(AVX2), rewriter)
    checks = [op for op in module.walk() if isinstance(op, Check)]
    found = [(op.access.removeprefix("load of "), op.axis, op.depth) for op in checks]
    assert found == meant
    assert not any(isinstance(op, If) for op in module.walk())


def test_a_checked_fold_stays_a_fold() -> None:
    module = scheduled(fold, 3)
    loops = [op for op in module.walk() if isinstance(op, Serial)]
    assert len(loops) == 1 and all(not isinstance(op, MapReducePost) for op in loops[0].walk()), (
        "the loop only checks"
    )
    work = [op for op in module.walk() if isinstance(op, MapReducePost)]
    assert any(op.folded_results for op in work)
