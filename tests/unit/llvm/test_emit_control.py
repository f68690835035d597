"""Loops with carried values, branches, lanes, launches: native code against the interpreter."""

import ctypes

import numpy as np
import pytest

from tests.unit.llvm.loops import machines
from tests.unit.llvm.programs import (
    Program,
    assert_equal,
    described,
    guarded,
    guards_intact,
    lane_type,
    load_kernel,
    numpy_dtype,
    run_both,
    set_threads,
)
from tilenest.backends.llvm import (
    RAN,
    HostMachineInfo,
    LoadedObject,
    compile_object,
    host_machine,
    load_object,
)
from tilenest.backends.llvm.text import ModuleText
from tilenest.backends.llvm.values import I32
from tilenest.ir import (
    DTYPES,
    INDEX,
    DType,
    Module,
    Value,
    VectorType,
    bool_,
    float32,
    float64,
    index,
    int32,
)

_MACHINES = machines()
_STORED = [dtype for dtype in DTYPES if dtype is not index]


@pytest.mark.parametrize(
    ("lower", "upper", "step"),
    [(0, 0, 1), (0, 1, 1), (0, 7, 3), (5, 5, 2), (6, 2, 1), (-3, 4, 2), (2, 4, 9)],
)
@pytest.mark.parametrize("is_static", [False, True])
def test_loops_carry_states(lower: int, upper: int, step: int, is_static: bool) -> None:
    """A Fibonacci pair and the last index, from limits known now or at run time."""
    program = Program([1], [index, index, index])
    limits = [program.number(n) for n in (lower, upper, step)] if is_static else program.scalars
    first, second = program.number(1), program.number(1)

    def body(place: Value, a: Value, b: Value, _: Value) -> list[Value]:
        return [b, program.apply("add", a, b), place]

    lowest, highest, stride = limits
    initial = [first, second, program.number(-9)]
    results = program.loop(lowest, highest, stride, body, initial)
    for place, value in enumerate(results):
        program.store(value, program.at(program.view(0)[0], program.number(place), 8))
    numbers = [(n, index) for n in (lower, upper, step)]
    assert_equal(*run_both(program.finish(), [np.zeros(3, np.int64)], numbers)[0])


def test_nested_loops_with_branches_and_vectors() -> None:
    """Rows of 5 vectors; even rows are added, odd ones subtracted, into two carried vectors."""
    program = Program([2, 1])
    (source, (rows, columns), (stride, _)) = program.view(0)
    kind = VectorType(float32, 8)
    zero, one, eight = (program.number(n) for n in (0, 1, 8))
    two = program.number(2)

    def row(i: Value, total: Value, largest: Value) -> list[Value]:
        start = program.at(source, program.apply("mul", i, stride), 4)
        is_even = program.compare("eq", program.apply("mod", i, two), zero)

        def column(j: Value, total: Value, largest: Value) -> list[Value]:
            x = program.load(program.at(start, j, 4), kind)
            (signed,) = program.branch(
                is_even, lambda: [x], lambda: [program.apply("neg", x)], [kind]
            )
            return [
                program.apply("add", total, signed),
                program.apply("maximum", largest, x),
            ]

        return program.loop(zero, columns, eight, column, [total, largest])

    initial = [program.number(0.0, kind), program.number(float("-inf"), kind)]
    total, largest = program.loop(zero, rows, one, row, initial)
    program.store(total, program.view(1)[0])
    program.store(largest, program.at(program.view(1)[0], eight, 4))
    source_array = np.random.default_rng(0).normal(size=(5, 40)).astype(np.float32)
    assert_equal(*run_both(program.finish(), [source_array, np.zeros(16, np.float32)])[1])


@pytest.mark.parametrize("condition", [False, True])
def test_branches_write(condition: bool) -> None:
    program = Program([1], [bool_])
    target, _, _ = program.view(0)
    three, four = (program.number(n, lane_type(int32, 0)) for n in (3, 4))

    def then() -> list[Value]:
        program.store(three, target)
        return []

    program.branch(program.scalars[0], then, list)
    (chosen,) = program.branch(
        program.scalars[0], lambda: [three], lambda: [four], [lane_type(int32, 0)]
    )
    program.store(chosen, program.at(target, program.number(1), 4))
    arrays = [np.zeros(2, np.int32)]
    assert_equal(*run_both(program.finish(), arrays, [(condition, bool_)])[0])


