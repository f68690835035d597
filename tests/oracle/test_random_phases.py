"""Random kernels whose instances wait for each other, against the interpreter.

In a phase each array is either written, every instance its own row, or read by all, so the order of
instances never shows: the interpreter runs them in several orders, and machine code in any. Values
and states live across synchronizations, and serial nests with and without iterations hold them.
"""

from __future__ import annotations

import importlib.util
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.oracle.arrays import Array
from tilenest.driver import parse
from tilenest.interp import interpret

ROWS = 6
ARRAYS = "ABC"
ONE_AXIS = f"tn.parallel(range(3, {3 + 2 * ROWS}, 2))", "(i.index() - 3) // 2"
TWO_AXES = "tn.parallel(2, range(1, 7, 2))", "i.index()[0] * 3 + i.index()[1] // 2"
BOUNDS = ("0", "1", "2", "3", "count", "range(1, count, 2)")
DEEPEST = 2


class Writer:
    """The source of one kernel; what is assigned so far is known by kind: a tile or a scalar."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = ["import tilenest as tn", "", "@tn.kernel", "def kernel(A, B, C, count):"]
        self.lines.append("    n = tn.axis('n', 4)")
        self.names = 0
        self.written: set[str] = set()

    def source(self) -> str:
        domain, own = self.random.choice([ONE_AXIS, ONE_AXIS, TWO_AXES])
        self.lines += [f"    for i in {domain}:", f"        own = {own}"]
        self.turn()
        for _ in range(2):
            self.block(2, {}, "i", 0)
            self.wait(2)
        return "\n".join(self.lines) + "\n"

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def turn(self) -> None:
        self.written = {name for name in ARRAYS if self.random.random() < 0.5}

    def wait(self, depth: int) -> None:
        self.add(depth, "tn.sync(i)")
        self.turn()

    def fresh(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def block(self, depth: int, known: dict[str, str], owner: str, level: int) -> None:
        for _ in range(self.random.randint(2, 7)):
            step = self.random.choice(["assign", "assign", "store", "store", "wait", "serial"])
            if step == "assign":
                self.assign(depth, known)
            elif step == "store":
                self.store(depth, known)
            elif step == "wait" or level == DEEPEST:
                self.wait(depth)
            else:
                handle = self.fresh()
                self.add(depth, f"for {handle} in {owner}.serial({self.random.choice(BOUNDS)}):")
                self.wait(depth + 1)
                self.block(depth + 1, dict(known), handle, level + 1)
                self.wait(depth + 1)
                # A nest without iterations ends no phase.
                self.wait(depth)

    def assign(self, depth: int, known: dict[str, str]) -> None:
        kind = self.random.choice(["tile", "scalar"])
        names = [name for name, of in known.items() if of == kind]
        value = self.tile(known) if kind == "tile" else self.scalar(known)
        name = self.random.choice([*names, self.fresh()])
        self.add(depth, f"{name} = {value}")
        known[name] = kind

    def store(self, depth: int, known: dict[str, str]) -> None:
        if not self.written:
            return
        name = self.random.choice(sorted(self.written))
        line = f"{name}((own, 0), (1, n)).store({self.tile(known)})"
        if self.random.random() < 0.3:
            self.add(depth, f"if {self.scalar(known)} > {self.random.randint(-5, 5)}:")
            depth += 1
        self.add(depth, line)

    def row(self, name: str) -> str:
        if name in self.written:
            return "own"
        return self.random.choice(["own", f"{ROWS - 1} - own", f"(own + 2) % {ROWS}"])

    def tile(self, known: dict[str, str]) -> str:
        tiles = [name for name, of in known.items() if of == "tile"]
        name = self.random.choice(ARRAYS)
        if not tiles or self.random.random() < 0.4:
            return f"{name}[({self.row(name)}, 0), (1, n)]"
        one, other = self.random.choice(tiles), self.random.choice(tiles)
        forms = [f"{one} * 3 - {other}", f"tn.maximum({one}, {other})"]
        return self.random.choice([*forms, f"{one} + {self.scalar(known)}"])

    def scalar(self, known: dict[str, str]) -> str:
        scalars = [name for name, of in known.items() if of == "scalar"]
        if scalars and self.random.random() < 0.5:
            return f"{self.random.choice(scalars)} * 2 + {self.random.choice(scalars)}"
        name = self.random.choice(ARRAYS)
        return f"{name}.at({self.row(name)}, {self.random.randrange(4)}).load()"


def kernel_of(seed: int, folder: Path) -> Any:
    file = folder / f"phases_{seed}.py"
    file.write_text(Writer(seed).source())
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


@pytest.mark.parametrize(
    "seed", [*range(10), *(pytest.param(s, marks=pytest.mark.slow) for s in range(10, 60))]
)
def test_phases_of_random_kernels(seed: int, tmp_path: Path) -> None:
    kernel = kernel_of(seed, tmp_path)

    def arrays() -> list[Array]:
        return [np.random.default_rng(seed + j).integers(-4, 5, (ROWS, 4)) for j in range(3)]

    wanted = arrays()
    module = parse(kernel.compile(*wanted, 3, target="interpret").ir("candidate"))
    interpret(module, [*wanted, 3])
    compiled = kernel.compile(*wanted, 3)
    for order in (1, 2, None, None):
        found = arrays()
        if order is None:
            compiled(*found, 3)
        else:
            interpret(module, [*found, 3], shuffle=order)
        for one, other in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(other, one)
