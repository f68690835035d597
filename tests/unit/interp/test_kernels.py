"""Whole kernels by hand, a tiled gemm and softmax rows, against float64; argument binding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.programs import Program, blank, tile, view
from tilenest.dialects import (
    OPERATIONS,
    Load,
    Map,
    Mma,
    Parallel,
    Reduce,
    Reindex,
    Serial,
    Store,
)
from tilenest.errors import ArgumentTypeError, InternalError, RankError, ShapeError
from tilenest.interp import interpret
from tilenest.interp.entry import HANDLERS
from tilenest.interp.values import Array
from tilenest.ir import (
    INDEX,
    Module,
    Operation,
    ScalarType,
    Value,
    ViewType,
    bfloat16,
    float32,
    int32,
)
from tilenest.layouts import AffineMap, Dim, DimRef, Sym

F32 = ScalarType(float32)


def test_every_operation_has_a_meaning() -> None:
    assert set(HANDLERS) == set(OPERATIONS)


def full(program: Program, value: float, *dims: Dim) -> Value:
    op = Map(result_types=[tile(float32, *dims)], regions=[blank(*[INDEX] * len(dims))])
    program.add(op)
    with program.inside(op):
        program.yields(program.constant(value, F32))
    return op.result


def elementwise(program: Program, name: str, dims: tuple[Dim, ...], *inputs: Value) -> Value:
    op = Map(
        inputs=inputs,
        result_types=[tile(float32, *dims)],
        regions=[blank(*[INDEX] * len(dims), *[F32] * len(inputs))],
    )
    program.add(op)
    with program.inside(op) as arguments:
        program.yields(program.apply(name, *arguments[len(dims) :]))
    return op.result


def gemm(shape: tuple[int, int, int], blocks: tuple[int, int, int]) -> Program:
    """C = A @ B by tiles over a parallel grid, serial over k."""
    m, n, k = (Dim(name, extent) for name, extent in zip("mnk", blocks, strict=True))
    program = Program(*[view(float32, 2)] * 3)
    a, b, c = program.arguments
    counts = [-(-extent // block) for extent, block in zip(shape, blocks, strict=True)]
    grid = program.nest(Parallel, counts[:2])
    with program.inside(grid) as (i, j):
        row = program.apply("mul", i, program.constant(blocks[0]))
        column = program.apply("mul", j, program.constant(blocks[1]))
        start = full(program, 0.0, m, n)
        steps = program.nest(Serial, counts[2:], [start])
        with program.inside(steps) as (step, total):
            depth = program.apply("mul", step, program.constant(blocks[2]))
            left = Load(view=a, origins=[row, depth], result_types=[tile(float32, m, k)])
            right = Load(view=b, origins=[depth, column], result_types=[tile(float32, k, n)])
            operands = program.value(left), program.value(right)
            mma = Mma(a=operands[0], b=operands[1], c=total, result_types=[total.type])
            program.yields(program.value(mma))
        program.add(Store(view=c, origins=[row, column], value=steps.result, dims=(m, n)))
        program.yields()
    program.finish()
    return program


@pytest.mark.parametrize("shape", [(5, 7, 3), (8, 8, 8), (1, 9, 4), (4, 4, 0), (0, 3, 2)])
def test_gemm_on_ragged_shapes(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    generator = np.random.default_rng(5)
    a = generator.standard_normal((m, k)).astype(np.float32)
    b = generator.standard_normal((k, n)).astype(np.float32)
    results = []
    for blocks, shuffle in (((4, 4, 2), None), ((4, 4, 2), 1), ((3, 5, 8), 2)):
        guarded = np.full((m + 2, n + 2), np.nan, np.float32)
        gemm(shape, blocks).run(a, b, guarded[1 : m + 1, 1 : n + 1], shuffle=shuffle)
        assert np.isnan(guarded).sum() == guarded.size - m * n
        results.append(guarded[1 : m + 1, 1 : n + 1])
    exact = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(results[0], exact, atol=1e-5)
    for other in results[1:]:
        assert (results[0] == other).all(), "k goes upwards whatever the blocks"


def reduce_row(program: Program, name: str, row: Value, n: Dim, seed: float) -> Value:
    nest = program.nest(Reduce, [n.extent], [program.constant(seed, F32)])
    with program.inside(nest) as (j, state):
        element = Reindex(
            value=row, symbols=[j], map=AffineMap(0, 1, (Sym(0),)), result_types=[F32]
        )
        program.yields(program.apply(name, state, program.value(element)))
    return nest.result


def softmax(columns: int) -> Program:
    n = Dim("n", columns)
    program = Program(view(float32, 2), view(float32, 2), INDEX)
    x, out, rows = program.arguments
    nest = program.nest(Parallel, [rows])
    with program.inside(nest) as (i,):
        one, zero = Dim("one", 1), program.constant(0)
        load = Load(view=x, origins=[i, zero], result_types=[tile(float32, one, n)])
        flat = Reindex(
            value=program.value(load),
            map=AffineMap(1, 0, (DimRef(0) * 0, DimRef(0))),
            result_types=[tile(float32, n)],
        )
        row = program.value(flat)
        peak = reduce_row(program, "maximum", row, n, float("-inf"))
        parts = elementwise(program, "exp", (n,), elementwise(program, "sub", (n,), row, peak))
        total = reduce_row(program, "add", parts, n, 0.0)
        result = elementwise(program, "div", (n,), parts, total)
        program.add(Store(view=out, origins=[i, zero], value=result, dims=(one, n)))
        program.yields()
    program.finish()
    return program


@pytest.mark.parametrize("shape", [(3, 5), (1, 1), (4, 17)])
def test_softmax_rows(shape: tuple[int, int]) -> None:
    x = (np.random.default_rng(6).standard_normal(shape) * 10).astype(np.float32)
    out = np.full(shape, np.nan, np.float32)
    softmax(shape[1]).run(x, out, shape[0], shuffle=4)
    wide = x.astype(np.float64)
    exact = np.exp(wide - wide.max(1, keepdims=True))
    exact /= exact.sum(1, keepdims=True)
    np.testing.assert_allclose(out, exact, rtol=1e-5)


@pytest.mark.filterwarnings("error")
def test_nan_and_infinity_pass_without_a_warning() -> None:
    x = np.array([[np.nan, 1, 2], [-np.inf] * 3, [np.inf, 0, 1], [3e38, -3e38, 0]], np.float32)
    out = np.zeros_like(x)
    softmax(3).run(x, out, 4)
    assert np.isnan(out[:3]).all()
    assert out[3].tolist() == [1, 0, 0]


def scalars(*types: ScalarType) -> Program:
    program = Program(*types)
    program.finish(*program.arguments)
    return program


def test_scalar_arguments_are_rounded_once() -> None:
    program = scalars(F32, ScalarType(bfloat16), ScalarType(int32), INDEX)
    results = program.run(0.1, 1 + 2.0**-8 + 2.0**-40, np.int64(-3), np.int8(7))
    assert results[0] == np.float32(0.1)
    assert float(results[1]) == 1.0078125
    assert results[2:] == [-3, 7]
    assert [result.dtype.name for result in results] == ["float32", "bfloat16", "int32", "int64"]
    (large,) = scalars(F32).run(2**24 + 1)
    assert large == 2**24


def loader(type_: ViewType) -> Program:
    program = Program(type_)
    program.finish()
    return program


@pytest.mark.parametrize(
    ("type_", "argument", "error"),
    [
        (view(float32, 1), np.zeros(3), ArgumentTypeError),
        (view(float32, 1), 3.0, ArgumentTypeError),
        (view(float32, 1), np.zeros((2, 2), np.float32), RankError),
        (ViewType(float32, (4,), (None,)), np.zeros(3, np.float32), ShapeError),
        (ViewType(float32, (3,), (1,)), np.zeros(6, np.float32)[::2], ShapeError),
    ],
)
def test_arguments_that_do_not_fit_are_refused(
    type_: ViewType, argument: Array | float, error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        loader(type_).run(argument)
    assert "help:" in str(caught.value)


@pytest.mark.parametrize("arguments", [(), (1.0, 2.0, 3.0), (1.0,)])
def test_the_number_of_arguments_is_checked(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ArgumentTypeError, match="do not fit the 2 parameters of main"):
        scalars(F32, F32).run(*arguments)


def test_a_unit_extent_has_no_stride_to_match() -> None:
    fixed = ViewType(float32, (1, 3), (3, 1))
    array = np.lib.stride_tricks.as_strided(np.zeros(3, np.float32), (1, 3), (400, 4))
    assert loader(fixed).run(array) == []


def test_an_empty_array_has_no_strides_to_match() -> None:
    fixed = ViewType(float32, (None, 3), (None, 1))
    array = np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (0, 3), (0, 0))
    assert loader(fixed).run(array) == []


def test_what_is_no_program_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="a str is interpreted"):
        interpret("func", [])  # type: ignore[arg-type]  # that is the mistake
    with pytest.raises(ArgumentTypeError, match="no function to begin with"):
        interpret(Module(), [])
    with pytest.raises(ArgumentTypeError, match="no function named 'g'"):
        interpret(Module(), [], function="g")


def test_a_function_may_be_chosen_by_name() -> None:
    program = scalars(F32)
    other = Program(F32, name="other", into=program.module)
    other.finish(other.apply("neg", other.arguments[0]))
    assert interpret(program.module, [2.0]) == [2]
    assert interpret(program.module, [2.0], function="other") == [-2]


class Unknown(Operation):
    NAME = "test.unknown"


def test_an_operation_without_a_meaning_is_refused() -> None:
    program = Program()
    program.add(Unknown())
    program.finish()
    with pytest.raises(InternalError, match=r"test\.unknown"):
        program.run()


def test_a_result_that_is_not_what_its_type_says_is_refused() -> None:
    program = Program(view(float32, 1))
    wrong = Load(
        view=program.arguments[0],
        origins=program.indices(0),
        result_types=[tile(int32, Dim("m", 2))],
    )
    program.finish(program.value(wrong))
    with pytest.raises(InternalError, match=r"tile\.load made float32"):
        program.run(np.zeros(2, np.float32))
    mixed = Program(F32, ScalarType(int32))
    mixed.finish(mixed.apply("add", *mixed.arguments))
    with pytest.raises(InternalError, match=r"scalar\.apply made float64"):
        mixed.run(1.0, 2)
