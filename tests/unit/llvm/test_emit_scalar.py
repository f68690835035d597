"""Every scalar function, cast and constant, on scalars and lanes of every dtype."""

import itertools

import numpy as np
import pytest

from tests.unit.llvm.loops import machines
from tests.unit.llvm.programs import (
    Array,
    Program,
    assert_equal,
    lane_type,
    numpy_dtype,
    run_both,
)
from tilenest.backends.llvm.emit import EMITTERS, FACILITIES, refuse_foreign
from tilenest.backends.llvm.emit_scalar import FUNCTIONS
from tilenest.dialects import FORMS, SCALAR_FUNCTIONS, Bitcast, registry
from tilenest.errors import TargetError
from tilenest.ir import (
    DTYPES,
    DType,
    Module,
    Operation,
    Value,
    bfloat16,
    bool_,
    float32,
    index,
    int32,
    parse_module,
)

_STORED = [dtype for dtype in DTYPES if dtype is not index]
_INEXACT = {"exp", "exp2", "expm1", "log", "log2", "log1p", "tanh", "erf", "sin", "cos", "rsqrt"}
_LANES = 8
_SIZE = 64


def test_every_machine_operation_has_an_emitter_or_needs_what_the_target_lacks() -> None:
    wanted = {op for op in FORMS["machine"].operations if not op.TERMINATOR}
    refused = {op for op in wanted if not FACILITIES.issuperset(op.NEEDS)}
    assert set(EMITTERS) == wanted - refused
    assert not refused
    assert {need for op in wanted - refused for need in op.NEEDS} == FACILITIES


def test_an_operation_that_the_target_lacks_is_refused() -> None:
    module = parse_module(
        """
        module "machine"
        func @f(%x: f32) {
          %y = atom.call "some.atom"(%x) : f32
          func.return
        }
        """,
        registry(),
    )
    with pytest.raises(TargetError, match=r"atom\.call needs the atom 'some\.atom'") as caught:
        refuse_foreign(module)
    assert caught.value.remedy is not None and "interpret" in caught.value.remedy


def test_every_scalar_function_has_an_entry_for_every_kind_it_admits() -> None:
    wanted = {
        (name, "i" if kind == "x" else kind)
        for name, function in SCALAR_FUNCTIONS.items()
        for kind in function.domain
    }
    assert set(FUNCTIONS) == wanted


def test_all_emitters_are_of_operations() -> None:
    assert all(issubclass(op, Operation) for op in EMITTERS)


def elementwise(function: str, dtypes: list[DType], result: DType, lanes: int) -> Module:
    """out[i] = function(in0[i], in1[i], ...), `lanes` at a time (0: one scalar)."""
    program = Program([1] * (len(dtypes) + 1))
    step = program.number(max(lanes, 1))
    _, (extent,), _ = program.view(len(dtypes))

    def body(place: Value) -> list[Value]:
        operands = [
            program.load(
                program.at(program.view(i)[0], place, dtype.bytes), lane_type(dtype, lanes)
            )
            for i, dtype in enumerate(dtypes)
        ]
        value = program.apply(function, *operands, type_=lane_type(result, lanes))
        target = program.at(program.view(len(dtypes))[0], place, result.bytes)
        program.store(value, target)
        return []

    program.loop(program.number(0), extent, step, body)
    return program.finish()


