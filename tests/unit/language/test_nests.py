"""Nests and their handles, without a capture that opens regions."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.language.building import open_session, untyped, zeros
from tilenest import ir
from tilenest import language as tn
from tilenest.errors import CaptureError, DomainError, DTypeError, RankError, ScopeError, ShapeError


def opened(nest: tn.Nest) -> tn.NestHandle:
    """A handle as capture makes it: one index per axis, on the stack."""
    session = tn.current_session()
    indices = [tn.scalar(place, ir.index) for place in range(len(nest.axes))]
    handle = tn.NestHandle(session, nest, indices)
    session.nest_stack.append(handle)
    return handle


def closed(handle: tn.NestHandle) -> None:
    """End it as capture does."""
    assert tn.current_session().nest_stack.pop() is handle
    handle.active = False


def test_domains() -> None:
    with open_session():
        m = tn.axis("m", 6)
        runtime = tn.scalar(5, ir.int32)
        nest = tn.parallel(4, m, range(2, 9, 3), runtime, tn.range_(1, runtime))
        bounds = [(axis.lower, axis.step, axis.dim) for axis in nest.axes]
        assert bounds == [(0, 1, None), (0, 1, m), (2, 3, None), (0, 1, None), (1, 1, None)]
        assert [axis.upper for axis in nest.axes[:3]] == [4, 6, 9]
        assert nest.axes[3].upper is runtime
        assert nest.axes[4].upper is runtime
        assert nest.dims == (None, m, None, None, None)


def test_options() -> None:
    with open_session():
        assert tn.parallel(4).scope is None
        assert tn.parallel(4, scope=tn.exec.worker).scope is tn.exec.worker
        pipeline = tn.pipeline(4, window=2, interval=3)
        assert (pipeline.window, pipeline.interval) == (2, 3)
        nest = tn.root().reduce(4, policy=tn.reduction.fold_left)
        assert (nest.kind, nest.policy.value) == ("reduce", "fold_left")
        assert [nest.kind for nest in (tn.parallel(1), tn.serial(1))] == ["parallel", "serial"]


def test_indices() -> None:
    with open_session():
        m, n, k = tn.axis("m", 2), tn.axis("n", 3), tn.axis("k", 4)
        block = opened(tn.parallel(m, n))
        i, j = block.index()
        assert block.index(n) is j
        step = opened(block.serial(k))
        assert step.index() is step.indices[0]
        assert step.index(k) is step.index()
        assert step.index(m) is i
        with pytest.raises(ShapeError, match="neither this nest nor one around it") as caught:
            step.index(tn.axis("other", 2))
        assert "tn.parallel(axis)" in str(caught.value)


def test_inner_axes_shadow_outer_ones_only_inside() -> None:
    with open_session():
        m = tn.axis("m", 2)
        outer = opened(tn.serial(m))
        inner = opened(outer.serial(m))
        assert inner.index(m) is inner.indices[0]
        assert outer.index(m) is outer.indices[0]


@pytest.mark.parametrize(
    "use",
    [
        lambda handle: handle.index(),
        lambda handle: handle.parallel(4),
        lambda handle: handle.stage("load"),
    ],
)
def test_a_handle_after_its_region(use: Any) -> None:
    with open_session():
        handle = opened(tn.pipeline(4))
        closed(handle)
        with pytest.raises(ScopeError, match="pipeline nest that has ended") as caught:
            use(handle)
        assert "inside its loop only" in str(caught.value)


def test_nests_open_in_the_innermost_one() -> None:
    with open_session():
        outer = opened(tn.parallel(4))
        inner = opened(outer.serial(4))
        for wrong in (outer.serial, tn.serial, tn.parallel, tn.root().reduce):
            with pytest.raises(ScopeError, match="while a serial nest inside it is open") as caught:
                wrong(2)
            assert "innermost loop" in str(caught.value)
        closed(inner)
        assert outer.serial(4).parent is outer


def test_iterating_without_capture() -> None:
    with open_session():
        nest = tn.serial(4)
        with pytest.raises(CaptureError, match="not captured"):
            list(nest)
        with pytest.raises(CaptureError, match="unpacked") as caught:
            list(opened(nest))
        assert "block.index()" in str(caught.value)


def test_stages_go_to_the_capture() -> None:
    with open_session() as (session, _):
        calls: list[tuple[tn.Handle, str | None]] = []
        session.on_stage = lambda handle, name: calls.append((handle, name))
        step = opened(tn.pipeline(4))
        step.stage("load")
        step.stage()
        assert calls == [(step, "load"), (step, None)]
        with pytest.raises(CaptureError, match="serial nest"):
            opened(step.serial(4)).stage()


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (untyped.parallel, RankError),
        (lambda: untyped.parallel(2.5), DTypeError),
        (lambda: untyped.parallel(True), DTypeError),
        (lambda: untyped.serial(untyped.scalar(1.0, ir.float32)), DTypeError),
        (lambda: untyped.serial(range(9, 0, -1)), ShapeError),
        (lambda: untyped.parallel(4, scope="worker"), CaptureError),
        (lambda: untyped.pipeline(4, window=-1), CaptureError),
        (lambda: untyped.pipeline(4, interval=0), CaptureError),
        (lambda: untyped.root().reduce(4, policy="fold_left"), CaptureError),
        (lambda: untyped.root().index(), RankError),
    ],
)
def test_mistakes(use: Any, error: type[Exception]) -> None:
    with open_session(), pytest.raises(error) as caught:
        use()
    assert "help: " in str(caught.value)


def test_host_range_stays_python() -> None:
    with open_session():
        assert tn.range_(3) == range(3)
        assert tn.range_(5, 0, -2) == range(5, 0, -2)
        extent = tn.scalar(3, ir.index)
        axis = tn.range_(1, extent, 2)
        assert isinstance(axis, tn.DomainAxis)
        assert (axis.lower, axis.step, axis.dim) == (1, 2, None)
        assert axis.upper is extent
        with pytest.raises(TypeError):
            tn.range_(1.5)


def test_min_max_abs() -> None:
    with open_session():
        assert tn.min_(3, 1) == 1
        assert tn.max_([3, 1]) == 3
        assert tn.max_([1, 2], key=lambda x: -x) == 1
        assert tn.abs_(-3) == 3
        extent = tn.scalar(3, ir.index)
        assert isinstance(tn.min_(extent, 5), tn.Scalar)
        assert isinstance(tn.max_([extent, 5, 7]), tn.Scalar)
        assert isinstance(tn.abs_(extent), tn.Scalar)
        with pytest.raises(CaptureError, match="two or more"):
            tn.max_(zeros(4))


def test_cdiv() -> None:
    with open_session():
        assert [tn.cdiv(n, 4) for n in (0, 1, 4, 5)] == [0, 1, 1, 2]
        counted = tn.cdiv(tn.scalar(5, ir.int32), 4)
        assert isinstance(counted, tn.Scalar)
        assert counted.dtype is ir.index
        with pytest.raises(DomainError, match="by 0"):
            tn.cdiv(4, 0)
        with pytest.raises(DTypeError, match="coordinate"):
            untyped.cdiv(4.0, 2)
