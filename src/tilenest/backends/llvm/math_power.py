"""rsqrt in registers, float and double, any lane count, no branches.

In: the function being written and an operand. Out: the operand holding the result. Both steps are
instructions; the processor's own estimate is neither exact enough nor the same everywhere.
"""

from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import Value


def rsqrt(f: FunctionText, x: Value) -> Value:
    """1 / sqrt(x)."""
    return f.fdiv(1.0, f.sqrt(x))
