"""map_reduce_post on values and on destinations, and the compiler's buffers.

The cases with a comment are acceptance cases of the tensor dialect: values known beforehand.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.unit.interp.map_reduce import F32, Body, D, Work, fold
from tests.unit.interp.programs import Program, blank, view
from tilenest.dialects import Alloc, MapReducePost, Read, ResultSpec
from tilenest.errors import InternalError, OutOfBounds
from tilenest.interp import tensor
from tilenest.ir import INDEX, BufType, DType, ScalarType, TileType, Value, bool_, float32, int32
from tilenest.layouts import Dim, DimRef, Sym


def row_sum(program: Program) -> tuple[Work, Body]:
    zero = program.constant(0, F32)
    work = Work(program, 3, 4).seeds((zero, ()))
    return work, lambda x, state: program.apply("add", state, x)


def test_row_sums_of_1_to_12() -> None:
    # The row sums are 10, 26 and 42.
    program = Program(view(float32, 2), view(float32, 1))
    a, out = program.arguments
    work, body = row_sum(program)
    work.inputs((a, D[:2])).outputs((out, D[:1])).emit([fold((0,))], body)
    program.finish()
    result = np.full(3, np.nan, np.float32)
    program.run(np.arange(1, 13, dtype=np.float32).reshape(3, 4), result)
    assert result.tolist() == [10, 26, 42]


def test_row_sums_of_a_transposed_input_with_an_epilogue() -> None:
    # Each is the sum, plus its bias, plus 1: 12, 29 and 46.
    program = Program(view(float32, 2), view(float32, 1), view(float32, 1))
    a, bias, out = program.arguments
    work, body = row_sum(program)
    work.inputs((a, (D[1], D[0]))).posts((bias, D[:1])).outputs((out, D[:1]))
    one = program.constant(1, F32)
    work.emit(
        [fold((0,), posts=1)],
        body,
        [lambda state, b: program.apply("add", program.apply("add", state, b), one)],
    )
    program.finish()
    result = np.full(3, np.nan, np.float32)
    transposed = np.ascontiguousarray(np.arange(1, 13, dtype=np.float32).reshape(3, 4).T)
    program.run(transposed, np.array([1, 2, 3], np.float32), result)
    assert result.tolist() == [12, 29, 46]


def matmul(m: int, n: int, k: int) -> Program:
    """(a, b, c, out): out = c + a @ b by fused multiply-add."""
    program = Program(*[view(float32, 2)] * 4)
    a, b, c, out = program.arguments
    work = Work(program, m, n, k).inputs((a, (D[0], D[2])), (b, (D[2], D[1])))
    work.seeds((c, D[:2])).outputs((out, D[:2]))
    work.emit([fold((0, 1))], lambda x, y, state: program.apply("fma", x, y, state))
    program.finish()
    return program


def test_small_matmul() -> None:
    # Row 1, column 2 is 47.
    a = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    b = np.add.outer(np.arange(3), np.arange(4)).astype(np.float32)
    out = np.full((2, 4), np.nan, np.float32)
    matmul(2, 4, 3).run(a, b, np.zeros((2, 4), np.float32), out)
    assert out[1, 2] == 47
    assert (out == a @ b).all()


def test_matmul_of_ones_and_twos_and_in_place() -> None:
    # All cells are 8.
    a, b = np.ones((2, 4), np.float32), np.full((4, 2), 2, np.float32)
    out = np.zeros((2, 2), np.float32)
    matmul(2, 2, 4).run(a, b, out, out)
    assert (out == 8).all()
    matmul(2, 2, 4).run(a, b, out, out)
    assert (out == 16).all()


def test_packed_gemm() -> None:
    # C at row 1, column 2 is 80; packed it stands at 0, 1, 1, 0.
    program = Program(view(float32, 2), view(float32, 2), view(float32, 4))
    a, b, out = program.arguments
    zero = program.constant(0, F32)
    # Dims: row block, row, column block, column, k.
    row, column = D[0] * 2 + D[1], D[2] * 2 + D[3]
    work = Work(program, 2, 2, 2, 2, 8).inputs((a, (row, D[4])), (b, (D[4], column)))
    work.seeds((zero, ())).outputs((out, (D[0], D[2], D[1], D[3])))
    work.emit([fold((0, 1, 2, 3))], lambda x, y, state: program.apply("fma", x, y, state))
    program.finish()
    rows = np.repeat(np.arange(1, 5, dtype=np.float32)[:, None], 8, 1)
    columns = np.repeat(np.arange(1, 8, 2, dtype=np.float32)[None], 8, 0)
    packed = np.full((2, 2, 2, 2), np.nan, np.float32)
    program.run(rows, columns, packed)
    assert packed[0, 1, 1, 0] == 80
    assert (packed == (rows @ columns).reshape(2, 2, 2, 2).transpose(0, 2, 1, 3)).all()


@pytest.mark.parametrize(
    ("shape", "dims", "expected"),
    [((2, 8, 3), (0,), 24), ((2, 37, 3), (0,), 111), ((2, 3, 4, 5), (0, 1, 2), 5)],
)
def test_ones_summed(shape: tuple[int, ...], dims: tuple[int, ...], expected: float) -> None:
    # 24, 111 and 5 per cell
    program = Program(view(float32, len(shape)), view(float32, len(dims)))
    a, out = program.arguments
    work = Work(program, *shape).inputs((a, D[: len(shape)]))
    work.seeds((program.constant(0, F32), ())).outputs((out, [D[dim] for dim in dims]))
    work.emit([fold(dims)], lambda x, state: program.apply("add", state, x))
    program.finish()
    result = np.full([shape[dim] for dim in dims], np.nan, np.float32)
    program.run(np.ones(shape, np.float32), result)
    assert (result == expected).all()


def test_convolution_of_ones() -> None:
    # (2,3,4,4) * (2,3,3,3) gives 27 per cell
    program = Program(*[view(float32, 4)] * 3)
    x, w, out = program.arguments
    n, o, i, j, c = D[:5]
    p, q = D[5], DimRef(6)
    work = Work(program, 2, 2, 2, 2, 3, 3, 3).inputs((x, (n, c, i + p, j + q)), (w, (o, c, p, q)))
    work.seeds((program.constant(0, F32), ())).outputs((out, (n, o, i, j)))
    work.emit([fold((0, 1, 2, 3))], lambda a, b, state: program.apply("fma", a, b, state))
    program.finish()
    result = np.full((2, 2, 2, 2), np.nan, np.float32)
    program.run(np.ones((2, 3, 4, 4), np.float32), np.ones((2, 3, 3, 3), np.float32), result)
    assert (result == 27).all()


def test_pad_and_transpose_are_pointwise() -> None:
    # (10, 20, 30) with lo 1, hi 2, fill 5
    program = Program(view(float32, 1), view(float32, 1))
    a, out = program.arguments
    work = Work(program, 6).inputs((a, (D[0] - 1,)), bounds="zero", fill=5).outputs((out, D[:1]))
    work.emit([ResultSpec((0,))], lambda x: x)
    program.finish()
    result = np.full(6, np.nan, np.float32)
    program.run(np.array([10, 20, 30], np.float32), result)
    assert result.tolist() == [5, 10, 20, 30, 5, 5]


def test_run_time_extent_by_clipping() -> None:
    # n = 5: each cell sums the whole (n, 4) of rows (1, 2, 3, 4): 50
    program = Program(INDEX, view(float32, 1), view(float32, 1))
    n, row, out = program.arguments
    work = Work(program, 2, 8, 4).inputs((row, (D[2],))).clip(1, n)
    work.seeds((program.constant(0, F32), ())).outputs((out, D[:1]))
    work.emit([fold((0,))], lambda x, state: program.apply("add", state, x))
    program.finish()
    values = np.array([1, 2, 3, 4], np.float32)
    for bound, expected in ((5, 50), (0, 0), (-3, 0), (8, 80), (99, 80)):
        result = np.full(2, np.nan, np.float32)
        program.run(bound, values, result)
        assert result.tolist() == [expected] * 2


def test_sums_over_each_axis_and_in_total() -> None:
    # x[a, b, c] = 12a + 4b + c: total 276
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    for kept in itertools.chain.from_iterable(
        itertools.combinations(range(3), r) for r in range(4)
    ):
        program = Program(view(float32, 3), view(float32, len(kept)))
        a, out = program.arguments
        work = Work(program, 2, 3, 4).inputs((a, D[:3]))
        work.seeds((program.constant(0, F32), ())).outputs((out, [D[dim] for dim in kept]))
        work.emit([fold(kept)], lambda x, s, add=program.apply: add("add", s, x))
        program.finish()
        result = np.full([values.shape[dim] for dim in kept], np.nan, np.float32)
        program.run(values, result)
        folded = tuple(dim for dim in range(3) if dim not in kept)
        assert (result == values.sum(folded)).all()
    assert values.sum() == 276


@pytest.mark.parametrize("policy", ["unordered_tree", "ordered_tree", "fold_left", "fold_right"])
@pytest.mark.parametrize("seed", [0.0, -0.0, 3.0])
def test_policies_and_seeds(policy: str, seed: float) -> None:
    program = Program(view(float32, 1), F32)
    a, start = program.arguments
    total = Work(program, 3).inputs((a, D[:1])).seeds((start, ()))
    add = total.emit(
        [fold((), policy, merge="add")],
        lambda x, state: program.apply("add", state, x),
        results=[F32],
    )
    program.finish(add.result)
    (result,) = program.run(np.array([-0.0] * 3, np.float32), seed)
    assert (result, np.signbit(result)) == (seed, np.signbit(seed))


def test_sub_tells_the_folds_apart() -> None:
    program = Program(view(float32, 1))
    (a,) = program.arguments
    zero = program.constant(0, F32)
    results = []
    for policy in ("fold_left", "fold_right"):
        work = Work(program, 3).inputs((a, D[:1])).seeds((zero, ()))
        left = policy == "fold_left"
        op = work.emit(
            [fold((), policy)],
            lambda x, s, left=left: program.apply("sub", *((s, x) if left else (x, s))),
            results=[F32],
        )
        results.append(op.result)
    program.finish(*results)
    assert program.run(np.array([1, 2, 3], np.float32)) == [-6, 2]


def test_both_directions_in_one_traversal_are_refused() -> None:
    program = Program(view(float32, 1))
    zero = program.constant(0, F32)
    work = Work(program, 3).inputs((program.arguments[0], D[:1])).seeds((zero, ()), (zero, ()))
    op = work.emit(
        [fold((), "fold_left"), fold((), "fold_right")],
        lambda x, s, t: (program.apply("sub", s, x), program.apply("sub", x, t)),
        results=[F32, F32],
    )
    program.finish(*op.results)
    with pytest.raises(InternalError, match="both directions"):
        program.run(np.ones(3, np.float32))


def softmax_parts(limit: int | None, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """exp(x - row maximum) stored, and its row sums, in one traversal; on values."""
    if limit is not None:
        monkeypatch.setattr(tensor, "WHOLE_DOMAIN_LIMIT", limit)
    m, n = Dim("m", 3), Dim("n", 5)
    program = Program(view(float32, 2))
    (a,) = program.arguments
    low = program.constant(float("-inf"), F32)
    rows = TileType(float32, (m,))
    peak = (
        Work(program, 3, 5)
        .inputs((a, D[:2]))
        .seeds((low, ()))
        .emit([fold((0,))], lambda x, s: program.apply("maximum", s, x), results=[rows])
    )

    def body(x: Value, top: Value, state: Value) -> tuple[Value, ...]:
        part = program.apply("exp", program.apply("sub", x, top))
        return part, program.apply("add", state, part)

    both = (
        Work(program, 3, 5)
        .inputs((a, D[:2]), (peak.result, D[:1]))
        .seeds((program.constant(0, F32), ()))
        .emit(
            [ResultSpec((1, 0)), fold((0,))],
            body,
            results=[TileType(float32, (n, m)), rows],
        )
    )
    program.finish(*both.results)
    values = np.random.default_rng(2).standard_normal((3, 5)).astype(np.float32)
    return [values, *program.run(values)]


@pytest.mark.parametrize("limit", [None, 0])
def test_a_stored_row_and_its_sum_are_one_traversal(
    limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, parts, sums = softmax_parts(limit, monkeypatch)
    wide = values.astype(np.float64)
    exact = np.exp(wide - wide.max(1, keepdims=True))
    np.testing.assert_allclose(parts, exact.T, rtol=1e-6)
    np.testing.assert_allclose(sums, exact.sum(1), rtol=1e-6)


def test_states_may_read_each_other() -> None:
    program = Program(view(float32, 1))
    (a,) = program.arguments
    low, zero = program.constant(float("-inf"), F32), program.constant(-1, F32)
    work = Work(program, 6).inputs((a, D[:1])).seeds((low, ()), (zero, ()))
    regions = [blank(INDEX, F32, F32, F32), blank(INDEX, F32), blank(INDEX, F32)]
    specs = (fold(()), fold(()))
    op = program.add(
        MapReducePost(specs=specs, regions=regions, result_types=[F32, F32], **work.fields)
    )
    with program.inside(op) as (i, x, best, place):
        wins = program.apply("gt", x, best)
        here = program.cast(i, float32)
        program.yields(
            program.apply("where", wins, x, best), program.apply("where", wins, here, place)
        )
    for region in (1, 2):
        with program.inside(op, region) as (_, state):
            program.yields(state)
    program.finish(*op.results)
    assert program.run(np.array([3, 1, 7, 7, -2, 0], np.float32)) == [7, 2]


def test_results_that_fold_different_dims() -> None:
    program = Program(view(int32, 2), view(int32, 1), view(int32, 1), view(int32, 0))
    a, rows, columns, total = program.arguments
    zero = program.constant(0, ScalarType(int32))
    work = Work(program, 3, 4).inputs((a, D[:2]), dtype=int32).seeds(*[(zero, ())] * 3)
    work.outputs((rows, D[:1]), (columns, (D[1],)), (total, ()))

    def body(x: Value, *states: Value) -> tuple[Value, ...]:
        return tuple(program.apply("add", state, x) for state in states)

    work.emit([fold((0,)), fold((1,)), fold(())], body, dtype=int32)
    program.finish()
    values = np.arange(12, dtype=np.int32).reshape(3, 4) ** 2
    outs = [np.full(shape, -1, np.int32) for shape in ((3,), (4,), ())]
    program.run(values, *outs)
    assert outs[0].tolist() == values.sum(1).tolist()
    assert outs[1].tolist() == values.sum(0).tolist()
    assert outs[2] == values.sum()


def test_running_sum_by_a_pointwise_result() -> None:
    program = Program(view(float32, 1), view(float32, 1), view(float32, 0))
    a, out, total = program.arguments
    work = Work(program, 4).inputs((a, D[:1])).seeds((program.constant(0, F32), ()))
    work.outputs((out, D[:1]), (total, ()))

    def body(x: Value, state: Value) -> tuple[Value, ...]:
        return (program.apply("add", state, x),) * 2

    work.emit([ResultSpec((0,)), fold(())], body)
    program.finish()
    out_, total_ = np.full(4, np.nan, np.float32), np.full((), np.nan, np.float32)
    program.run(np.array([1, 2, 3, 4], np.float32), out_, total_)
    assert out_.tolist() == [1, 3, 6, 10]
    assert total_ == 10


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0)])
def test_empty_extents_give_the_epilogue_of_the_seed(shape: tuple[int, int]) -> None:
    program = Program(view(float32, 2), view(float32, 1))
    a, out = program.arguments
    work = Work(program, *shape).inputs((a, D[:2])).seeds((program.constant(2, F32), ()))
    work.outputs((out, D[:1]))
    work.emit(
        [fold((0,))],
        lambda x, state: program.apply("add", state, x),
        [lambda state: program.apply("mul", state, state)],
    )
    program.finish()
    result = np.full(shape[0], np.nan, np.float32)
    program.run(np.zeros(shape, np.float32), result)
    assert result.tolist() == [4] * shape[0]


def test_masked_results_and_dropped_writes() -> None:
    program = Program(view(float32, 1), view(float32, 1), INDEX)
    a, out, origin = program.arguments
    work = Work(program, 5, symbols=1).inputs((a, D[:1])).at(origin)
    work.outputs((out, (D[0] + Sym(0),)), bounds="zero")
    zero = program.constant(0, F32)
    work.emit([ResultSpec((0,), is_masked=True)], lambda x: (x, program.apply("gt", x, zero)))
    program.finish()
    values = np.array([1, -2, 3, -4, 5], np.float32)
    for start in (0, 2, -1, 2**62, -(2**63)):
        result = np.full(5, np.nan, np.float32)
        program.run(values, result, start)
        expected = np.full(5, np.nan, np.float32)
        for i, value in enumerate(values):
            if value > 0 and 0 <= i + start < 5:
                expected[i + start] = value
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("bounds", "error"),
    [("proven", InternalError), ("assume", OutOfBounds)],
)
def test_accesses_outside_are_errors(bounds: str, error: type[Exception]) -> None:
    for which in ("input", "output"):
        program = Program(view(float32, 1), view(float32, 1))
        a, out = program.arguments
        fields: dict[str, dict[str, Any]] = {which: {"bounds": bounds}}
        work = Work(program, 4).inputs((a, D[:1]), **fields.get("input", {}))
        work.outputs((out, D[:1]), **fields.get("output", {}))
        work.emit([ResultSpec((0,))], lambda x: x)
        program.finish()
        short, whole = np.zeros(3, np.float32), np.zeros(4, np.float32)
        arrays = (short, whole) if which == "input" else (whole, short)
        with pytest.raises(error, match=r"argument [01] at index \(3,\)"):
            program.run(*arrays)


@pytest.mark.parametrize("bounds", ["proven", "assume"])
def test_work_without_points_touches_nothing(bounds: str) -> None:
    """Not even where the coordinate is a number."""
    program = Program(view(float32, 1), view(float32, 1))
    a, out = program.arguments
    work = Work(program, 0).inputs((a, (0,)), bounds=bounds).outputs((out, (0,)), bounds=bounds)
    work.emit([ResultSpec((0,))], lambda x: x)
    program.finish()
    program.run(np.zeros(0, np.float32), np.zeros(0, np.float32))


@pytest.mark.parametrize("bounds", ["proven", "assume"])
def test_inputs_are_read_where_the_output_keeps_a_point(bounds: str) -> None:
    """The output of 6 keeps points -2..3 of 0..7 where it begins at 2: input 4 is not asked for."""
    program = Program(view(float32, 1), view(float32, 1), INDEX)
    a, out, origin = program.arguments
    work = Work(program, 8, symbols=1).inputs((a, D[:1]), bounds=bounds).at(origin)
    work.outputs((out, (D[0] + Sym(0),)), bounds="zero").emit([ResultSpec((0,))], lambda x: x)
    program.finish()
    for length, start in ((4, 2), (8, -2), (0, 6), (0, -8), (6, 0)):
        values, result = np.arange(length, dtype=np.float32), np.full(6, np.nan, np.float32)
        program.run(values, result, start)
        expected = [place - start if 0 <= place - start < 8 else np.nan for place in range(6)]
        np.testing.assert_array_equal(result, expected)
    with pytest.raises((InternalError, OutOfBounds), match=r"at index \(3,\)"):
        program.run(np.zeros(3, np.float32), np.zeros(6, np.float32), 2)


def test_values_read_tiles_scalars_and_bufs() -> None:
    m = Dim("m", 3)
    program = Program(view(float32, 1), F32)
    a, scale = program.arguments
    buffer = program.value(Alloc(result_types=[BufType(float32, (3,))]))
    copy = Work(program, 3).inputs((a, D[:1])).outputs((buffer, D[:1]))
    copy.emit([ResultSpec((0,))], lambda x: x)
    work = Work(program, 3).inputs((buffer, D[:1]), (scale, ()))
    op = work.emit(
        [ResultSpec((0,))],
        lambda x, y: program.apply("mul", x, y),
        results=[TileType(float32, (m,))],
    )
    program.finish(op.result)
    assert program.run(np.array([1, 2, 3], np.float32), 10)[0].tolist() == [10, 20, 30]


@pytest.mark.parametrize("dtype", [float32, int32, bool_])
def test_a_fresh_buffer_is_poison(dtype: DType) -> None:
    program = Program()
    buffer = program.value(Alloc(result_types=[BufType(dtype, ())]))
    program.finish(program.value(Read(buffer=buffer, result_types=[ScalarType(dtype)])))
    (found,) = program.run()
    assert np.isnan(found) if dtype is float32 else found == (-1 if dtype is int32 else 1)


def test_a_scalar_read_from_a_buffer_drives_control() -> None:
    program = Program(view(float32, 1))
    (a,) = program.arguments
    buffer = program.value(Alloc(result_types=[BufType(float32, ())]))
    work = Work(program, 3).inputs((a, D[:1])).seeds((program.constant(0, F32), ()))
    work.outputs((buffer, ())).emit([fold(())], lambda x, s: program.apply("add", s, x))
    program.finish(program.value(Read(buffer=buffer, result_types=[F32])))
    assert program.run(np.array([1, 2, 4], np.float32)) == [7]


def test_kept_dims_beyond_a_clip_are_not_visited() -> None:
    m = Dim("m", 4)
    program = Program(view(float32, 1), INDEX)
    a, bound = program.arguments
    work = Work(program, 4).inputs((a, D[:1])).clip(0, bound)
    op = work.emit([ResultSpec((0,))], lambda x: x, results=[TileType(float32, (m,))])
    program.finish(op.result)
    (result,) = program.run(np.array([1, 2], np.float32), 2)
    assert result[:2].tolist() == [1, 2]
    assert np.isnan(result[2:]).all()