@pytest.mark.parametrize("machine", _MACHINES.values(), ids=_MACHINES)
@pytest.mark.parametrize("dtype", _STORED, ids=str)
@pytest.mark.parametrize("lanes", [1, 2, 16])
def test_lanes_and_splats(dtype: DType, lanes: int, machine: HostMachineInfo) -> None:
    program = Program([1, 1])
    source, _, _ = program.view(0)
    if not dtype.is_bool:
        program.store(program.lanes(dtype, lanes), program.view(1)[0])
    scalar = program.load(source, lane_type(dtype, 0))
    target = program.at(program.view(1)[0], program.number(lanes), dtype.bytes)
    program.store(program.splat(scalar, lanes), target)
    arrays = [np.ones(1, numpy_dtype(dtype)), np.zeros(2 * lanes, numpy_dtype(dtype))]
    assert_equal(*run_both(program.finish(), arrays, machine=machine)[1])


@pytest.mark.parametrize("machine", _MACHINES.values(), ids=_MACHINES)
@pytest.mark.parametrize("lanes", [2, 8, 64])
@pytest.mark.parametrize(
    ("function", "dtype"),
    [
        *((name, dtype) for name in ("add", "maximum") for dtype in _STORED if dtype.bits > 1),
        ("mul", float64),
        ("minimum", float32),
        ("xor", int32),
        ("and", bool_),
        ("or", bool_),
    ],
    ids=str,
)
def test_reductions_over_lanes(
    function: str, dtype: DType, lanes: int, machine: HostMachineInfo
) -> None:
    """Float sums in exactly the documented order."""
    program = Program([1, 1])
    value = program.load(program.view(0)[0], lane_type(dtype, lanes))
    program.store(program.reduce(function, value), program.view(1)[0])
    rng = np.random.default_rng(lanes)
    source = (rng.normal(0, 3, lanes) if dtype.is_float else rng.integers(0, 9, lanes)).astype(
        numpy_dtype(dtype)
    )
    arrays = [source, np.zeros(1, numpy_dtype(dtype))]
    assert_equal(*run_both(program.finish(), arrays, machine=machine)[1])


def row_sums(cost_ns: float) -> Module:
    """out[i] = scale * sum(in[i, :]), through scratch memory; one launch over the rows."""
    program = Program([2, 1], [float32])
    (source, (rows, columns), (stride, _)) = program.view(0)
    target, _, _ = program.view(1)
    captured = [source, columns, stride, target, program.scalars[0]]
    with program.launch(rows, captured, scratch_bytes=4, cost_ns=cost_ns) as arguments:
        begin, end, scratch, source, columns, stride, target, scale = arguments
        zero, one = program.number(0), program.number(1)
        nothing = program.number(0.0, lane_type(float32, 0))

        def row(i: Value) -> list[Value]:
            start = program.at(source, program.apply("mul", i, stride), 4)

            def column(j: Value, total: Value) -> list[Value]:
                x = program.load(program.at(start, j, 4), lane_type(float32, 0))
                return [program.apply("add", total, x)]

            (total,) = program.loop(zero, columns, one, column, [nothing])
            program.store(total, scratch)
            read = program.load(scratch, lane_type(float32, 0))
            program.store(program.apply("mul", read, scale), program.at(target, i, 4))
            return []

        program.loop(begin, end, one, row)
    return program.finish()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("cost_ns", [0.0, 1.0, 1e3, 1e6])
def test_launches_cover_every_item(threads: int, cost_ns: float) -> None:
    module = row_sums(cost_ns)
    arrays = [np.zeros((2, 3), np.float32), np.zeros(2, np.float32)]
    kernel = load_kernel(module, described(arrays, [float32]))
    set_threads(threads)
    try:
        for rows in (0, 1, 2, 5, 300, 5000):
            source = np.random.default_rng(rows).normal(size=(rows, 3)).astype(np.float32)
            native = guarded(np.full(rows, np.nan, np.float32))
            assert kernel.call(source, native, 2.5) == RAN
            totals = (source[:, 0] + source[:, 1]) + source[:, 2]
            assert_equal(native, totals * np.float32(2.5))
            assert guards_intact(native)
    finally:
        set_threads(1)


