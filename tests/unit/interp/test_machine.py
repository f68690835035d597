"""Machine form: loops and launches, strict memory, masks, gathers, lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.unit.interp.programs import Program, blank
from tilenest.dialects import (
    AddressLoad,
    AddressStore,
    AtomCall,
    Check,
    For,
    Gather,
    LaneMask,
    Lanes,
    Launch,
    LoopIf,
    LoopYield,
    Offset,
    Scatter,
    Splat,
)
from tilenest.errors import InternalError, OutOfBounds
from tilenest.interp.values import numpy_dtype
from tilenest.ir import (
    BOOL,
    COMBINE,
    INDEX,
    POINTER,
    DType,
    Module,
    ScalarType,
    Value,
    VectorType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    index,
    int8,
    int32,
)
from tilenest.machine import LANE_REDUCTIONS

F32 = ScalarType(float32)
VIEW = (POINTER, INDEX, INDEX)
"""A view of rank 1: pointer, extent, stride."""


def lanes(dtype: DType, count: int = 8) -> VectorType:
    return VectorType(dtype, count)


def moved(program: Program, pointer: Value, by: Value, scale: int = 4, constant: int = 0) -> Value:
    op = Offset(pointer=pointer, index=by, scale=scale, constant=constant, result_types=[POINTER])
    return program.value(op)


def read(program: Program, pointer: Value, type_: Any, align: int = 4, **fields: Any) -> Value:
    return program.value(AddressLoad(pointer=pointer, align=align, result_types=[type_], **fields))


def write(program: Program, value: Value, pointer: Value, align: int = 4, **fields: Any) -> None:
    program.add(AddressStore(value=value, pointer=pointer, align=align, **fields))


def reduction(merge: str, value: Value, type_: ScalarType) -> AtomCall:
    atom, semantic = LANE_REDUCTIONS[merge], COMBINE + merge
    return AtomCall(arguments=[value], atom=atom, semantic=semantic, result_types=[type_])


def lane_mask(program: Program, count: Value, width: int = 8) -> Value:
    return program.value(LaneMask(count=count, result_types=[lanes(bool_, width)]))


def vector_add(scratch_bytes: int = 0) -> Program:
    """out = a + b by a launch over elements, eight lanes at a time with a masked tail."""
    module = Module("machine")
    body = Program(INDEX, INDEX, POINTER, POINTER, POINTER, POINTER, name="body", into=module)
    begin, end, _, a, b, out = body.arguments
    eight = body.constant(8)
    loop = body.add(For(lower=begin, upper=end, step=eight, regions=[blank(INDEX)]))
    with body.inside(loop) as (i,):
        mask = lane_mask(body, body.apply("sub", end, i))
        zeros = body.constant(0.0, lanes(float32))
        x, y = (
            read(body, moved(body, side, i), lanes(float32), mask=mask, otherwise=zeros)
            for side in (a, b)
        )
        write(body, body.apply("add", x, y), moved(body, out, i), mask=mask)
        body.add(LoopYield())
    body.finish()
    main = Program(*VIEW, *VIEW, *VIEW, into=module)
    a, extent, _, b, _, _, out, _, _ = main.arguments
    main.add(Launch(total=extent, captured=[a, b, out], callee="body", scratch_bytes=scratch_bytes))
    main.finish()
    return main


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 31, 64])
@pytest.mark.parametrize("shuffle", [None, 0, 5])
def test_launch_covers_the_range_in_chunks(size: int, shuffle: int | None) -> None:
    guarded = np.full(size + 16, np.nan, np.float32)
    out = guarded[8 : size + 8]
    a = np.arange(size, dtype=np.float32)
    vector_add().run(a, a * 2, out, shuffle=shuffle)
    assert (out == a * 3).all()
    assert np.isnan(guarded[:8]).all()
    assert np.isnan(guarded[size + 8 :]).all()


def test_every_chunk_gets_poisoned_scratch_of_its_own() -> None:
    module = Module("machine")
    body = Program(INDEX, INDEX, POINTER, POINTER, name="body", into=module)
    begin, _, scratch, out = body.arguments
    found = read(body, scratch, F32, align=64)
    write(body, found, moved(body, out, begin))
    write(body, body.constant(1.0, F32), scratch)
    body.finish()
    main = Program(*VIEW, into=module)
    main.add(
        Launch(
            total=main.arguments[1], captured=[main.arguments[0]], callee="body", scratch_bytes=4
        )
    )
    main.finish()
    out_ = np.zeros(9, np.float32)
    main.run(out_)
    assert np.isnan(out_[[0, 3, 6]]).all(), "several chunks, none sees another's scratch"
    assert (out_[[1, 2, 4, 5, 7, 8]] == 0).all()


def single(type_: Any, offset: int = 0, align: int = 4) -> Program:
    """(view, mask count) -> the vector or scalar `offset` elements into the view."""
    program = Program(*VIEW)
    place = moved(program, program.arguments[0], program.constant(offset))
    program.finish(read(program, place, type_, align))
    return program


@pytest.mark.parametrize("offset", [-1, 1, 100])
def test_reading_outside_is_an_error(offset: int) -> None:
    array = np.arange(24, dtype=np.float32)[8:16]
    assert single(lanes(float32)).run(array)[0].tolist() == array.tolist()
    with pytest.raises(InternalError, match="outside"):
        single(lanes(float32), offset).run(array)


def test_reading_between_the_elements_is_an_error() -> None:
    columns = np.zeros((4, 6), np.float32)[:, 1:3]
    assert single(lanes(float32, 2), 6).run is not None
    program = Program(POINTER, INDEX, INDEX, INDEX, INDEX)
    row = moved(program, program.arguments[0], program.arguments[3])
    program.finish(read(program, row, lanes(float32, 2)), *program.arguments[1:])
    assert program.run(columns)[1:] == [4, 2, 6, 1]
    wide = Program(POINTER, INDEX, INDEX, INDEX, INDEX)
    wide.finish(read(wide, wide.arguments[0], lanes(float32, 4)))
    with pytest.raises(InternalError, match="byte 8 of argument 0"):
        wide.run(columns)


@pytest.mark.parametrize("step", [1, 2, -1, -3, 0])
def test_strides_are_in_elements_and_may_be_negative(step: int) -> None:
    base = np.arange(30, dtype=np.float32)
    array = np.lib.stride_tricks.as_strided(base[15:], (5,), (4 * step,))
    program = Program(*VIEW, INDEX)
    pointer, _, stride, i = program.arguments
    place = moved(program, pointer, program.apply("mul", i, stride))
    program.finish(read(program, place, F32))
    assert [program.run(array, i)[0] for i in range(5)] == [15 + step * i for i in range(5)]


def test_false_alignment_claims_are_errors() -> None:
    raw = np.zeros(256, np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + 128].view(np.float32)
    assert single(lanes(float32), align=64).run(array)[0].size == 8
    with pytest.raises(InternalError, match="claims 64-byte alignment"):
        single(lanes(float32), 1, align=64).run(array)
    with pytest.raises(InternalError, match="claims 32-byte alignment"):
        single(F32, align=32).run(array[1:])


@pytest.mark.parametrize("count", [-5, 0, 3, 8, 2**62])
def test_masked_lanes_are_not_touched(count: int) -> None:
    program = Program(*VIEW, *VIEW, INDEX)
    a, _, _, out, _, _, bound = program.arguments
    mask = lane_mask(program, bound)
    minus = program.constant(-1.0, lanes(float32))
    loaded = read(program, a, lanes(float32), mask=mask, otherwise=minus)
    write(program, loaded, out, mask=mask)
    program.finish(loaded)
    active = max(0, min(count, 8))
    a_ = np.arange(1, active + 1, dtype=np.float32)
    out_ = np.full(8, np.nan, np.float32)
    # The view ends where the mask does.
    (result,) = program.run(a_, out_[:active], count)
    assert result.tolist() == [*a_, *[-1.0] * (8 - active)]
    assert out_[:active].tolist() == a_.tolist()
    assert np.isnan(out_[active:]).all()


def test_masked_lanes_without_otherwise_are_poison() -> None:
    program = Program(*VIEW)
    mask = lane_mask(program, program.constant(2))
    program.finish(read(program, program.arguments[0], lanes(float32), mask=mask))
    (result,) = program.run(np.ones(2, np.float32))
    assert result[:2].tolist() == [1, 1]
    assert np.isnan(result[2:]).all()


@pytest.mark.parametrize("dtype", [bool_, int8, int32, float16, bfloat16, float32, float64])
def test_every_dtype_travels_through_memory(dtype: DType) -> None:
    program = Program(*VIEW, *VIEW)
    a, _, _, out, _, _ = program.arguments
    write(program, read(program, a, lanes(dtype, 4), dtype.bytes), out, dtype.bytes)
    last = program.constant(3)
    write(
        program,
        read(program, moved(program, a, last, dtype.bytes), ScalarType(dtype), dtype.bytes),
        moved(program, out, last, dtype.bytes, dtype.bytes),
        dtype.bytes,
    )
    program.finish()
    given = np.array([0, 1, 1, 1]).astype(numpy_dtype(dtype))
    written = np.zeros(5, numpy_dtype(dtype))
    program.run(given, written)
    assert written.astype(np.float32).tolist() == [0, 1, 1, 1, 1]


def test_gather_and_scatter_go_in_lane_order() -> None:
    program = Program(*VIEW, *VIEW, *VIEW)
    a, _, _, places, _, _, out, _, _ = program.arguments
    offsets = read(program, places, lanes(int32, 4))
    gathered = program.value(
        Gather(pointer=a, offsets=offsets, scale=4, result_types=[lanes(float32, 4)])
    )
    program.add(Scatter(value=gathered, pointer=out, offsets=offsets, scale=4))
    program.finish(gathered)
    a_ = np.array([10, 11, 12, 13, 14], np.float32)
    out_ = np.full(5, np.nan, np.float32)
    (result,) = program.run(a_, np.array([4, 0, 4, 2], np.int32), out_)
    assert result.tolist() == [14, 10, 14, 12]
    np.testing.assert_array_equal(out_, np.array([10, np.nan, 12, np.nan, 14]))
    with pytest.raises(InternalError, match="outside"):
        program.run(a_, np.array([0, 5, 1, 2], np.int32), out_)


def test_the_last_of_equal_scatter_lanes_wins() -> None:
    program = Program(*VIEW)
    numbers = program.value(Lanes(result_types=[lanes(float32, 4)]))
    zeros = program.constant(0, lanes(index, 4))
    three = lane_mask(program, program.constant(3), 4)
    program.add(
        Scatter(value=numbers, pointer=program.arguments[0], offsets=zeros, mask=three, scale=4)
    )
    program.finish()
    out = np.full(1, np.nan, np.float32)
    program.run(out)
    assert out.tolist() == [2]


def test_masked_gather_gives_otherwise() -> None:
    program = Program(*VIEW)
    offsets = program.value(Lanes(result_types=[lanes(index, 4)]))
    mask = lane_mask(program, program.constant(2), 4)
    other = program.constant(-1.0, lanes(float32, 4))
    gathered = Gather(
        pointer=program.arguments[0],
        offsets=offsets,
        mask=mask,
        otherwise=other,
        scale=8,
        result_types=[lanes(float32, 4)],
    )
    program.finish(program.value(gathered))
    (result,) = program.run(np.array([1, 2, 3], np.float32))
    assert result.tolist() == [1, 3, -1, -1]


def test_lane_operations() -> None:
    program = Program(F32)
    (x,) = program.arguments
    splat = program.value(Splat(value=x, result_types=[lanes(float32, 4)]))
    numbers = program.value(Lanes(result_types=[lanes(float32, 4)]))
    total = program.apply("add", splat, numbers)
    wins = program.apply("gt", total, program.constant(4.0, lanes(float32, 4)))
    chosen = program.apply("where", wins, total, program.constant(0.0, lanes(float32, 4)))
    summed = program.value(reduction("add", chosen, F32))
    any_ = program.value(reduction("or", wins, BOOL))
    program.finish(total, chosen, summed, any_)
    first, second, third, fourth = program.run(2.5)
    assert first.tolist() == [2.5, 3.5, 4.5, 5.5]
    assert second.tolist() == [0, 0, 4.5, 5.5]
    assert (third, fourth) == (10.0, True)


def test_lanes_are_reduced_by_halving() -> None:
    program = Program(*VIEW)
    vector = read(program, program.arguments[0], lanes(float32, 4))
    total = reduction("add", vector, F32)
    program.finish(program.value(total))
    # (big + -big) + (1 + 1); from the left the ones would be lost.
    assert program.run(np.array([2.0**25, 1, -(2.0**25), 1], np.float32)) == [2]


def test_loops_carry_states_and_branches_choose() -> None:
    program = Program(INDEX, F32)
    count, start = program.arguments
    zero, two = program.indices(0, 2)
    loop = For(
        lower=zero, upper=count, step=two, initial=[start], result_types=[F32],
        regions=[blank(INDEX, F32)],
    )  # fmt: skip
    program.add(loop)
    with program.inside(loop) as (i, state):
        large = program.apply("gt", i, two)
        branch = LoopIf(condition=large, result_types=[F32], regions=[blank(), blank()])
        program.add(branch)
        for region, factor in enumerate((10.0, 2.0)):
            with program.inside(branch, region):
                scaled = program.apply("mul", state, program.constant(factor, F32))
                program.add(LoopYield(values=[scaled]))
        program.add(LoopYield(values=[branch.result]))
    program.finish(loop.result)
    assert program.run(0, 1.0) == [1]
    assert program.run(3, 1.0) == [4]
    assert program.run(7, 1.0) == [400]


def dot(program: Program, pointers: Sequence[Value], count: Value, width: int) -> Value:
    """The sum of products over a masked vector loop."""
    zeros = program.constant(0.0, lanes(float32, width))
    zero, step = program.indices(0, width)
    loop = program.add(
        For(
            lower=zero,
            upper=count,
            step=step,
            initial=[zeros],
            result_types=[lanes(float32, width)],
            regions=[blank(INDEX, lanes(float32, width))],
        )
    )
    with program.inside(loop) as (i, total):
        mask = lane_mask(program, program.apply("sub", count, i), width)
        x, y = (
            read(
                program, moved(program, side, i), lanes(float32, width), mask=mask, otherwise=zeros
            )
            for side in pointers
        )
        program.add(LoopYield(values=[program.apply("fma", x, y, total)]))
    return program.value(reduction("add", loop.result, F32))


@pytest.mark.parametrize("width", [1, 4, 16])
def test_vector_dot_product(width: int) -> None:
    program = Program(*VIEW, *VIEW)
    a, count, _, b, _, _ = program.arguments
    program.finish(dot(program, [a, b], count, width))
    x = np.arange(37, dtype=np.float32)
    assert program.run(x, x[::-1].copy()) == [float((x * x[::-1]).sum())]


def test_bool_bytes_other_than_one_are_true() -> None:
    program = Program(*VIEW)
    program.finish(read(program, program.arguments[0], lanes(bool_, 3), 1))
    bytes_ = np.array([0, 1, 2], np.uint8)
    assert program.run(bytes_.view(np.bool_))[0].tolist() == [False, True, True]


def test_half_precision_lanes_round_after_each_operation() -> None:
    program = Program(*VIEW)
    x = read(program, program.arguments[0], lanes(bfloat16, 2), 2)
    program.finish(program.apply("sub", program.apply("add", x, x), x))
    given = np.array([1.0078125, 3.0], ml_dtypes.bfloat16)
    assert program.run(given)[0].astype(np.float32).tolist() == [1.0078125, 3.0]


@pytest.mark.parametrize(
    ("first", "extent", "count", "condition", "index"),
    [
        (0, 4, 4, True, None),
        (0, 0, 1, False, None),
        (-1, 4, 1, False, None),
        (1, 4, 4, True, 4),
        (7, 4, 2, True, 7),
        (-3, 4, 9, True, -3),
        (2**63 - 2, 4, 9, True, 2**63 - 2),
        (0, 0, 1, True, 0),
    ],
)
def test_checks_name_the_first_coordinate_outside(
    first: int, extent: int, count: int, condition: bool, index: int | None
) -> None:
    program = Program(INDEX, INDEX, BOOL)
    a, b, c = program.arguments
    program.add(Check(first=a, extent=b, condition=c, access="load of A", axis=1, count=count))
    program.finish()
    if index is None:
        assert program.run(first, extent, condition) == []
        return
    with pytest.raises(OutOfBounds, match=f"A: axis 1 has extent {extent}, the index is {index} "):
        program.run(first, extent, condition)
