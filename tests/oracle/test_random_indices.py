"""Random index arithmetic near the ends of 31, 63 and 64 bits, against the interpreter.

What an index wraps to decides which elements an access reaches. The interpreter computes it with
NumPy's 64-bit integers; machine code has to reach the same elements, and none around the arrays.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import Array

CONSTANTS = (-(2**63), -1, 1, 2, 3, 5, 7, 16, 2**31 - 1, 2**31, 2**48, 2**59, 2**60, 2**61, 2**62)
DIVISORS = (2, 3, 7, 16, 2**31, 2**59, 2**60, 2**62)
LEAVES = ("b.index()", "c.index()", "A.extent(0)", "n", "m")
SCALARS = ((0, 1), (5, 8), (-3, -(2**63)), (2**62, 2**60), (16, 1), (2**63 - 1, 8))
SIZE, AROUND = 16, 64
# Those of the first kind write to an instance's own part, the others anywhere.
OWN = (
    "Y.at(b.index()).store(A.at({at}).load())",
    "Y.at(b.index()).store(A.at({at}).load(other=0.5))",
    "Y(b.index() * 4, x).store(A[{at}, x])",
    "Y(b.index() * 4, x).store(A({at}, x, mask=tn.iota(x) < {other}).load())",
    "Y(b.index() * 4, x).store(A.slice({at}, 8)[1, x])",
    "Y.at(b.index()).store(A.slice(0, 8, 2).at({at}).load())",
    "Y.at(b.index()).store(A.slice({at}, 6).slice(1, 4).at(c.index()).load())",
)
ANYWHERE = (
    "Y.at({at}).store(A.at(b.index()).load())",
    "Y({at}, x).store(A[b.index(), x])",
    "Y.slice({at}, 4)(0, x).store(A[c.index(), x])",
    "Y.at({at}).atomic_add(A.at({other}).load())",
    "Y({at}, x).atomic_max(A[b.index(), x])",
)


class Writer:
    """The source of one kernel."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def source(self) -> str:
        choose = self.random.choice
        nest, accesses = choose((("parallel", OWN), ("serial", ANYWHERE)))
        at, other = self.expression(choose((1, 2, 3))), self.expression(1)
        return "\n".join(
            [
                "import tilenest as tn",
                "",
                "@tn.kernel",
                "def kernel(A, Y, n, m):",
                "    x = tn.axis('x', 4)",
                f"    for b in tn.{nest}({choose((3, 4, 16))}):",
                f"        for c in b.serial({choose(('A.extent(0)', '4'))}):",
                f"            {choose(accesses).format(at=at, other=other)}",
                "",
            ]
        )

    def expression(self, depth: int) -> str:
        choose = self.random.choice
        if depth == 0 or self.random.random() < 0.15:
            return choose((*LEAVES, str(choose(CONSTANTS))))
        one, other = self.expression(depth - 1), self.expression(depth - 1)
        match choose(("+", "-", "*", "*", "//", "%", "minimum", "maximum", "neg")):
            case "neg":
                return f"(0 - {one})"
            case "minimum" | "maximum" as name:
                return f"tn.{name}({one}, {other})"
            case "//" | "%" as sign if self.random.random() < 0.8:
                return f"({one} {sign} {choose(DIVISORS)})"
            case sign:
                return f"({one} {sign} {other})"


def load(source: str, path: Path) -> Any:
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def outcome(kernel: Any, target: str, scalars: tuple[int, int]) -> Array | str:
    """The output with what lies around it, or how the kernel is refused."""
    source = np.full(SIZE + 2 * AROUND, np.nan, np.float32)
    source[AROUND:-AROUND] = np.arange(SIZE) + 1
    guarded = np.full(SIZE + 2 * AROUND, -7, np.float32)
    arrays = source[AROUND:-AROUND], guarded[AROUND:-AROUND]
    before = source.copy()
    try:
        kernel.compile(*arrays, *scalars, target=target)(*arrays, *scalars)
    except tn.TileError as error:
        return type(error).__name__
    np.testing.assert_array_equal(source, before)
    np.testing.assert_array_equal(guarded[:AROUND], -7)
    np.testing.assert_array_equal(guarded[-AROUND:], -7)
    return guarded


def judge(seed: int, folder: Path) -> bool:
    """Whether the kernel of a seed runs; on both targets it does the same."""
    source = Writer(seed).source()
    kernel = load(source, folder / f"kernel_{seed}.py")
    scalars = random.Random(seed).choice(SCALARS)
    expected, found = (outcome(kernel, target, scalars) for target in ("interpret", "cpu"))
    np.testing.assert_array_equal(expected, found, err_msg=f"{source}{scalars}")
    return not isinstance(expected, str)


@pytest.mark.parametrize("start", range(0, 60, 20))
def test_random_indices(start: int, tmp_path: Path) -> None:
    ran = [judge(seed, tmp_path) for seed in range(start, start + 20)]
    assert sum(ran) > 10


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 3000, 100))
def test_many_random_indices(start: int, tmp_path: Path) -> None:
    ran = [judge(seed, tmp_path) for seed in range(start, start + 100)]
    assert sum(ran) > 50
