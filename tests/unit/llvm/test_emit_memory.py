"""Loads, stores, gathers and scatters: every dtype, masks at every remainder, nothing outside."""

from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.llvm.loops import machines
from tests.unit.llvm.programs import (
    Array,
    Program,
    as_passed,
    assert_equal,
    described,
    guarded,
    guards_intact,
    lane_type,
    load_kernel,
    numpy_dtype,
    run_both,
)
from tilenest.backends.llvm import HostMachineInfo
from tilenest.ir import (
    DTYPES,
    INDEX,
    DType,
    Module,
    Value,
    VectorType,
    bfloat16,
    bool_,
    float16,
    float32,
    index,
    int8,
    int16,
    int32,
)

_STORED = [dtype for dtype in DTYPES if dtype is not index]
_MACHINES = machines()


def numbers(dtype: DType, size: int) -> Array:
    """Distinct where the dtype allows, never 0 (but for bool)."""
    values = np.arange(1, size + 1)
    return (values % 3 == 1 if dtype.is_bool else values % 120 + 1).astype(numpy_dtype(dtype))


def masked_copy(
    dtype: DType, lanes: int, mask_of: Callable[[Program, Value, Value], Value]
) -> Module:
    """Rows of `lanes`: out = in where the mask, else 7; the store is masked too. The mask is made
    from the row's start and the length in the third view."""
    program = Program([1, 1, 1])
    (source, (extent,), _), (target, _, _) = program.view(0), program.view(1)
    length = program.load(program.view(2)[0], INDEX)
    seven = program.number(True if dtype.is_bool else 7, lane_type(dtype, lanes))
    everywhere = program.number(0)

    def body(place: Value) -> list[Value]:
        mask = mask_of(program, place, length)
        loaded = program.load(
            program.at(source, place, dtype.bytes), VectorType(dtype, lanes), mask, seven
        )
        program.store(loaded, program.at(target, place, dtype.bytes), mask)
        return []

    program.loop(everywhere, extent, program.number(lanes), body)
    return program.finish()


def leading(lanes: int) -> Callable[[Program, Value, Value], Value]:
    return lambda program, place, length: program.lane_mask(
        program.apply("sub", length, place), lanes
    )


@pytest.mark.parametrize("machine", _MACHINES.values(), ids=_MACHINES)
@pytest.mark.parametrize("lanes", [8, 32])
@pytest.mark.parametrize("dtype", _STORED, ids=str)
def test_masks_of_leading_lanes_at_every_remainder(
    dtype: DType, lanes: int, machine: HostMachineInfo
) -> None:
    module = masked_copy(dtype, lanes, leading(lanes))
    size = 2 * lanes
    check_lengths(module, dtype, size, range(-1, size + 2), machine)


def check_lengths(
    module: Module, dtype: DType, size: int, lengths: range, machine: HostMachineInfo
) -> None:
    """One compilation, every length."""
    source, length = numbers(dtype, size), np.zeros(1, np.int64)
    kernel = load_kernel(module, described([source, source, length]), machine)
    for count in lengths:
        output, length = guarded(np.zeros_like(source)), np.array([count], np.int64)
        kernel.call(as_passed(guarded(source)), as_passed(output), length)
        inside = np.arange(size) < count
        assert_equal(output, np.where(inside, source, np.zeros_like(source)))
        assert guards_intact(output)


@pytest.mark.parametrize("machine", _MACHINES.values(), ids=_MACHINES)
@pytest.mark.parametrize("dtype", _STORED, ids=str)
@pytest.mark.parametrize("count", [0, 7, 13, 20])
def test_masks_of_a_fixed_number_of_lanes(
    dtype: DType, count: int, machine: HostMachineInfo
) -> None:
    def fixed(program: Program, place: Value, length: Value) -> Value:
        assert place is not length
        return program.lane_mask(program.number(count), 16)

    arrays = [numbers(dtype, 32), np.zeros(32, numpy_dtype(dtype)), np.zeros(1, np.int64)]
    assert_equal(*run_both(masked_copy(dtype, 16, fixed), arrays, machine=machine)[1])


@pytest.mark.parametrize("machine", _MACHINES.values(), ids=_MACHINES)
@pytest.mark.parametrize("dtype", _STORED, ids=str)
def test_masks_with_holes(dtype: DType, machine: HostMachineInfo) -> None:
    """The other lanes of a load hold what it says; those of a store keep what was there."""
    program = Program([1, 1, 1])
    (source, _, _), (loaded, _, _), (stored, _, _) = map(program.view, range(3))
    kind = VectorType(dtype, 16)
    picked = program.apply(
        "and", program.lanes(int32, 16), program.number(2, VectorType(int32, 16))
    )
    mask = program.compare("ne", picked, program.number(0, VectorType(int32, 16)))
    seven = program.number(True if dtype.is_bool else 7, kind)
    value = program.load(source, kind, mask, seven)
    program.store(value, loaded)
    program.store(value, stored, mask)
    arrays = [numbers(dtype, 16), np.zeros(16, numpy_dtype(dtype)), numbers(dtype, 16)[::-1]]
    for native, expected in run_both(program.finish(), arrays, machine=machine):
        assert_equal(native, expected)


