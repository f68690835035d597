"""Constants are exact, and every instruction method means what its name says when it runs."""

import ctypes
import math
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.unit.llvm.loops import Expansion, compile_loop
from tilenest.backends.llvm.object import compile_object, load_object
from tilenest.backends.llvm.text import FunctionText, ModuleText
from tilenest.backends.llvm.values import (
    DOUBLE,
    FLOAT,
    HALF,
    I1,
    I8,
    I32,
    I64,
    POINTER,
    Value,
    constant,
    llvm_type,
    round_to_float32,
    vector_constant,
    zero,
)


def bits_of(text: str) -> float:
    found: float = struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0]
    return found


@given(st.floats(allow_nan=False))
def test_float_constants_are_rounded_once(number: float) -> None:
    with np.errstate(over="ignore"):
        assert bits_of(constant(FLOAT, number).text) == float(np.float32(number))
        half = int(constant(HALF, number).text.removeprefix("0xH"), 16)
        assert half == np.float16(number).view(np.uint16)
    assert bits_of(constant(DOUBLE, number).text) == number


@given(st.integers(-(2**80), 2**80))
def test_long_integers_are_rounded_once(number: int) -> None:
    excess = max(abs(number).bit_length() - 24, 0)
    low = abs(number) >> excess
    rest = abs(number) - (low << excess)
    half = (1 << excess) >> 1
    if rest > half or (rest == half and excess and low & 1):
        low += 1
    assert round_to_float32(number) == math.copysign(low << excess, number)


@pytest.mark.parametrize("number", [0.0, -0.0, math.inf, -math.inf, math.nan, 1e300, 5e-324])
def test_special_constants(number: float) -> None:
    got = np.float32(bits_of(constant(FLOAT, number).text))
    with np.errstate(over="ignore"):
        want = np.float32(number)
    np.testing.assert_array_equal(got, want)
    assert np.signbit(got) == np.signbit(want)


def test_zeros_of_both_signs_stay_apart() -> None:
    assert constant(FLOAT, 0.0) != constant(FLOAT, -0.0)
    assert constant(FLOAT.with_lanes(4), 0.0) != constant(FLOAT.with_lanes(4), -0.0)


@pytest.mark.parametrize(
    ("number", "text"), [(255, "-1"), (-1, "-1"), (127, "127"), (128, "-128"), (256, "0")]
)
def test_integer_constants_wrap(number: int, text: str) -> None:
    assert constant(I8, number).text == text


def test_one_lane_is_a_scalar() -> None:
    assert llvm_type("float", 1).text == "float"
    assert llvm_type("float", 3).text == "<3 x float>"
    assert constant(I32.with_lanes(2), 7).text == "splat (i32 7)"
    assert I1.with_lanes(4).suffix == "v4i1" and POINTER.suffix == "p0"


def same(f: FunctionText, x: Value, y: Value) -> Value:
    return f.shuffle(x, y, [lane if lane % 2 else 8 + lane for lane in range(8)])


def reversed_lanes(f: FunctionText, x: Value) -> Value:
    return f.from_lanes(f.to_lanes(x)[::-1])


INTEGER_CASES: dict[str, tuple[Expansion, Any]] = {
    "and": (lambda f, x, y: f.and_(x, y), np.bitwise_and),
    "or": (lambda f, x, y: f.or_(x, y), np.bitwise_or),
    "xor": (lambda f, x, y: f.xor(x, y), np.bitwise_xor),
    "not": (lambda f, x, _: f.not_(x), lambda x, _: ~x),
    "smax": (lambda f, x, y: f.smax(x, y), np.maximum),
    "smin": (lambda f, x, y: f.smin(x, y), np.minimum),
    "umax": (lambda f, x, y: f.umax(x, y), lambda x, y: np.maximum(x.view("u4"), y.view("u4"))),
    "umin": (lambda f, x, y: f.umin(x, y), lambda x, y: np.minimum(x.view("u4"), y.view("u4"))),
    "abs": (lambda f, x, _: f.abs(x), lambda x, _: np.abs(x)),
    "number on the left": (lambda f, x, _: f.sub(5, x), lambda x, _: 5 - x),
    "select": (
        lambda f, x, y: f.select(f.icmp("slt", x, y), x, 3),
        lambda x, y: np.where(x < y, x, 3),
    ),
    "shuffle": (same, lambda x, y: np.where(np.arange(x.size) % 2, x, y)),
    "lanes": (lambda f, x, _: reversed_lanes(f, x), lambda x, _: x.reshape(-1, 8)[:, ::-1].ravel()),
    "splat": (
        lambda f, x, _: f.splat(f.extract_element(x, 3), 8),
        lambda x, _: np.repeat(x[3::8], 8),
    ),
    "sum": (
        lambda f, x, _: f.splat(f.vector_reduce("add", x), 8),
        lambda x, _: np.repeat(x.reshape(-1, 8).sum(1, dtype=np.int32), 8),
    ),
}


