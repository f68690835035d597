"""Reduction of large angles: x modulo pi/2 to full accuracy for every finite double.

In: a module. Out: the name of an internal function of it, from a vector of angles to their
remainders and quadrants, for `math_trig` to call where a lane is too large for its own reduction.
The idea is Payne's and Hanek's: x = m 2^e with m an integer of 53 bits; of the bits of 2/pi only
256 matter for (m 2^e 2/pi) mod 4, the higher ones give multiples of 4. They are one unaligned load
from a table, the product is one multiplication of wide integers. It runs lane by lane: such angles
are rare.
"""

import math

from tilenest.backends.llvm.text import FunctionText, ModuleText
from tilenest.backends.llvm.values import (
    DOUBLE,
    I64,
    LlvmType,
    Value,
    constant,
    llvm_type,
    poison,
)

# Two over pi times two to this power, rounded down.
_FRACTION_BITS = 1240
_TWO_OVER_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e0"
    "06492eea09d1921cfe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f4"
    "9c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d"
    "7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6babf0cfbc",
    16,
)
_TABLE_BYTES = 160
# A quarter of pi times two to the 64th, rounded down.
_QUARTER_PI = 0xC90FDAA22168C234
_WIDE = llvm_type("i256")
_SCALAR = "tilenest.reduce_angle"


def pair_type(kind: LlvmType) -> LlvmType:
    """The result for angles of type `kind`: remainders, and quadrants as integers of that width."""
    integer = kind.with_element(f"i{kind.bits}")
    return llvm_type(f"{{ {kind.text}, {integer.text} }}")


def large_angle_function(module: ModuleText, kind: LlvmType) -> str:
    """Name of the function for angles of type `kind`, written at the first call."""
    name = f"{_SCALAR}.{kind.suffix}"
    if not module.defines(name):
        if not module.defines(_SCALAR):
            _write_scalar(module)
        _write_lanes(module, name, kind)
    return name


def _write_lanes(module: ModuleText, name: str, kind: LlvmType) -> None:
    attributes = ("nounwind", "noinline", "cold")
    f = module.function(
        name, pair_type(kind), [(kind, "")], linkage="internal", attributes=attributes
    )
    remainders, quadrants = [], []
    for angle in f.to_lanes(f.parameters[0]):
        wide = angle if kind.bits == 64 else f.fpext(angle, "double")
        reduced = f.call(_SCALAR, pair_type(DOUBLE), [wide])
        remainder = f.extract_value(reduced, DOUBLE, 0)
        quadrant = f.extract_value(reduced, I64, 1)
        remainders.append(remainder if kind.bits == 64 else f.fptrunc(remainder, "float"))
        quadrants.append(quadrant if kind.bits == 64 else f.trunc(quadrant, "i32"))
    pair = poison(pair_type(kind))
    pair = f.insert_value(pair, f.from_lanes(remainders), 0)
    f.ret(f.insert_value(pair, f.from_lanes(quadrants), 1))


def _write_scalar(module: ModuleText) -> None:
    attributes = ("nounwind", "noinline", "cold")
    f = module.function(
        _SCALAR, pair_type(DOUBLE), [(DOUBLE, "")], linkage="internal", attributes=attributes
    )
    x = f.parameters[0]
    is_finite = f.fcmp("olt", f.fabs(x), math.inf)
    bits = f.bitcast(f.select(is_finite, x, 1.0), I64)
    product = _product_modulo_four(f, module, bits)
    quadrant = f.trunc(f.lshr(f.add(product, 1 << 253), 254), "i64")
    remainder = _fraction_to_angle(f, f.shl(product, 2))
    is_negative = f.icmp("slt", bits, 0)
    remainder = f.select(is_negative, f.fneg(remainder), remainder)
    quadrant = f.select(is_negative, f.sub(0, quadrant), quadrant)
    pair = f.insert_value(poison(pair_type(DOUBLE)), f.select(is_finite, remainder, math.nan), 0)
    f.ret(f.insert_value(pair, quadrant, 1))


def _product_modulo_four(f: FunctionText, module: ModuleText, bits: Value) -> Value:
    """(x 2/pi) mod 4 as a fraction of 4 in 256 bits."""
    table = module.constant_table(
        "tilenest.two_over_pi", "i8", list(_TWO_OVER_PI.to_bytes(_TABLE_BYTES, "little"))
    )
    mantissa = f.or_(f.and_(bits, (1 << 52) - 1), 1 << 52)
    exponent = f.sub(f.and_(f.lshr(bits, 52), 2047), 1075)
    # Place in the table of the lowest of the 256 bits whose highest has weight 2 in the product.
    lowest = f.sub(_FRACTION_BITS + 1 - 255, exponent)
    address = f.getelementptr("i8", table, f.lshr(f.add(lowest, 7), 3))
    window = f.load(_WIDE, address, align=1)
    product = f.mul(window, f.zext(mantissa, "i256"))
    # Rounding up to a byte left as many worthless bits at the top.
    return f.shl(product, f.zext(f.and_(f.sub(0, lowest), 7), "i256"))


def _fraction_to_angle(f: FunctionText, fraction: Value) -> Value:
    """pi/2 times a signed fraction of 2^256, rounded once."""
    magnitude = f.abs(fraction)
    zeros = f.count_leading_zeros(magnitude)
    leading = f.trunc(f.lshr(f.shl(magnitude, zeros), 192), "i64")
    wide = f.mul(f.zext(leading, "i128"), f.zext(constant(I64, _QUARTER_PI), "i128"))
    rounded = f.uitofp(f.trunc(f.lshr(wide, 64), "i64"), "double")
    scale = f.shl(f.sub(1023 - 63, f.trunc(zeros, "i64")), 52)
    angle = f.fmul(rounded, f.bitcast(scale, DOUBLE))
    return f.select(f.icmp("slt", fraction, 0), f.fneg(angle), angle)
