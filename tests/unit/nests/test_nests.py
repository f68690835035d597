"""Nests in Machine form against NumPy, run by the interpreter: every preset, every remainder."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.nests.scheduled import access, apply, one_op_module
from tilenest.dialects import Apply, AtomCall, AtomChoice, Loop, ResultSpec, Sched, contract_of
from tilenest.interp import interpret
from tilenest.ir import COMBINE, Module, float32, int32
from tilenest.layouts import AffineMap, Const, DimRef
from tilenest.machine import LANE_REDUCTIONS, TRANSPOSE_LANES
from tilenest.passes import lower_machine, simplify_machine
from tilenest.verify import verify_module

D0, D1, D2 = DimRef(0), DimRef(1), DimRef(2)


def run(module: Module, *arrays: np.ndarray) -> None:
    machine = lower_machine(module)
    simplify_machine(machine)
    interpret(machine, [*arrays], function="main")


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 31, 32, 33, 71])
def test_pointwise_vector_with_tail(n: int) -> None:
    sched = Sched((Loop(0, 32), Loop(0, 8, "vector")))
    module = one_op_module(
        float32,
        [(n,), (n,), (n,)],
        (n,),
        [access(1, [D0]), access(1, [D0])],
        access(1, [D0]),
        ResultSpec((0,)),
        lambda b, v: [apply(b, "mul", v[1], v[2])],
        sched,
    )
    rng = np.random.default_rng(n)
    a, b = rng.standard_normal((2, n), np.float32)
    out = np.full(n, np.nan, np.float32)
    run(module, a, b, out)
    np.testing.assert_array_equal(out, a * b)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 31, 32, 33, 71])
def test_reduction_vectorized(n: int) -> None:
    loops = (Loop(0, 1), Loop(1, 32), Loop(1, 8, "vector"))
    sched = Sched(loops, atoms=(AtomChoice(LANE_REDUCTIONS["add"]),))
    module = one_op_module(
        int32,
        [(3, n), (3,)],
        (3, n),
        [access(2, [D0, D1])],
        access(2, [D0]),
        ResultSpec((0,), contract_of("unordered_tree", "add")),
        lambda b, v: [apply(b, "add", v[3], v[2])],
        sched,
        seed=5,
    )
    a = np.random.default_rng(n).integers(-9, 9, (3, n)).astype(np.int32)
    out = np.full(3, -1, np.int32)
    run(module, a, out)
    np.testing.assert_array_equal(out, a.sum(1) + 5)
    for call in lower_machine(module).walk():
        if isinstance(call, AtomCall):
            assert (call.atom, call.semantic) == (LANE_REDUCTIONS["add"], f"{COMBINE}add")
            assert call.layouts == (AffineMap(1, 0, (Const(0), D0)),)


@pytest.mark.parametrize("n", [8, 16])
@pytest.mark.parametrize("m", [4, 12])
def test_copies_of_a_fold_leave_the_cells_in_their_lanes(m: int, n: int) -> None:
    loops = (Loop(0, 8), Loop(1, 4), Loop(1, 1, "unrolled"), Loop(0, 8, "vector"))
    module = one_op_module(
        int32,
        [(m, n), (n,)],
        (n, m),
        [access(2, [D1, D0])],
        access(2, [D0]),
        ResultSpec((0,), contract_of("unordered_tree", "add")),
        lambda b, v: [apply(b, "add", v[3], v[2])],
        Sched(loops),
        seed=5,
    )
    verify_module(module)
    a = np.random.default_rng(n).integers(-9, 9, (m, n)).astype(np.int32)
    out = np.full(n, -77, np.int32)
    run(module, a, out)
    np.testing.assert_array_equal(out, a.sum(0) + 5)


@pytest.mark.parametrize("n", [1, 8, 9, 40])
@pytest.mark.parametrize("m", [0, 1, 5])
def test_kept_dim_vectorized(m: int, n: int) -> None:
    sched = Sched((Loop(0, 32), Loop(1, 1), Loop(0, 8, "vector")))
    module = one_op_module(
        float32,
        [(m, n), (n,)],
        (n, m),
        [access(2, [D1, D0])],
        access(2, [D0]),
        ResultSpec((0,), contract_of("fold_left")),
        lambda b, v: [apply(b, "add", v[3], v[2])],
        sched,
    )
    a = np.random.default_rng(n).standard_normal((m, n), np.float32)
    out = np.full(n, np.nan, np.float32)
    run(module, a, out)
    expected = np.zeros(n, np.float32)
    for row in a:
        expected = expected + row
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 1), (6, 16, 3), (7, 17, 5), (13, 40, 4), (4, 9, 0)]
)
def test_register_blocked_product(m: int, n: int, k: int) -> None:
    loops = (Loop(1, 16), Loop(0, 6), Loop(2, 1), Loop(0, 1, "unrolled"), Loop(1, 8, "vector"))
    module = one_op_module(
        float32,
        [(m, k), (k, n), (m, n)],
        (m, n, k),
        [access(3, [D0, D2]), access(3, [D2, D1])],
        access(3, [D0, D1]),
        ResultSpec((0, 1), contract_of("fold_left")),
        lambda b, v: [apply(b, "fma", v[3], v[4], v[5])],
        Sched(loops),
    )
    rng = np.random.default_rng(m * n)
    a = rng.integers(-4, 4, (m, k)).astype(np.float32)
    b = rng.integers(-4, 4, (k, n)).astype(np.float32)
    out = np.full((m, n), np.nan, np.float32)
    run(module, a, b, out)
    np.testing.assert_array_equal(out, a @ b)


def test_panel_maps_simplify_to_contiguous_accesses() -> None:
    loops = (Loop(0, 6), Loop(1, 1), Loop(0, 1, "unrolled"))
    module = one_op_module(
        float32,
        [(2, 5, 6), (12,)],
        (12, 5),
        [access(2, [D0 // 6, D1, D0 % 6])],
        access(2, [D0]),
        ResultSpec((0,), contract_of("fold_left")),
        lambda b, v: [apply(b, "add", v[3], v[2])],
        Sched(loops),
    )
    machine = lower_machine(module)
    functions = {op.function for op in machine.walk() if isinstance(op, Apply)}
    assert functions <= {"add", "mul"}
    panel = np.random.default_rng(0).integers(0, 9, (2, 5, 6)).astype(np.float32)
    out = np.full(12, np.nan, np.float32)
    run(module, panel, out)
    np.testing.assert_array_equal(out, panel.sum(1).reshape(12))


def test_gather_where_the_stride_is_not_one() -> None:
    module = one_op_module(
        float32,
        [(9, 20), (20, 9)],
        (20, 9),
        [access(2, [D1, D0])],
        access(2, [D0, D1]),
        ResultSpec((0, 1)),
        lambda _, v: [v[2]],
        Sched((Loop(0, 1), Loop(1, 8, "vector"))),
    )
    a = np.random.default_rng(0).standard_normal((9, 20), np.float32)
    out = np.full((20, 9), np.nan, np.float32)
    run(module, a, out)
    np.testing.assert_array_equal(out, a.T)


def test_bounds_mask_and_clip() -> None:
    n = 37
    module = one_op_module(
        float32,
        [(n,), (30,)],
        (48,),
        [access(1, [D0 - 3], "zero")],
        access(1, [D0 - 5], "zero"),
        ResultSpec((0,)),
        lambda _, v: [v[1]],
        Sched((Loop(0, 16), Loop(0, 8, "vector"))),
    )
    a = np.random.default_rng(0).standard_normal(n, np.float32)
    guarded = np.full(32, np.nan, np.float32)
    run(module, a, guarded[1:31])
    padded = np.concatenate([np.zeros(3, np.float32), a, np.zeros(20, np.float32)])
    np.testing.assert_array_equal(guarded[1:31], padded[5:35])
    assert np.isnan(guarded[[0, 31]]).all()


@pytest.mark.parametrize("m", [1, 3, 8, 9, 21])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 20])
def test_transposed_squares(m: int, n: int) -> None:
    """Read along rows, stored along columns: whole squares, narrow ones, masked ones."""
    loops = (Loop(0, min(8, m)), Loop(1, 8, "vector"), Loop(0, 1, "transposed"))
    module = one_op_module(
        float32,
        [(m, n), (n, m)],
        (m, n),
        [access(2, [D0, D1])],
        access(2, [D1, D0]),
        ResultSpec((0, 1)),
        lambda b, v: [apply(b, "neg", v[2])],
        Sched(loops, atoms=(AtomChoice(TRANSPOSE_LANES),)),
    )
    a = np.random.default_rng(m).standard_normal((m, n), np.float32)
    out = np.full((n, m), np.nan, np.float32)
    run(module, a, out)
    np.testing.assert_array_equal(out, -a.T)
    calls = [op for op in lower_machine(module).walk() if isinstance(op, AtomCall)]
    assert {(call.atom, call.version) for call in calls} == {(TRANSPOSE_LANES, 1)}
    assert {call.layouts for call in calls} == {(AffineMap.identity(2), *[None] * 7)}
    verify_module(module)


def test_transposed_squares_clipped_at_run_time() -> None:
    loops = (Loop(0, 8), Loop(1, 8, "vector"), Loop(0, 1, "transposed"))
    module = one_op_module(
        float32,
        [(20, 24), (22, 17)],
        (20, 24),
        [access(2, [D0, D1])],
        access(2, [D1, D0], "zero"),
        ResultSpec((0, 1)),
        lambda _, v: [v[2]],
        Sched(loops, atoms=(AtomChoice(TRANSPOSE_LANES),)),
    )
    a = np.random.default_rng(0).standard_normal((20, 24), np.float32)
    out = np.full((22, 17), np.nan, np.float32)
    run(module, a, out)
    np.testing.assert_array_equal(out, a.T[:22, :17])
