"""Run-time numbers in the maps of views and of reindexed tiles, as large as 64 bits hold.

A map computes with whole numbers: what wraps on the way, in machine code, must not move a
coordinate. The judge evaluates the formula with Python's integers.
"""

from __future__ import annotations

import importlib.util
import itertools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.oracle.arrays import Array
from tilenest.ir import LARGEST_EXTENT

Formula = Callable[[Any, Any, Any], Any]
LOW, HIGH = -(2**63), 2**63 - 1
PAIRS = (
    (5, 3),
    (7, HIGH),
    (HIGH, 7),
    (LOW, 7),
    (2**60, 2**60 - 1),
    (2**62, 2**62),
    (HIGH, HIGH - 2),
    (LOW, LOW + 2),
    (HIGH, LOW),
    (LOW, HIGH),
    (2**41, 3),
    (-3, 2),
)
FORMULAS: dict[str, Formula] = {
    "one": lambda i, n, _: i + n,
    "difference": lambda i, n, m: i + n - m,
    "sum": lambda i, n, m: i + n + m,
    "product": lambda i, n, _: i * n,
    "remainder": lambda i, n, _: (i * 3 + n) % 7,
    "quotient": lambda i, n, _: (i + n) // 3,
    "remainder of a product": lambda i, n, _: (i * n) % 11,
    "remainder of a difference": lambda i, n, m: (i * 3 + n - m) % 7,
    "nested": lambda i, n, _: ((i + n) // 3 + i) % 5,
    "quotients apart": lambda i, n, m: (i + n) // 3 - (i + m) // 3,
    "two remainders": lambda i, n, m: (i + n) % 5 + (i + m) % 4,
    "large divisors": lambda i, n, m: (i + n) % 2**59 + (i - m) // 2**45 % 2,
    "bits": lambda i, n, _: (i ^ n) % 16,
    "run-time divisor": lambda i, n, _: i % n,
    "large steps": lambda i, n, _: (i + n) * 31,
    "larger steps of the coordinate": lambda i, n, _: i * 2**40 - n,
}


def divided(i: Any, n: Any, m: Any) -> Any:
    return (i + n) // m


def folded(i: Any, n: Any, m: Any) -> Any:
    return (i + n) % m


@tn.kernel
def viewed(A: Any, Y: Any, n: Any, m: Any, *, formula: Formula) -> None:
    x = tn.axis("x", 4)
    view = A.remap(tn.index_map((16,), (16,), lambda i: formula(i, n, m)))
    for b in tn.parallel(4):
        Y(b.index() * 4, x).store(view(b.index() * 4, x).load(other=0.0))


def before(block: Any) -> Any:
    return block.index() * 4 - 4


@tn.kernel
def sliced(A: Any, Y: Any, n: Any, m: Any, *, formula: Formula) -> None:
    view = A.remap(tn.index_map((16,), (16,), lambda i: formula(i, n, m))).slice(4, 12)
    x = tn.axis("x", 4)
    for b in tn.parallel(4):
        Y(b.index() * 4, x).store(view(before(b), x).load(other=0.0))


@tn.kernel
def reindexed(A: Any, Y: Any, n: Any, m: Any, *, formula: Formula) -> None:
    x, z = tn.axis("x", 16), tn.axis("z", 16)
    for _ in tn.parallel(1):
        Y(0, x).store(tn.reindex(A[0, z], (x,), lambda i: formula(i, n, m)))


def expected(formula: Formula, n: int, m: int, source: Array, first: int) -> Array:
    places = [formula(i, n, m) for i in range(16)]
    found = [source[at] if 0 <= at < 16 else 0.0 for at in places]
    return np.array([0.0] * first + found[first:], np.float32)


def outcome(kernel: tn.Kernel, formula: Formula, pair: tuple[int, int], target: str) -> Array:
    source = np.arange(16, dtype=np.float32) + 1
    guarded = np.full(16 + 64, np.nan, np.float32)
    inner = guarded[32:-32]
    compiled = kernel.compile(source, inner, *pair, target=target, formula=formula)
    compiled(source, inner, *pair)
    assert np.isnan(guarded[:32]).all() and np.isnan(guarded[-32:]).all()
    return inner


def check(formula: Formula, kernels: tuple[tn.Kernel, ...], name: str) -> None:
    source = np.arange(16, dtype=np.float32) + 1
    for kernel in kernels:
        for pair in PAIRS:
            wanted = expected(formula, *pair, source, 4 if kernel is sliced else 0)
            for target in ("interpret", "cpu"):
                found = outcome(kernel, formula, pair, target)
                np.testing.assert_array_equal(found, wanted, err_msg=f"{name} {pair} {target}")


@pytest.mark.parametrize("name", FORMULAS)
def test_far_symbols_move_no_coordinate(name: str) -> None:
    check(FORMULAS[name], (viewed, sliced, reindexed), name)


@tn.kernel
def opened(A: Any, Y: Any, n: Any, m: Any, size: Any, *, formula: Formula) -> None:
    x = tn.axis("x", 4)
    view = A.remap(tn.index_map((size,), (16,), lambda i: formula(i, n, m)))
    for b in tn.parallel(4):
        Y(b.index() * 4, x).store(view(b.index() * 4, x).load(other=0.0))


REFUSED = {"product", "remainder of a product", "larger steps of the coordinate"}
"""What leaves 64 bits at some coordinate below 2**48."""


@pytest.mark.parametrize("target", ["interpret", "cpu"])
@pytest.mark.parametrize("name", FORMULAS)
def test_far_symbols_move_no_coordinate_of_an_open_extent(name: str, target: str) -> None:
    formula, source = FORMULAS[name], np.arange(16, dtype=np.float32) + 1
    arguments = source, np.zeros(16, np.float32), 0, 0, 0
    if target == "cpu" and name in REFUSED:
        with pytest.raises(tn.TargetError, match="may leave 64 bits"):
            opened.compile(*arguments, target=target, formula=formula)
        return
    compiled = opened.compile(*arguments, target=target, formula=formula)
    for (n, m), size in itertools.product(PAIRS, (0, 1, 13, 16, LARGEST_EXTENT)):
        found = np.full(16, np.nan, np.float32)
        compiled(source, found, n, m, size)
        wanted = expected(formula, n, m, source, 0)
        wanted[size:] = 0.0
        np.testing.assert_array_equal(found, wanted, err_msg=f"{name} {n} {m} {size}")


ON_THE_LEFT: dict[str, Formula] = {
    "add": lambda i, n, _: n + i,
    "sub": lambda i, n, _: n - i,
    "mul": lambda i, n, _: n * i,
    "floordiv": lambda i, n, _: n // (i + 1),
    "mod": lambda i, n, _: n % (i + 1),
    "xor": lambda i, n, _: (n ^ i) % 16,
    "and": lambda i, n, _: n & i,
    "shifted": lambda i, n, _: (1 << i % 4) + n * 0,
}


@pytest.mark.parametrize("name", ON_THE_LEFT)
def test_numbers_may_stand_on_the_left_of_a_coordinate(name: str) -> None:
    check(ON_THE_LEFT[name], (viewed, reindexed), name)


def test_a_coordinate_is_not_shifted_backwards() -> None:
    with pytest.raises(tn.CaptureError, match="shifted by -1 bits"):
        outcome(viewed, lambda i, _n, _m: i << -1, (5, 3), "interpret")


def random_formula(draw: random.Random, depth: int) -> str:
    """A sum of the coordinate and both numbers, in quotients and remainders."""
    if depth == 0:
        signs = [draw.choice(["+", "-"]) for _ in range(2)]
        return f"(i * {draw.choice([1, 2, 3, -1])} {signs[0]} n {signs[1]} m)"
    inner = random_formula(draw, depth - 1)
    divisor = draw.choice([2, 3, 5, 16, 2**20, 1000003])
    match draw.choice(["//", "%", "+", "both"]):
        case "+":
            return f"({inner} + {random_formula(draw, depth - 1)})"
        case "both":
            return f"({inner} // {divisor} % {draw.choice([2, 7, 16])})"
        case sign:
            return f"({inner} {sign} {divisor})"


def load(text: str, path: Path) -> Formula:
    """The formula from a file, where the kernel finds its source."""
    path.write_text(f"def formula(i, n, m):\n    return {text}\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Formula = module.formula
    return found


@pytest.mark.parametrize("seed", range(12))
def test_random_far_symbols_move_no_coordinate(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    text = random_formula(draw, draw.choice([1, 2, 3]))
    formula = load(text, tmp_path / f"formula_{seed}.py")
    check(formula, (draw.choice([viewed, sliced, reindexed]),), text)


@pytest.mark.parametrize("name", ["quotient", "remainder"])
def test_what_cannot_be_kept_in_64_bits_is_refused(name: str) -> None:
    formula = {"quotient": divided, "remainder": folded}[name]
    with pytest.raises(tn.TargetError, match="may leave 64 bits") as caught:
        outcome(viewed, formula, (5, 3), "cpu")
    assert caught.value.location is not None


@pytest.mark.parametrize("step", [2**47, 2**50, 2**57])
@pytest.mark.parametrize("added", ["- n", "- n + m"])
def test_symbols_as_large_as_the_steps_of_a_coordinate(
    step: int, added: str, tmp_path: Path
) -> None:
    """Either is right: to compute it, or to refuse it."""
    formula = load(f"i * {step} {added}", tmp_path / f"formula_{step}_{len(added)}.py")
    source = np.arange(16, dtype=np.float32) + 1
    for kernel in (viewed, reindexed):
        for n, m in ((3 * step, 0), (3 * step - 1, 1), (3 * step - 1, 0), (0, 0)):
            wanted = expected(formula, n, m, source, 0)
            try:
                found = outcome(kernel, formula, (n, m), "cpu")
            except tn.TargetError:
                continue
            np.testing.assert_array_equal(found, wanted)


@tn.kernel
def limited(A: Any, Y: Any, n: Any, m: Any, *, formula: Formula) -> None:
    near = tn.minimum(tn.maximum(n, 0), 2**40)
    view = A.remap(tn.index_map((16,), (16,), lambda i: formula(i, near, m)))
    for b in tn.parallel(16):
        Y.at(b.index()).store(view.at(b.index()).load(other=0.0))


@pytest.mark.parametrize("formula", [divided, folded])
def test_the_remedy_of_the_refusal_is_one(formula: Formula) -> None:
    source = np.arange(16, dtype=np.float32) + 1
    for n, m in PAIRS:
        wanted = expected(formula, min(max(n, 0), 2**40), m, source, 0)
        np.testing.assert_array_equal(outcome(limited, formula, (n, m), "cpu"), wanted)


@tn.kernel
def rotated(A: Any, Y: Any, n: Any, m: Any, *, formula: Formula) -> None:
    x, length = tn.axis("x", 5), A.extent(0)
    view = A.remap(tn.index_map((length,), (length,), lambda i: formula(i, n + m * 0, length)))
    for b in tn.parallel(4):
        Y(b.index() * 5, x).store(view(b.index() * 5, x).load())


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_a_ring_is_read_from_anywhere(target: str) -> None:
    for size in (0, 1, 16):
        source = np.arange(16, dtype=np.float32)[:size] + 1
        compiled = rotated.compile(
            tn.spec(("n",), tn.float32),
            tn.spec((20,), tn.float32),
            0,
            0,
            target=target,
            formula=folded,
        )
        for n in (0, 5, -3, HIGH, HIGH - 7, LOW, 2**62):
            found = np.full(20, np.nan, np.float32)
            compiled(source, found, n, 0)
            wanted = [source[(i + n) % size] if i < size else 0 for i in range(20)]
            np.testing.assert_array_equal(found, wanted)
