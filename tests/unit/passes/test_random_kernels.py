"""Kernels nobody thought of: random tile programs keep their meaning through every step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.passes.stepwise import Array, run_stepwise
from tilenest import language

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

Program = list[tuple[str, int, int]]
UNARY: dict[str, Callable[[Any], Any]] = {
    "exp": lambda x: tn.exp(x * 0.25),
    "scale": lambda x: x * 0.5,
    "abs": lambda x: tn.abs(x),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "max": lambda x, y: tn.maximum(x, y),
}
steps = st.tuples(
    st.sampled_from(["load", "store", "reduce", "slice", "loop", *UNARY, *BINARY]),
    st.integers(0, 20),
    st.integers(0, 20),
)


def interpret_program(X: Any, Y: Any, *, program: Any) -> None:
    """Values are tiles over (m, n); each step makes one from earlier ones, or stores one."""
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for root in tn.parallel(1):
        values = [X[(0, 0), (m, n)]]
        for name, a, b in program:
            x, y = values[a % len(values)], values[b % len(values)]
            if name == "load":
                values.append((X if a % 2 else Y)[(b % 3 - 1, a % 3 - 1), (m, n)])
            if name == "store":
                Y((b % 3 - 1, a % 3 - 1), (m, n)).store(x)
            if name == "reduce":
                total = tn.reduce(x, n if b % 2 else m, tn.add if a % 2 else tn.maximum)
                values.append(y - total)
            if name == "slice":
                values.append(x[(b % 3 - 1, a % 3 - 1), (m, n)])
            if name == "loop":
                for i in root.serial(2):
                    old = x
                    x = y * 0.5 + X[(i.index(), 0), (m, n)]
                    y = old
                values.append(x + y)
            if name in UNARY:
                values.append(UNARY[name](x))
            if name in BINARY:
                values.append(BINARY[name](x, y))
        Y((0, 0), (m, n)).store(values[-1])


@given(program=st.lists(steps, min_size=1, max_size=8), aliased=st.booleans(), wide=st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs_keep_their_meaning(program: Program, aliased: bool, wide: bool) -> None:
    shape = (3, 20) if wide else (4, 5)
    x: Array = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    y: Array = np.full(shape, 0.5, np.float32)
    run_stepwise(interpret_program, [x, x] if aliased else [x, y], {"program": tuple(program)})