@pytest.mark.parametrize("name", INTEGER_CASES)
def test_integer_instructions(name: str) -> None:
    expansion, meaning = INTEGER_CASES[name]
    x, y = np.random.default_rng(0).integers(-(2**31), 2**31, (2, 64)).astype(np.int32)
    got = compile_loop(expansion, ["i32", "i32", "i32"], lanes=8)(x, y)
    np.testing.assert_array_equal(got, meaning(x, y).view(np.int32))


FLOAT_CASES: dict[str, tuple[Expansion, Any]] = {
    "fneg": (lambda f, x, _: f.fneg(x), lambda x, _: -x),
    "fdiv": (lambda f, x, y: f.fdiv(x, y), np.divide),
    "sqrt": (lambda f, x, _: f.sqrt(x), lambda x, _: np.sqrt(x)),
    "floor": (lambda f, x, _: f.floor(x), lambda x, _: np.floor(x)),
    "ceil": (lambda f, x, _: f.ceil(x), lambda x, _: np.ceil(x)),
    "truncate": (lambda f, x, _: f.truncate(x), lambda x, _: np.trunc(x)),
    "round_even": (lambda f, x, _: f.round_even(x), lambda x, _: np.rint(x)),
    "fabs": (lambda f, x, _: f.fabs(x), lambda x, _: np.abs(x)),
    "copysign": (lambda f, x, y: f.copysign(x, y), np.copysign),
    "maximum": (lambda f, x, y: f.maximum(x, y), lambda x, y: zero_aware(x, y, np.maximum)),
    "minimum": (lambda f, x, y: f.minimum(x, y), lambda x, y: zero_aware(x, y, np.minimum)),
}


def zero_aware(x: NDArray[Any], y: NDArray[Any], choose: Any) -> NDArray[Any]:
    """NumPy's maximum, but with -0 below +0."""
    chosen = choose(x, y)
    sign = choose(np.copysign(1, x), np.copysign(1, y))
    both_zero = (x == 0) & (y == 0)
    return np.asarray(np.where(both_zero, np.copysign(0.0, sign), chosen), x.dtype)


@pytest.mark.parametrize("element", ["float", "double", "half"])
@pytest.mark.parametrize("name", FLOAT_CASES)
def test_float_instructions(name: str, element: str) -> None:
    expansion, meaning = FLOAT_CASES[name]
    edges = [0.0, -0.0, 1.0, -1.5, 2.5, 0.5, math.inf, -math.inf, math.nan, 1e-7, 60000.0]
    dtype = {"float": np.float32, "double": np.float64, "half": np.float16}[element]
    x, y = (part.ravel().astype(dtype) for part in np.meshgrid(edges, edges))
    with np.errstate(all="ignore"):
        want = meaning(x, y)
    got = compile_loop(expansion, [element, element, element], lanes=8)(x, y)
    is_nan = np.isnan(want)
    np.testing.assert_array_equal(np.isnan(got), is_nan)
    bits = f"u{got.itemsize}"
    np.testing.assert_array_equal(got.view(bits)[~is_nan], want.view(bits)[~is_nan])


def test_fma_rounds_once() -> None:
    x = np.array([1 + 2.0**-12] * 8, np.float32)
    z = np.array([-1 - 2.0**-11] * 8, np.float32)
    loop = compile_loop(lambda f, a, c: f.fma(a, a, c), ["float", "float", "float"])
    np.testing.assert_array_equal(loop(x, z), np.full(8, 2.0**-24, np.float32))


def call(module: ModuleText, *arrays: NDArray[Any]) -> None:
    loaded = load_object(compile_object(module.render()), {})
    kinds = [ctypes.c_void_p] * len(arrays)
    function = ctypes.CFUNCTYPE(None, *kinds)(loaded.address("f"))
    function(*(array.ctypes.data for array in arrays))


def begin(pointers: int) -> tuple[ModuleText, FunctionText, list[Value]]:
    module = ModuleText()
    f = module.function("f", None, [(POINTER, "")] * pointers)
    return module, f, f.parameters


