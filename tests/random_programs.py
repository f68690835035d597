"""Random kernels of loops, conditions, swaps and snapshots, as text that Python can run too.

`Writer(seed).text()` is a function `kernel(X, n, Y)` over int32 arrays: tiles and numbers that take
their turns, in nests that `tn.root_or_inner` opens. A scope with `staged` as `tn` makes a kernel of
it; with `plain` the same text runs as plain Python, where a nest is a `range` and tiles are NumPy
arrays.
"""

from __future__ import annotations

import linecache
import random
from types import SimpleNamespace
from typing import Any

import numpy as np

from tilenest import language

TILES = ("a", "b", "c")
NUMBERS = ("k", "p")
SIZE = 3
RESULTS = 9
PLACES = 20
"""Where the kernel may store: its results, then what it observes on the way."""


class Writer:
    """Writes one random kernel, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.loops = 0
        self.observed = RESULTS

    def text(self) -> str:
        self.lines = ["def kernel(X, n, Y):"]
        for place, name in enumerate(TILES):
            self.lines.append(f"    {name} = X[{place * SIZE}, {SIZE}]")
        self.lines += ["    k = 1", "    p = 2", "    pair = [a, b]", "    both = (b, c)"]
        self.lines += ["    def bump(slots, part):", "        old = slots[0]"]
        self.lines += ["        slots[0] = slots[1] + part * p", "        return old"]
        self.block(1, 4)
        results = [*TILES, "pair[0]", "pair[1]", "both[0]", "both[1]"]
        results += [f"X[0, {SIZE}] + {name}" for name in NUMBERS]
        # What is not stored is dead, and must be carried all the same where a body reads it.
        for place in self.random.sample(range(RESULTS), self.random.randint(1, RESULTS)):
            self.lines.append(f"    Y({place * SIZE}, {SIZE}).store({results[place]})")
        return "\n".join(self.lines) + "\n"

    def block(self, depth: int, length: int, extra: tuple[str, ...] = ()) -> None:
        for _ in range(self.random.randint(1, length)):
            self.statement(depth, extra)

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def statement(self, depth: int, extra: tuple[str, ...]) -> None:
        choices = [
            self.observe,
            self.assign,
            self.assign,
            self.swap,
            self.count,
            self.slot,
            self.local,
            self.choose,
            self.helper,
        ]
        if depth < 4:
            choices += [self.loop, self.loop, self.condition, self.host_loop]
        self.random.choice(choices)(depth, extra)

    def observe(self, depth: int, extra: tuple[str, ...]) -> None:
        if self.observed < PLACES:
            value = self.random.choice([self.tile(extra), f"{self.tile(extra)} * {self.number()}"])
            self.add(depth, f"Y({self.observed * SIZE}, {SIZE}).store({value})")
            self.observed += 1

    def tile(self, extra: tuple[str, ...]) -> str:
        return self.random.choice([*TILES, "pair[0]", "pair[1]", "both[0]", "both[1]", *extra])

    def assign(self, depth: int, extra: tuple[str, ...]) -> None:
        one, two = self.tile(extra), self.tile(extra)
        value = self.random.choice(
            [
                f"{one} + {two}",
                f"{one} - {two}",
                one,
                f"{one} * {self.number()}",
                f"{one} + p",
                f"{one} - {two}[1, {SIZE}]",
            ]
        )
        self.add(depth, f"{self.random.choice(TILES)} = {value}")

    def number(self) -> str:
        return self.random.choice([*NUMBERS, "2", "3"])

    def swap(self, depth: int, extra: tuple[str, ...]) -> None:
        one, two = self.random.sample(TILES, 2)
        form = self.random.randrange(4)
        if form == 0:
            self.add(depth, f"{one}, {two} = {two}, {one}")
        elif form == 1:
            self.add(depth, f"both = ({self.tile(extra)}, {one})")
        elif form == 2:
            self.add(depth, f"old = {one}")
            self.add(depth, f"{one} = {one} + {two}")
            self.add(depth, f"{two} = old")
        else:
            self.add(depth, f"{one} += {self.tile(extra)}")

    def count(self, depth: int, extra: tuple[str, ...]) -> None:
        del extra
        name = self.random.choice(NUMBERS)
        self.add(depth, f"{name} = {self.random.choice(['k + 1', 'p - k', 'p', '3', 'k * 2 - p'])}")

    def slot(self, depth: int, extra: tuple[str, ...]) -> None:
        self.add(depth, f"pair[{self.random.randrange(2)}] = {self.tile(extra)} + {self.number()}")

    def local(self, depth: int, extra: tuple[str, ...]) -> None:
        self.add(depth, f"t = {self.tile(extra)} * 2")
        self.add(depth, f"{self.random.choice(TILES)} = t - {self.tile(extra)}")

    def choose(self, depth: int, extra: tuple[str, ...]) -> None:
        if self.random.random() < 0.5:
            self.add(depth, f"k = k + 1 if {self.test()} else {self.number()}")
        else:
            one, two = self.tile(extra), self.tile(extra)
            self.add(depth, f"{self.random.choice(TILES)} = {one} if {self.test()} else {two}")

    def helper(self, depth: int, extra: tuple[str, ...]) -> None:
        self.add(depth, f"{self.random.choice(TILES)} = bump(pair, {self.tile(extra)})")

    def loop(self, depth: int, extra: tuple[str, ...]) -> None:
        self.loops += 1
        step = f"s{self.loops}"
        form = self.random.randrange(4)
        if form == 0:
            self.add(depth, f"for {step} in range(n):")
        else:
            nest = ["", "serial", "serial", "pipeline"][form]
            extent = self.random.choice(["n", "2", "3", "0"])
            self.add(depth, f"for {step} in tn.root_or_inner('{nest}', {extent}):")
            for _ in range(self.random.randrange(4) if nest == "pipeline" else 0):
                self.add(depth + 1, f"{step}.stage()")
                self.block(depth + 1, 2, extra)
        self.block(depth + 1, 3, extra)

    def condition(self, depth: int, extra: tuple[str, ...]) -> None:
        self.add(depth, f"if {self.test()}:")
        self.block(depth + 1, 2, extra)
        if self.random.random() < 0.6:
            self.add(depth, "else:")
            self.block(depth + 1, 2, extra)

    def test(self) -> str:
        return self.random.choice(["n > 1", "n == 0", "0 < n < 3", "k > 1", "p > k or n", "not n"])

    def host_loop(self, depth: int, extra: tuple[str, ...]) -> None:
        self.loops += 1
        self.add(depth, f"for h{self.loops} in range({self.random.choice([1, 2])}):")
        self.block(depth + 1, 2, extra)


class Snapshot(np.ndarray[Any, Any]):
    """A tile for plain Python: augmented assignment makes a new one, as in a kernel, and a part is
    taken at an origin, with 0 beyond the end."""

    def __getitem__(self, key: Any) -> Any:
        origin, size = key
        part = np.zeros(size, self.dtype)
        part[: self.size - origin] = np.asarray(self)[origin:]
        return part.view(Snapshot)

    def __iadd__(self, other: Any) -> Any:  # type: ignore[misc]  # not in place
        return self + other


class Array:
    """A view for plain Python: loads are copies, stores write."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __getitem__(self, key: tuple[int, int]) -> Any:
        return self.data[key[0] : key[0] + key[1]].copy().view(Snapshot)

    def __call__(self, origin: int, size: int) -> Any:
        def store(value: Any) -> None:
            self.data[origin : origin + size] = value

        return SimpleNamespace(store=store)


class Step(int):
    """The variable of a pipeline for plain Python: stages only cut its body."""

    def stage(self) -> None:
        """Nothing."""


def open_nest(kind: str, extent: Any) -> Any:
    """A nest inside the innermost one that is open."""
    innermost = language.current_session().innermost or language.root()
    return getattr(innermost, kind)(extent)


def function_of(text: str, names: Any) -> Any:
    scope: dict[str, Any] = {"tn": names}
    file = f"<random program {hash(text)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec"), scope)
    return scope["kernel"]


def staged_kernel(text: str) -> Any:
    """The text as a function to capture."""
    return function_of(text, SimpleNamespace(root_or_inner=open_nest))


def plain_function(text: str) -> Any:
    """The text as a function to call on an `Array`, a number and an `Array`."""
    return function_of(
        text, SimpleNamespace(root_or_inner=lambda _, extent: map(Step, range(extent)))
    )


def arguments(n: int) -> tuple[Any, Any, Any]:
    """X, n and a Y that shows what was never stored."""
    x = np.arange(3 * SIZE, dtype=np.int32) * 7 % 5 - 2
    return x, np.int64(n), np.full(PLACES * SIZE, -9, np.int32)
