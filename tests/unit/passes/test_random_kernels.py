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
Step = Callable[[Any, Any, Any], Any]


def looped(root: Any, x: Any, y: Any, rows: Callable[[Any], Any]) -> Any:
    """Two states that hand their values to each other."""
    for i in root.serial(2):
        old = x
        x = y * 0.5 + rows(i.index())
        y = old
    return x + y


ELEMENTWISE: dict[str, Step] = {
    "exp": lambda x, _y, _n: tn.exp(x * 0.25),
    "scale": lambda x, _y, _n: x * 0.5,
    "add": lambda x, y, _n: x + y,
    "sub": lambda x, y, _n: x - y,
    "max": lambda x, y, _n: tn.maximum(x, y),
    "less its sum": lambda x, y, n: y - tn.reduce(x, n, tn.add),
    "less its maximum": lambda x, y, n: y - tn.reduce(x, n, tn.maximum),
}
steps = st.tuples(
    st.sampled_from(["load", "store", "slice", "loop", *ELEMENTWISE]),
    st.integers(0, 20),
    st.integers(0, 20),
)


def random_kernel(X: Any, Y: Any, *, program: Any) -> None:
    """Values are tiles over (m, n); each step makes one from earlier ones, or stores one."""
    M, N = X.shape
    m, n = tn.axis("m", M), tn.axis("n", N)
    for root in tn.parallel(1):
        values = [X[(0, 0), (m, n)]]
        for name, a, b in program:
            x, y = values[a % len(values)], values[b % len(values)]
            origin = (b % 3 - 1, a % 3 - 1)
            if name in ELEMENTWISE:
                values.append(ELEMENTWISE[name](x, y, n if b % 2 else m))
            elif name == "load":
                values.append((X if a % 2 else Y)[origin, (m, n)])
            elif name == "slice":
                values.append(x[origin, (m, n)])
            elif name == "loop":
                values.append(looped(root, x, y, lambda i: X[(i, 0), (m, n)]))
            else:
                Y(origin, (m, n)).store(x)
        Y((0, 0), (m, n)).store(values[-1])


@given(program=st.lists(steps, min_size=1, max_size=8), aliased=st.booleans(), wide=st.booleans())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs_keep_their_meaning(program: Program, aliased: bool, wide: bool) -> None:
    shape = (3, 20) if wide else (4, 5)
    x: Array = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    y: Array = np.full(shape, 0.5, np.float32)
    run_stepwise(random_kernel, [x, x] if aliased else [x, y], {"program": tuple(program)})
