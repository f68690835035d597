"""Scalar operations: constants, one closed table of functions, casts.

They work on scalars at kernel level (index arithmetic, run-time scalars), on elements inside scalar
regions, and in Machine form on vectors of lanes: the same op, the operand types decide. All
operands of an `apply` have the same dtype but for the predicate of `where`. Meaning: design section
6 (Python floor division, wrapping integers, NaN-propagating maximum, casts that round to nearest
even and saturate from float to int).
"""

from __future__ import annotations

from tilenest.dialects.stages import EVERY
from tilenest.ir import (
    Operation,
    OwnEffects,
    attribute,
    operand,
    variadic,
)
from tilenest.records import record


@record
class ScalarFunction:
    """One entry of the table: `domain` lists the dtype kinds admitted ('b', 'i', 'u', 'f', 'x'),
    `result` is 'same' or 'bool'."""

    name: str
    arity: int
    domain: str
    result: str = "same"
    is_expensive: bool = False
    """A transcendental: not worth recomputing at several consumers."""


_NUMERIC = "iufx"
_ANY = "biufx"
_TABLE = (
    ScalarFunction("add", 2, _NUMERIC),
    ScalarFunction("sub", 2, _NUMERIC),
    ScalarFunction("mul", 2, _NUMERIC),
    ScalarFunction("div", 2, "f"),
    ScalarFunction("floordiv", 2, "iux"),
    ScalarFunction("mod", 2, "iux"),
    ScalarFunction("neg", 1, _NUMERIC),
    ScalarFunction("abs", 1, _NUMERIC),
    ScalarFunction("minimum", 2, _ANY),
    ScalarFunction("maximum", 2, _ANY),
    ScalarFunction("fmin", 2, "f"),  # a NaN operand is ignored
    ScalarFunction("fmax", 2, "f"),
    ScalarFunction("fma", 3, "f"),  # x * y + z rounded once
    ScalarFunction("eq", 2, _ANY, "bool"),
    ScalarFunction("ne", 2, _ANY, "bool"),
    ScalarFunction("lt", 2, _ANY, "bool"),
    ScalarFunction("le", 2, _ANY, "bool"),
    ScalarFunction("gt", 2, _ANY, "bool"),
    ScalarFunction("ge", 2, _ANY, "bool"),
    ScalarFunction("and", 2, "biux"),
    ScalarFunction("or", 2, "biux"),
    ScalarFunction("xor", 2, "biux"),
    ScalarFunction("not", 1, "biux"),
    ScalarFunction("shl", 2, "iux"),
    ScalarFunction("shr", 2, "iux"),  # arithmetic for signed types
    ScalarFunction("where", 3, _ANY),  # where(predicate: bool, a, b): the dtype is that of a and b
    ScalarFunction("sqrt", 1, "f"),
    ScalarFunction("rsqrt", 1, "f"),  # 1 / sqrt(x)
    ScalarFunction("floor", 1, "f"),
    ScalarFunction("ceil", 1, "f"),
    ScalarFunction("trunc", 1, "f"),
    ScalarFunction("rint", 1, "f"),  # halves to even
    ScalarFunction("exp", 1, "f", is_expensive=True),
    ScalarFunction("exp2", 1, "f", is_expensive=True),
    ScalarFunction("expm1", 1, "f", is_expensive=True),
    ScalarFunction("log", 1, "f", is_expensive=True),
    ScalarFunction("log2", 1, "f", is_expensive=True),
    ScalarFunction("log1p", 1, "f", is_expensive=True),
    ScalarFunction("tanh", 1, "f", is_expensive=True),
    ScalarFunction("erf", 1, "f", is_expensive=True),
    ScalarFunction("sin", 1, "f", is_expensive=True),
    ScalarFunction("cos", 1, "f", is_expensive=True),
)
SCALAR_FUNCTIONS: dict[str, ScalarFunction] = {entry.name: entry for entry in _TABLE}


class _Computation(Operation):
    """Elements in, elements out, and nothing else."""

    FORMS = EVERY
    IS_ELEMENTWISE = True

    def effects(self) -> OwnEffects:
        return ()


class Constant(_Computation):
    """A compile-time number of the result's dtype (a splat when the result is a vector)."""

    NAME = "scalar.constant"
    value = attribute(object, leading=True)
    """bool, int or float, already representable in the result's dtype"""


class Apply(_Computation):
    """`function(*arguments)` of the table; result dtype by the table's rule."""

    NAME = "scalar.apply"
    arguments = variadic()
    function = attribute(str, leading=True)


class Cast(_Computation):
    """Convert to the result's dtype: a rounding event that no pass removes."""

    NAME = "scalar.cast"
    value = operand()


class Bitcast(_Computation):
    """Reinterpret the bits as the result's dtype of the same width."""

    NAME = "scalar.bitcast"
    value = operand()