@pytest.mark.parametrize(("element", "dtype"), [("float", "f4"), ("i8", "i1"), ("half", "f2")])
def test_masked_memory_leaves_the_other_lanes_alone(element: str, dtype: str) -> None:
    module, f, (source, target) = begin(2)
    kind = llvm_type(element, 8)
    mask = f.icmp("slt", vector_constant("i32", range(8)), 5)
    align = np.dtype(dtype).itemsize
    loaded = f.masked_load(kind, source, mask, constant(kind, 7), align=align)
    everything = f.getelementptr(element, target, 8)
    f.store(loaded, everything, align=align)
    f.masked_store(loaded, target, mask, align=align)
    f.ret()
    given, out = np.arange(8).astype(dtype), np.full(16, 9).astype(dtype)
    call(module, given, out)
    np.testing.assert_array_equal(out, [0, 1, 2, 3, 4, 9, 9, 9, 0, 1, 2, 3, 4, 7, 7, 7])


def test_gather_and_scatter() -> None:
    module, f, (source, target) = begin(2)
    kind = FLOAT.with_lanes(4)
    mask = f.icmp("ne", vector_constant("i64", range(4)), 2)
    sources = f.getelementptr("float", source, vector_constant("i64", [6, 0, 1 << 40, 3]))
    values = f.masked_gather(kind, sources, mask, constant(kind, -1.0), align=4)
    targets = f.getelementptr("float", target, vector_constant("i64", [1, 3, 1 << 40, 0]))
    f.masked_scatter(values, targets, mask, align=4)
    f.store(values, f.getelementptr("float", target, 4), align=4)
    f.ret()
    given, out = np.arange(8, dtype=np.float32), np.full(8, 9, np.float32)
    call(module, given, out)
    np.testing.assert_array_equal(out, [3, 6, 9, 0, 6, 0, -1, 3])


def test_atomics_tables_and_strings() -> None:
    module, f, (out,) = begin(1)
    table = module.constant_table("table", "i64", [10, 20, 30])
    text, again = module.string("hi"), module.string("hi")
    assert text == again
    f.store(f.load(I64, f.getelementptr("i64", table, 2), align=8), out, align=8)
    second = f.getelementptr("i64", out, 1)
    f.store(f.zext(f.load(llvm_type("i16"), text, align=1), "i64"), second, align=8)
    third = f.getelementptr("i64", out, 2)
    old = f.atomicrmw("add", third, constant(I64, 5), "seq_cst")
    found, done = f.cmpxchg(third, f.add(old, 5), 100, "acq_rel", "monotonic")
    one, other, after = f.block("case"), f.block("case"), f.block("after")
    f.branch_if(done, one, other)
    f.begin(one)
    f.branch(after)
    f.begin(other)
    f.branch(after)
    f.begin(after)
    merged = f.phi(I64, (1, one), (2, other))
    f.store(f.add(f.mul(found, 10), merged.value), f.getelementptr("i64", out, 3), align=8)
    f.ret()
    array = np.array([0, 0, 1, 0], np.int64)
    call(module, array)
    np.testing.assert_array_equal(array, [30, int.from_bytes(b"hi", "little"), 100, 61])


def test_stack_memory_in_a_loop_does_not_grow() -> None:
    module, f, (out,) = begin(1)
    head, body, done = f.current, f.block("body"), f.block("done")
    f.branch(body)
    f.begin(body)
    turn = f.phi(I64, (0, head))
    place = f.alloca(I8, 4096, 64)
    f.store(turn.value, place, align=8)
    turn.add(f.add(f.load(I64, place, align=8), 1), body)
    f.branch_if(f.icmp("slt", turn.value, 100_000), body, done)
    f.begin(done)
    f.store(turn.value, out, align=8)
    f.ret()
    array = np.zeros(1, np.int64)
    call(module, array)
    assert array[0] == 100_000


def test_declarations_appear_once_and_not_for_what_is_defined() -> None:
    module = ModuleText()
    f = module.function("f", FLOAT, [(FLOAT, "")])
    first = f.call("helper", FLOAT, [f.sqrt(f.parameters[0])])
    f.ret(f.call("cosf", FLOAT, [f.sqrt(first)]))
    helper = module.function("helper", FLOAT, [(FLOAT, "")])
    helper.ret(helper.parameters[0])
    text = module.render()
    assert text.count("declare float @llvm.sqrt.f32(float)") == 1
    assert "declare float @helper" not in text
    assert "declare float @cosf(float)" in text
    assert module.defines("helper") and not module.defines("cosf")


def test_equal_modules_have_equal_text() -> None:
    def write() -> str:
        module, f, (out,) = begin(1)
        f.store(zero(FLOAT.with_lanes(4)), out, align=4)
        f.ret()
        return module.render()

    assert write() == write()


def test_bfloat16_has_no_llvm_type() -> None:
    """Its bits travel as i16; a constant of it is made from them."""
    one = int(np.array(1.0, ml_dtypes.bfloat16).view(np.uint16))
    assert constant(llvm_type("i16"), one).text == str(0x3F80)