@pytest.mark.parametrize("dtype", _STORED, ids=str)
@pytest.mark.parametrize("admitted", [False, True])
def test_masked_scalars(dtype: DType, admitted: bool) -> None:
    """A pointer far outside is not followed when the mask forbids it."""
    program = Program([1, 1, 1], [bool_])
    (source, _, _), (target, _, _), (kept, _, _) = map(program.view, range(3))
    (mask,) = program.scalars
    far = program.apply("where", mask, program.number(0), program.number(1 << 45), type_=INDEX)
    seven = program.number(True if dtype.is_bool else 7, lane_type(dtype, 0))
    value = program.load(program.at(source, far, dtype.bytes), lane_type(dtype, 0), mask, seven)
    program.store(value, target)
    program.store(value, program.at(kept, far, dtype.bytes), mask)
    arrays = [numbers(dtype, 3), np.zeros(3, numpy_dtype(dtype)), numbers(dtype, 3)[::-1]]
    for native, expected in run_both(program.finish(), arrays, [(admitted, bool_)]):
        assert_equal(native, expected)


@pytest.mark.parametrize("machine", _MACHINES.values(), ids=_MACHINES)
@pytest.mark.parametrize("dtype", _STORED, ids=str)
@pytest.mark.parametrize("is_masked", [False, True])
@pytest.mark.parametrize("offset_dtype", [index, int32], ids=str)
def test_gather_and_scatter(
    dtype: DType, is_masked: bool, offset_dtype: DType, machine: HostMachineInfo
) -> None:
    program = Program([1, 1, 1])
    (source, _, _), (gathered, _, _), (scattered, _, _) = map(program.view, range(3))
    kind = VectorType(dtype, 8)
    lanes = program.lanes(offset_dtype, 8)
    steps = program.apply("mul", lanes, program.number(-3, lanes.type))
    end = program.at(source, program.number(30), dtype.bytes)
    mask = program.lane_mask(program.number(5), 8) if is_masked else None
    otherwise = program.number(True if dtype.is_bool else 7, kind) if is_masked else None
    value = program.gather(end, steps, kind, mask, otherwise)
    program.store(value, gathered)
    target = program.at(scattered, program.number(30), dtype.bytes)
    program.scatter(value, target, steps, mask)
    arrays = [
        numbers(dtype, 32),
        np.zeros(8, numpy_dtype(dtype)),
        np.zeros(32, numpy_dtype(dtype)),
    ]
    for native, expected in run_both(program.finish(), arrays, machine=machine):
        assert_equal(native, expected)


@pytest.mark.parametrize("machine", _MACHINES.values(), ids=_MACHINES)
def test_scatter_writes_in_lane_order(machine: HostMachineInfo) -> None:
    program = Program([1])
    value = program.lanes(float32, 16)
    half = program.apply("shr", program.lanes(index, 16), program.number(2, VectorType(index, 16)))
    program.scatter(value, program.view(0)[0], half)
    native, expected = run_both(program.finish(), [np.zeros(4, np.float32)], machine=machine)[0]
    assert_equal(native, expected)
    np.testing.assert_array_equal(native, [3, 7, 11, 15])


@pytest.mark.parametrize("scale", [1, 2, 4, 8, 12, 24])
def test_addresses(scale: int) -> None:
    program = Program([1, 1])
    place = program.load(program.view(1)[0], INDEX)
    byte = program.at(program.view(0)[0], place, scale, constant=-4)
    program.store(program.number(-1.0, lane_type(float32, 0)), byte)
    output = np.zeros(32, np.float32)
    native, expected = run_both(program.finish(), [output, np.array([4], np.int64)])[0]
    assert_equal(native, expected)
    assert native[scale - 1] == -1


@pytest.mark.parametrize("machine", _MACHINES.values(), ids=_MACHINES)
@pytest.mark.parametrize("dtype", [int8, int16, float16, bfloat16], ids=str)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_narrowed_lanes_stored_under_a_fixed_mask(
    dtype: DType, count: int, machine: HostMachineInfo
) -> None:
    """LLVM 22 by itself writes 32 bits where one narrowed lane is admitted."""
    program = Program([1, 1])
    source, target = program.view(0)[0], program.view(1)[0]
    wide = float32 if dtype.is_float else int32
    loaded = program.load(source, VectorType(wide, 16))
    narrowed = program.cast(loaded, VectorType(dtype, 16))
    program.store(narrowed, target, program.lane_mask(program.number(count), 16))
    source_array = numbers(wide, 16)
    output = guarded(np.zeros(count, numpy_dtype(dtype)))
    kernel = load_kernel(program.finish(), described([source_array, output]), machine)
    kernel.call(source_array, as_passed(output))
    assert_equal(output, source_array[:count].astype(output.dtype))
    assert guards_intact(output)