def test_launches_mean_what_the_interpreter_says() -> None:
    source = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    arrays = [source, np.zeros(5, np.float32)]
    assert_equal(*run_both(row_sums(1e6), arrays, [(2.5, float32)])[1])


def test_captured_values_of_every_dtype() -> None:
    program = Program([1] * len(_STORED), _STORED)
    pointers = [program.view(place)[0] for place in range(len(_STORED))]
    captured = [value for pair in zip(pointers, program.scalars, strict=True) for value in pair]
    with program.launch(program.number(1), captured, cost_ns=1.0) as (*_, first, last):
        assert first is not last
        body = program.builder.block.arguments[3:]
        for pointer, value in zip(body[::2], body[1::2], strict=True):
            program.store(value, pointer)
    arrays = [np.zeros(1, numpy_dtype(dtype)) for dtype in _STORED]
    numbers = [(True if dtype.is_bool else 1.5 if dtype.is_float else 3) for dtype in _STORED]
    scalars = list(zip(numbers, _STORED, strict=True))
    for native, expected in run_both(program.finish(), arrays, scalars):
        assert_equal(native, expected)
        assert native[0] == expected[0] != 0


def test_scratch_of_the_main_function_is_aligned_and_its_own() -> None:
    program = Program([1])
    scratch = program.main.arguments[-1]
    program.main.attributes["scratch_bytes"] = 1 << 20
    last = program.at(scratch, program.number((1 << 20) - 64), 1)
    lanes = program.lanes(float32, 16)
    program.store(lanes, last)
    program.store(program.load(last, VectorType(float32, 16)), program.view(0)[0])
    assert_equal(*run_both(program.finish(), [np.zeros(16, np.float32)])[0])


def test_index_arguments_reach_the_function() -> None:
    program = Program([3])
    pointer, extents, strides = program.view(0)
    for place, fact in enumerate([*extents, *strides]):
        program.store(fact, program.at(pointer, program.number(place), 8))
    array = np.zeros((2, 3, 4), np.int64)
    native, expected = run_both(program.finish(), [array])[0]
    assert_equal(native, expected)
    np.testing.assert_array_equal(native.reshape(-1)[:6], [2, 3, 4, 12, 4, 1])
    assert program.main.arguments[1].type is INDEX


_FLUSHING = 0x9FC0


def float_control() -> LoadedObject:
    """`exchange(word)` puts a control word in force and gives the one before."""
    machine = host_machine()
    module = ModuleText(triple=machine.triple, data_layout=machine.data_layout)
    f = module.function("exchange", I32, [(I32, "")])
    before, after = f.alloca(I32), f.alloca(I32)
    f.store(f.parameters[0], after)
    f.intrinsic("llvm.x86.sse.stmxcsr", None, [before])
    f.intrinsic("llvm.x86.sse.ldmxcsr", None, [after])
    f.ret(f.load(I32, before))
    return load_object(compile_object(module.render()), {})


@pytest.mark.skipif(
    not host_machine().triple.startswith("x86_64"), reason="the control word of x86 processors"
)
def test_a_caller_that_flushes_subnormal_numbers_changes_nothing() -> None:
    program = Program([1])
    target, _, _ = program.view(0)
    x = program.load(target, lane_type(float32, 0))
    program.store(program.apply("add", x, x), target)
    array = np.array([2.0**-140], np.float32)
    kernel = load_kernel(program.finish(), described([array]))
    control = float_control()
    exchange = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32)(control.address("exchange"))
    usual = exchange(_FLUSHING)
    try:
        status = kernel.call(array)
    finally:
        kept = exchange(usual)
    assert status == RAN
    assert kept & ~0x3F == _FLUSHING & ~0x3F
    assert array[0] == 2.0**-139
