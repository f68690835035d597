"""Tile ops: loads and stores at every edge, maps, reindexing, matrix multiply-accumulate."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.unit.interp.programs import Program, blank, tile, view
from tilenest.dialects import Extent, Load, Map, Mma, Reindex, Store, Stride
from tilenest.errors import OutOfBounds, SourceLocation
from tilenest.ir import (
    INDEX,
    DType,
    ScalarType,
    Value,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int32,
)
from tilenest.layouts import AffineMap, Const, Dim, DimRef, Sym, positional_dim

F32 = ScalarType(float32)


def load_program(
    extents: tuple[int, ...], bounds: str = "zero", other: float | None = None, mask: bool = False
) -> Program:
    """(view, origins..., a mask when there is one) -> the loaded tile."""
    dims = tuple(Dim(None, extent) for extent in extents)
    parameters = [view(float32, len(extents)), *[INDEX] * len(extents)]
    program = Program(*parameters, *([view(bool_, len(extents))] if mask else []))
    given = program.arguments
    fields: dict[str, Any] = {}
    if other is not None:
        fields["other"] = program.constant(other, F32)
    if mask:
        zeros = program.indices(*[0] * len(extents))
        whole = Load(view=given[-1], origins=zeros, result_types=[tile(bool_, *dims)])
        fields["mask"] = program.value(whole)
    load = Load(
        view=given[0],
        origins=given[1 : 1 + len(extents)],
        bounds=bounds,
        result_types=[tile(float32, *dims)],
        **fields,
    )
    program.finish(program.value(load))
    return program


def window(array: np.ndarray, origin: tuple[int, ...], shape: tuple[int, ...], other: float) -> Any:
    """Element by element, in Python integers."""
    result = np.full(shape, other, array.dtype)
    for at in np.ndindex(shape):
        place = tuple(start + step for start, step in zip(origin, at, strict=True))
        if all(0 <= p < size for p, size in zip(place, array.shape, strict=True)):
            result[at] = array[place]
    return result


FAR = 2**62
ORIGINS = [
    (0, 0),
    (2, 3),
    (-1, -2),
    (3, 5),
    (5, 7),
    (-4, -3),
    (FAR, 0),
    (-FAR, FAR),
    (2**63 - 1, 1),
]


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("other", [None, -7.5])
def test_load_gives_other_outside(origin: tuple[int, int], other: float | None) -> None:
    array = np.arange(1, 36, dtype=np.float32).reshape(5, 7)
    (result,) = load_program((4, 3), other=other).run(array, *origin)
    assert (result == window(array, origin, (4, 3), other or 0.0)).all()


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_load_follows_the_strides(step: int) -> None:
    array = np.arange(140, dtype=np.float32).reshape(10, 14)[::step, ::-step].T
    (result,) = load_program((3, 4)).run(array, 1, -1)
    assert (result == window(array, (1, -1), (3, 4), 0.0)).all()


def test_masked_load_gives_other_where_the_mask_is_false() -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    mask = np.arange(12).reshape(3, 4) % 3 != 0
    (result,) = load_program((3, 4), other=-1.0, mask=True).run(array, 1, 0, mask)
    expected = np.where(mask, window(array, (1, 0), (3, 4), -1.0), -1.0)
    assert (result == expected).all()


def test_load_is_a_snapshot() -> None:
    m = Dim("m", 3)
    program = Program(view(float32, 1))
    (a,) = program.arguments
    zero, one = program.indices(0, 1)
    kept = program.value(Load(view=a, origins=[zero], result_types=[tile(float32, m)]))
    program.add(Store(view=a, origins=[one], value=kept, dims=(m,)))
    program.finish(kept)
    array = np.array([1, 2, 3, 4], np.float32)
    (result,) = program.run(array)
    assert result.tolist() == [1, 2, 3]
    assert array.tolist() == [1, 1, 2, 3]


@pytest.mark.parametrize("bounds", ["check", "assume"])
def test_load_outside_is_an_error_that_names_everything(bounds: str) -> None:
    program = load_program((2, 3), bounds)
    program.arguments[0].name = "A"
    array = np.zeros((5, 7), np.float32)
    assert program.run(array, 3, 4)[0].shape == (2, 3)
    with pytest.raises(OutOfBounds, match=r"A at index \(3, 7\): axis 1 has extent 7") as caught:
        program.run(array, 3, 5)
    assert caught.value.remedy
    with pytest.raises(OutOfBounds, match=r"A at index \(-1, 0\): axis 0 has extent 5"):
        program.run(array, -1, 0)


def test_errors_carry_the_place_of_their_operation() -> None:
    program = load_program((2,), "check")
    place = SourceLocation("kernel.py", 3, 5, 9, "kernel", "    a = A[(i,), m]")
    for op in program.function.walk():
        op.location = place
    with pytest.raises(OutOfBounds) as caught:
        program.run(np.zeros(1, np.float32), 0)
    assert caught.value.location is place


def test_checked_load_ignores_masked_elements() -> None:
    program = load_program((2, 2), "check", mask=True)
    array = np.ones((2, 2), np.float32)
    (result,) = program.run(array, 1, 0, np.array([[True, True], [False, False]]))
    assert result.tolist() == [[1, 1], [0, 0]]
    with pytest.raises(OutOfBounds, match=r"\(2, 1\)"):
        program.run(array, 1, 0, np.array([[True, True], [False, True]]))


@pytest.mark.parametrize("place", [(1, 2), (-1, 0), (3, 0), (FAR, FAR)])
def test_element_load(place: tuple[int, int]) -> None:
    program = Program(view(float32, 2), INDEX, INDEX, ScalarType(bool_))
    a, i, j, mask = program.arguments
    other = program.constant(9.0, F32)
    load = Load(view=a, origins=[i, j], other=other, mask=mask, result_types=[F32])
    program.finish(program.value(load))
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    inside = 0 <= place[0] < 3 and 0 <= place[1] < 4
    assert program.run(array, *place, True) == [array[place] if inside else 9.0]
    assert program.run(array, *place, False) == [9.0]


def store_program(
    value: tuple[Dim, ...], target: tuple[Dim, ...], bounds: str = "zero", mask: bool = False
) -> Program:
    """(destination, origins..., value, mask) writes the value."""
    rank = len(target)
    parameters = [view(float32, rank), *[INDEX] * rank, view(float32, len(value))]
    program = Program(*parameters, *([view(bool_, rank)] if mask else []))
    given = program.arguments
    read = given[1 + rank]
    loaded = program.value(
        Load(
            view=read,
            origins=program.indices(*[0] * len(value)),
            result_types=[tile(float32, *value)],
        )
    )
    chosen = None
    if mask:
        zeros = program.indices(*[0] * rank)
        whole = Load(view=given[-1], origins=zeros, result_types=[tile(bool_, *target)])
        chosen = program.value(whole)
    origins = given[1 : 1 + rank]
    program.add(
        Store(view=given[0], origins=origins, value=loaded, mask=chosen, bounds=bounds, dims=target)
    )
    program.finish()
    return program


@pytest.mark.parametrize("origin", ORIGINS)
@pytest.mark.parametrize("masked", [False, True])
def test_store_drops_what_is_outside_or_masked(origin: tuple[int, int], masked: bool) -> None:
    m, n = Dim("m", 4), Dim("n", 3)
    value = np.arange(1, 13, dtype=np.float32).reshape(4, 3)
    mask = np.arange(12).reshape(4, 3) % 2 == 0
    guarded = np.full((7, 9), np.nan, np.float32)
    array = guarded[1:6, 1:8]
    expected = guarded.copy()
    for at in np.ndindex(4, 3):
        row, column = origin[0] + at[0], origin[1] + at[1]
        if 0 <= row < 5 and 0 <= column < 7 and (mask[at] or not masked):
            expected[row + 1, column + 1] = value[at]
    program = store_program((m, n), (m, n), mask=masked)
    program.run(array, *origin, value, *([mask] if masked else []))
    np.testing.assert_array_equal(guarded, expected)


def test_store_outside_writes_nothing_when_checked() -> None:
    m = Dim("m", 3)
    array = np.zeros(4, np.float32)
    with pytest.raises(OutOfBounds, match=r"store of argument 0 at index \(4,\)"):
        store_program((m,), (m,), "check").run(array, 2, np.ones(3, np.float32))
    assert not array.any()


def test_store_aligns_by_identity_then_by_position() -> None:
    m, n, p, q = Dim("m", 2), Dim("n", 3), Dim("p", 2), Dim("q", 3)
    value = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    array = np.zeros((3, 2), np.float32)
    store_program((m, n), (n, m)).run(array, 0, 0, value)
    assert (array == value.T).all()
    array = np.zeros((2, 3), np.float32)
    store_program((m, n), (p, q)).run(array, 0, 0, value)
    assert (array == value).all()
    array = np.zeros((2, 3), np.float32)
    store_program((n,), (m, n)).run(array, 0, 0, value[1])
    assert (array == value[1]).all()


def test_element_store() -> None:
    program = Program(view(float32, 2), INDEX, INDEX, F32)
    a, i, j, value = program.arguments
    program.add(Store(view=a, origins=[i, j], value=value))
    program.finish()
    array = np.zeros((2, 3), np.float32)
    program.run(array, 1, 2, 5.0)
    program.run(array, 1, 3, 6.0)
    assert array.tolist() == [[0, 0, 0], [0, 0, 5]]


@pytest.mark.parametrize("dtype", [bool_, int8, int32, float16, bfloat16, float32, float64])
def test_every_dtype_is_loaded_and_stored_exactly(dtype: DType) -> None:
    m = Dim("m", 5)
    program = Program(view(dtype, 1), view(dtype, 1))
    source, target = program.arguments
    zero = program.constant(0)
    loaded = program.value(Load(view=source, origins=[zero], result_types=[tile(dtype, m)]))
    program.add(Store(view=target, origins=[zero], value=loaded, dims=(m,)))
    program.finish()
    numpy_dtype = ml_dtypes.bfloat16 if dtype is bfloat16 else np.dtype(dtype.name.rstrip("_"))
    given = np.array([0, 1, 1, 0, 1]).astype(numpy_dtype)
    written = np.ones(5, numpy_dtype)
    program.run(given, written)
    assert written.tobytes() == given.tobytes()


def test_view_facts() -> None:
    program = Program(view(float64, 2))
    (a,) = program.arguments
    facts = [
        Extent(view=a, axis=1, result_types=[INDEX]),
        Stride(view=a, axis=0, result_types=[INDEX]),
    ]
    program.finish(*[program.value(fact) for fact in facts])
    assert program.run(np.zeros((6, 8))[::2, 1:4]) == [3, 16]


def map_program(
    inputs: list[tuple[DType, tuple[Dim, ...]]], dims: tuple[Dim, ...], dtype: DType
) -> tuple[Program, Map]:
    """A map of whole views; the region is left to the caller."""
    program = Program(*[view(kind, len(given)) for kind, given in inputs])
    loaded = []
    for argument, (kind, given) in zip(program.arguments, inputs, strict=True):
        zeros = program.indices(*[0] * len(given))
        type_ = tile(kind, *given) if given else ScalarType(kind)
        loaded.append(program.value(Load(view=argument, origins=zeros, result_types=[type_])))
    elements = [ScalarType(kind) for kind, _ in inputs]
    region = blank(*[INDEX] * len(dims), *elements)
    return program, program.add(
        Map(inputs=loaded, result_types=[tile(dtype, *dims)], regions=[region])
    )


def test_map_joins_named_dims() -> None:
    m, n = Dim("m", 2), Dim("n", 3)
    inputs = [(float32, (m,)), (float32, (n,)), (float32, (n, m)), (float32, ())]
    program, op = map_program(inputs, (m, n), float32)
    with program.inside(op) as (_, _, x, y, z, w):
        program.yields(program.apply("fma", x, y, program.apply("add", z, w)))
    program.finish(op.result)
    x_, y_ = np.array([2, 3], np.float32), np.array([5, 7, 11], np.float32)
    z_ = np.arange(6, dtype=np.float32).reshape(3, 2)
    (result,) = program.run(x_, y_, z_, np.array(100, np.float32))
    assert (result == x_[:, None] * y_ + z_.T + 100).all()


def test_map_broadcasts_positional_ones() -> None:
    rows, columns, one = positional_dim(1, 2), positional_dim(0, 3), positional_dim(0, 1)
    program, op = map_program([(int32, (rows, one)), (int32, (columns,))], (rows, columns), int32)
    with program.inside(op) as (_, _, x, y):
        program.yields(program.apply("sub", x, y))
    program.finish(op.result)
    (result,) = program.run(np.array([[10], [20]], np.int32), np.array([1, 2, 3], np.int32))
    assert result.tolist() == [[9, 8, 7], [19, 18, 17]]


def test_map_without_operands_is_a_constant_or_an_iota() -> None:
    m, n = Dim("m", 2), Dim("n", 3)
    for constant in (True, False):
        program, op = map_program([], (m, n), int32)
        with program.inside(op) as (i, j):
            value: Value = program.constant(7, ScalarType(int32))
            if not constant:
                ten = program.constant(10)
                value = program.cast(program.apply("add", program.apply("mul", i, ten), j), int32)
            program.yields(value)
        program.finish(op.result)
        (result,) = program.run()
        assert result.tolist() == ([[7] * 3] * 2 if constant else [[0, 1, 2], [10, 11, 12]])


def reindexed(
    array: np.ndarray, extents: tuple[int, ...], map_: AffineMap, symbols: tuple[int, ...] = ()
) -> Any:
    dims = tuple(Dim(None, extent) for extent in array.shape)
    program = Program(view(int32, array.ndim), *[INDEX] * len(symbols))
    zeros = program.indices(*[0] * array.ndim)
    load = Load(view=program.arguments[0], origins=zeros, result_types=[tile(int32, *dims)])
    result = (
        tile(int32, *[Dim(None, extent) for extent in extents]) if extents else ScalarType(int32)
    )
    op = Reindex(
        value=program.value(load),
        symbols=program.arguments[1:],
        map=map_,
        result_types=[result],
    )
    program.finish(program.value(op))
    return program.run(array, *symbols)[0]


def test_reindex_says_every_data_movement() -> None:
    d0, d1, s0 = DimRef(0), DimRef(1), Sym(0)
    value = np.arange(1, 13, dtype=np.int32).reshape(3, 4)
    assert (reindexed(value, (4, 3), AffineMap(2, 0, (d1, d0))) == value.T).all()
    flat = AffineMap(1, 0, (d0 // 4, d0 % 4))
    assert (reindexed(value, (12,), flat) == value.reshape(12)).all()
    assert (reindexed(value, (2, 3), AffineMap(2, 0, (Const(1), d1))) == value[1, :3]).all()
    row = AffineMap(1, 1, (s0, d0))
    assert (reindexed(value, (4,), row, (2,)) == value[2]).all()
    assert (reindexed(value, (4,), row, (3,)) == 0).all()
    assert (reindexed(value, (4,), row, (-1,)) == 0).all()
    assert reindexed(value, (), AffineMap(0, 1, (Const(2), s0)), (3,)) == 12
    flipped = AffineMap(2, 0, (2 - d0, 3 - d1))
    assert (reindexed(value, (4, 4), flipped)[:3] == value[::-1, ::-1]).all()
    assert (reindexed(value, (4, 4), flipped)[3] == 0).all()
    by_symbol = AffineMap(2, 1, (d0, d1 // s0))
    assert reindexed(value, (1, 4), by_symbol, (2,)).tolist() == [[1, 1, 2, 2]]
    assert reindexed(value, (1, 4), by_symbol, (0,)).tolist() == [[1, 1, 1, 1]]


def test_reindex_coordinates_do_not_wrap() -> None:
    value = np.arange(1, 5, dtype=np.int32)
    # 2^62 * 4 is 0 in 64 bits.
    scaled = AffineMap(1, 1, (DimRef(0) + Sym(0) * 4,))
    assert reindexed(value, (4,), scaled, (2**62,)).tolist() == [0, 0, 0, 0]
    assert reindexed(value, (4,), scaled, (0,)).tolist() == [1, 2, 3, 4]


def mma_program(
    a: tuple[Dim, ...], b: tuple[Dim, ...], c: tuple[Dim, ...], inputs: DType, dtype: DType
) -> Program:
    types = [(inputs, a), (inputs, b), (dtype, c)]
    program = Program(*[view(kind, len(dims)) for kind, dims in types])
    loaded = [
        program.value(
            Load(
                view=argument,
                origins=program.indices(*[0] * len(dims)),
                result_types=[tile(kind, *dims)],
            )
        )
        for argument, (kind, dims) in zip(program.arguments, types, strict=True)
    ]
    op = Mma(a=loaded[0], b=loaded[1], c=loaded[2], result_types=[tile(dtype, *c)])
    program.finish(program.value(op))
    return program


def test_mma_is_exact_on_small_integers() -> None:
    m, k, n, batch = Dim("m", 2), Dim("k", 3), Dim("n", 4), Dim("batch", 2)
    generator = np.random.default_rng(1)
    a = generator.integers(-8, 8, (2, 3, 2)).astype(np.float32)
    b = generator.integers(-8, 8, (2, 4, 3)).astype(np.float32)
    c = generator.integers(-8, 8, (4, 2, 2)).astype(np.float32)
    program = mma_program((batch, k, m), (batch, n, k), (n, batch, m), float32, float32)
    (result,) = program.run(a, b, c)
    assert (result == c + np.einsum("bkm,bnk->nbm", a, b)).all()


def test_mma_rounds_once_a_step_in_the_order_of_k() -> None:
    m, k = Dim("m", 1), Dim("k", 3)
    program = mma_program((m, k), (k,), (m,), float32, float32)
    big, one = np.float32(2.0**24), np.float32(1)
    # Upwards 2^24 swallows each 1; any other order keeps some.
    (result,) = program.run(
        np.array([[big, one, one]]), np.array([one, one, one]), np.zeros(1, np.float32)
    )
    assert result.tolist() == [2.0**24]
    tiny = np.float32(2.0**-12)
    (fused,) = program.run(
        np.array([[1 + tiny, 0, 0]], np.float32),
        np.array([1 + tiny, 0, 0], np.float32),
        np.array([-1 - 2 * tiny], np.float32),
    )
    assert fused.tolist() == [2.0**-24]


def test_mma_widens_its_inputs_and_wraps_integers() -> None:
    m, k = Dim("m", 1), Dim("k", 4)
    ones = np.full(4, 100, np.int8)
    (result,) = mma_program((m, k), (k,), (m,), int8, int32).run(
        ones[None], ones, np.array([5], np.int32)
    )
    assert result.tolist() == [40005]
    half = np.full(4, 256.5, np.float16)
    (wide,) = mma_program((m, k), (k,), (m,), float16, float32).run(
        half[None], half, np.zeros(1, np.float32)
    )
    assert wide.tolist() == [4 * float(half[0]) ** 2]


def test_mma_over_several_dims_and_over_none() -> None:
    m, k, j = Dim("m", 2), Dim("k", 3), Dim("j", 2)
    a = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    b = np.arange(6, dtype=np.float32).reshape(2, 3)
    (result,) = mma_program((m, k, j), (j, k), (m,), float32, float32).run(
        a, b, np.zeros(2, np.float32)
    )
    assert (result == np.einsum("mkj,jk->m", a, b)).all()
    empty = Dim("k", 0)
    start = np.array([3, 4], np.float32)
    (kept,) = mma_program((m, empty), (empty,), (m,), float32, float32).run(
        np.zeros((2, 0), np.float32), np.zeros(0, np.float32), start
    )
    assert (kept == start).all()