def samples(dtype: DType, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    kind = numpy_dtype(dtype)
    if dtype.is_bool:
        return rng.integers(0, 2, _SIZE).astype(np.bool_)
    if dtype.is_float:
        special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5, -3.5, 1e-3, 7.25]
        numbers = np.concatenate([special, rng.normal(0, 3, _SIZE - len(special))])
        return rng.permutation(numbers).astype(kind)
    limits = np.iinfo(kind)
    edges = [limits.min, limits.max, 0, 1, 2, 3, limits.max - 1, limits.min + 1]
    small = rng.integers(-9 if dtype.is_signed else 0, 40, _SIZE // 2)
    wide = rng.integers(limits.min, limits.max, _SIZE - len(edges) - len(small), kind)
    values = np.concatenate([np.array(edges, kind), small.astype(kind), wide.astype(kind)])
    return rng.permutation(values)


def cases() -> list[tuple[str, DType]]:
    return [
        (name, dtype)
        for name, function in SCALAR_FUNCTIONS.items()
        for dtype in _STORED
        if dtype.kind in function.domain
    ]


@pytest.mark.parametrize(("name", "dtype"), cases(), ids=str)
def test_functions_on_lanes(name: str, dtype: DType) -> None:
    check_function(name, dtype, _LANES, "host")


@pytest.mark.parametrize("machine", machines())
@pytest.mark.parametrize(
    ("name", "dtype"),
    [case for i, case in enumerate(cases()) if i % 7 == 0],
    ids=str,
)
def test_functions_on_scalars_and_other_machines(name: str, dtype: DType, machine: str) -> None:
    check_function(name, dtype, 0, machine)
    check_function(name, dtype, 16, machine)


def check_function(name: str, dtype: DType, lanes: int, machine: str) -> None:
    function = SCALAR_FUNCTIONS[name]
    dtypes = [dtype] * function.arity
    if name == "where":
        dtypes[0] = bool_
    result = bool_ if function.result == "bool" else dtype
    module = elementwise(name, dtypes, result, lanes)
    inputs = [samples(kind, seed) for seed, kind in enumerate(dtypes)]
    output = np.zeros(_SIZE, numpy_dtype(result))
    *_, (native, expected) = run_both(module, [*inputs, output], machine=machines()[machine])
    if name not in _INEXACT:
        assert_equal(native, expected)
        return
    number = ~np.isnan(expected)
    np.testing.assert_array_equal(~np.isnan(native), number)
    if dtype.bits > 16:
        np.testing.assert_array_max_ulp(native[number], expected[number], maxulp=3)
    else:
        assert_neighbours(native[number], expected[number])


@pytest.mark.parametrize("lanes", [0, 8])
def test_a_fused_multiply_add_of_half_precision_rounds_once(lanes: int) -> None:
    """The product lies midway between two bfloat16 numbers; an addend far below any double's last
    bit decides."""
    module = elementwise("fma", [bfloat16] * 3, bfloat16, lanes)
    kind = numpy_dtype(bfloat16)
    x, y = np.full(8, 1 + 2.0**-7, kind), np.full(8, 1.5, kind)
    z = np.array([-(2.0**-60), 2.0**-60, 0, -(2.0**-100)] * 2, kind)
    native, oracle = run_both(module, [x, y, z, np.zeros(8, kind)])[3]
    assert_equal(native, oracle)
    np.testing.assert_array_equal(native.astype(np.float64) * 128, [193, 194, 194, 193] * 2)


def assert_neighbours(native: Array, expected: Array) -> None:
    """At most one step of a 16 bit float apart."""
    one, other = (array.view(np.int16).astype(np.int32) for array in (native, expected))
    zero = (native == 0) & (expected == 0)
    assert (np.abs(one - other)[~zero] <= 1).all()


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("source", _STORED, ids=str)
def test_casts(source: DType, lanes: int) -> None:
    program = Program([1] * (len(_STORED) + 1))
    _, (extent,), _ = program.view(0)

    def body(place: Value) -> list[Value]:
        value = program.load(
            program.at(program.view(0)[0], place, source.bytes), lane_type(source, lanes)
        )
        for i, target in enumerate(_STORED):
            if target is not source:
                pointer = program.at(program.view(i + 1)[0], place, target.bytes)
                program.store(program.cast(value, lane_type(target, lanes)), pointer)
        return []

    program.loop(program.number(0), extent, program.number(max(lanes, 1)), body)
    arrays = [np.zeros(_SIZE, numpy_dtype(target)) for target in _STORED]
    for native, expected in run_both(program.finish(), [samples(source, 3), *arrays]):
        assert_equal(native, expected)


@pytest.mark.parametrize(("dtype", "other"), [(float32, int32), (int32, float32)], ids=str)
def test_bitcasts(dtype: DType, other: DType) -> None:
    program = Program([1, 1])
    value = program.load(program.view(0)[0], lane_type(dtype, 8))
    bits = program.op(Bitcast(value=value, result_types=[lane_type(other, 8)]))
    program.store(bits, program.view(1)[0])
    source = np.arange(8).astype(numpy_dtype(dtype))
    output = np.zeros(8, numpy_dtype(other))
    assert_equal(*run_both(program.finish(), [source, output])[1])


@pytest.mark.parametrize("dtype", _STORED, ids=str)
def test_constants(dtype: DType) -> None:
    numbers: list[bool | int | float] = [1]
    if dtype.is_float:
        numbers = [1.1, -0.0, float("inf"), float("nan"), 3]
    elif not dtype.is_bool:
        limits = np.iinfo(numpy_dtype(dtype))
        numbers = [int(limits.min), int(limits.max)]
    program = Program([1])
    pointer = program.view(0)[0]
    for place, (number, lanes) in enumerate(itertools.product(numbers, [0, 4])):
        constant = program.number(number, lane_type(dtype, lanes))
        program.store(constant, program.at(pointer, program.number(4 * place), dtype.bytes))
    output = np.zeros(8 * len(numbers), numpy_dtype(dtype))
    assert_equal(*run_both(program.finish(), [output])[0])


@pytest.mark.parametrize("function", ["floordiv", "mod"])
@pytest.mark.parametrize("divisor", [1, 2, 3, 8, 1 << 40, -4, 0])
def test_an_index_divided_by_a_constant(function: str, divisor: int) -> None:
    program = Program([1, 1])
    (extent,) = program.view(0)[1]
    by = program.number(divisor)

    def body(place: Value) -> list[Value]:
        value = program.load(program.at(program.view(0)[0], place, 8), lane_type(index, 0))
        result = program.apply(function, value, by)
        program.store(result, program.at(program.view(1)[0], place, 8))
        return []

    program.loop(program.number(0), extent, program.number(1), body)
    source = np.array([0, 1, -1, 7, -7, 8, -8, 1 << 50, -(1 << 50) - 3], np.int64)
    assert_equal(*run_both(program.finish(), [source, np.zeros_like(source)])[1])
