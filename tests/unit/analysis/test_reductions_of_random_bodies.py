"""Reductions: the law that a body is said to show, against every state and element.

Random bodies of two states are made as IR text and, at the same time, as Python functions on
numbers of 8 bits. Scalars are combined by functions, chosen by conditions, and go through loops;
states are used at any depth, also where nothing hands them in. A state (+)s what its elements give
when the step is `state (+) f(elements)`: f(elements) is then the step of the identity, whatever the
other state is.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

import pytest

from tilenest.analysis import Reductions
from tilenest.dialects import Reduce, registry
from tilenest.ir import fresh, parse_module
from tilenest.verify import diagnose_module

Environment = Mapping[str, int]
Step = Callable[[Environment], int]

NUMBERS = (-128, -127, -3, -1, 0, 1, 2, 5, 126, 127)
FUNCTIONS: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "minimum": min,
    "maximum": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
MERGES = ("add", "mul", "minimum", "maximum", "and", "or", "xor")
HEAD = """module "candidate"

func @f(%A: view<i8, [?], [1]>, %n: index) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c2 = scalar.constant 2 : index
  %z = scalar.constant 0 : i8
  %r, %q = exec.reduce(lower = [%c0], upper = [%n], step = [%c1], initial = [%z, %z]) \
: (i8, i8) { |%i: index, %s: i8, %t: i8|
    %x = tile.load(%A, [%i]) : i8
"""


def wrapped(number: int) -> int:
    return (number + 128) % 256 - 128


class _Bodies:
    """Writes statements and keeps what they mean."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def statement(self, names: list[str], depth: int) -> tuple[str, Step]:
        """The name that it defines and its value."""
        kind = self.choose.random()
        if depth < 2 and kind < 0.2:
            return self.choice(names, depth)
        if depth < 2 and kind < 0.4:
            return self.loop(names, depth)
        return self.apply(names)

    def apply(self, names: list[str]) -> tuple[str, Step]:
        function = self.choose.choice(list(FUNCTIONS))
        left, right = self.choose.choices(names, k=2)
        result, meaning = self.name(), FUNCTIONS[function]
        self.lines.append(f'%{result} = scalar.apply "{function}"(%{left}, %{right}) : i8')
        return result, lambda at: wrapped(meaning(at[left], at[right]))

    def block(self, names: list[str], depth: int) -> tuple[str, Step]:
        """One or two statements; what the last one defines is handed out."""
        known, steps = list(names), []
        for _ in range(self.choose.randint(1, 2)):
            steps.append(self.statement(known, depth + 1))
            known.append(steps[-1][0])
        self.lines.append(f"exec.yield(%{known[-1]})")

        def value(at: Environment) -> int:
            inner = dict(at)
            for name, step in steps:
                inner[name] = step(inner)
            return inner[known[-1]]

        return known[-1], value

    def choice(self, names: list[str], depth: int) -> tuple[str, Step]:
        left, right = self.choose.choices(names, k=2)
        condition, result = self.name(), self.name()
        self.lines.append(f'%{condition} = scalar.apply "gt"(%{left}, %{right}) : bool')
        self.lines.append(f"%{result} = exec.if(%{condition}) : i8 {{")
        _, yes = self.block(names, depth)
        self.lines.append("} {")
        _, no = self.block(names, depth)
        self.lines.append("}")
        return result, lambda at: yes(at) if at[left] > at[right] else no(at)

    def loop(self, names: list[str], depth: int) -> tuple[str, Step]:
        start, result = self.choose.choice(names), self.name()
        index, carried = self.name(), self.name()
        self.lines.append(
            f"%{result} = exec.serial(lower = [%c0], upper = [%c2], step = [%c1], "
            f"initial = [%{start}]) : i8 {{ |%{index}: index, %{carried}: i8|"
        )
        _, body = self.block([*names, carried], depth)
        self.lines.append("}")

        def value(at: Environment) -> int:
            number = at[start]
            for _ in range(2):
                number = body({**at, carried: number})
            return number

        return result, value


def made(seed: int) -> tuple[str, Callable[[int, int, int], tuple[int, int]]]:
    """The text of a module and the step from two states and an element to the next states."""
    bodies = _Bodies(seed)
    names, steps = ["s", "t", "x"], list[tuple[str, Step]]()
    for _ in range(bodies.choose.randint(1, 5)):
        steps.append(bodies.statement(names, 0))
        names.append(steps[-1][0])
    ends = []
    for state in ("s", "t"):
        # Most bodies end in a step that looks like a merge.
        function, other = bodies.choose.choice(MERGES), bodies.choose.choice(names)
        end, meaning = bodies.name(), FUNCTIONS[function]
        sides = bodies.choose.sample([state, other], 2)
        bodies.lines.append(f'%{end} = scalar.apply "{function}"(%{sides[0]}, %{sides[1]}) : i8')

        def last(
            at: Environment, sides: list[str] = sides, meaning: Callable[[int, int], int] = meaning
        ) -> int:
            return wrapped(meaning(at[sides[0]], at[sides[1]]))

        steps.append((end, last))
        ends.append(end)

    def step(first: int, second: int, element: int) -> tuple[int, int]:
        at = {"s": first, "t": second, "x": element}
        for name, value in steps:
            at[name] = value(at)
        return at[ends[0]], at[ends[1]]

    body = "".join(f"    {line}\n" for line in bodies.lines)
    tail = f"    exec.yield(%{ends[0]}, %{ends[1]})\n  }}\n"
    return HEAD + body + tail + "  tile.store(%A, [%c0], %r)\n  func.return\n}\n", step


def shows(merge: str, step: Callable[[int, int, int], tuple[int, int]], place: int) -> bool:
    """Whether the step of a state is `state (+) f(elements)` for everything that is tried."""
    identity = {"mul": 1, "minimum": 127, "maximum": -128, "and": -1}.get(merge, 0)
    for element in NUMBERS:
        lifted = step(*((identity, 0) if place == 0 else (0, identity)), element)[place]
        for first in NUMBERS:
            for second in NUMBERS:
                state = (first, second)[place]
                following = step(first, second, element)[place]
                if following != wrapped(FUNCTIONS[merge](state, lifted)):
                    return False
    return True


@pytest.mark.parametrize("seeds", [range(start, start + 50) for start in range(0, 300, 50)])
def test_reductions_claim_laws_that_hold_for_every_state(seeds: range) -> None:
    claimed = 0
    for seed in seeds:
        text, step = made(seed)
        module = parse_module(text, registry())
        (nest,) = (op for op in module.walk() if isinstance(op, Reduce))
        answers = fresh(Reductions, nest)
        for place, answer in enumerate(answers):
            if answer.law.merge is not None:
                claimed += 1
                assert shows(answer.law.merge, step, place), f"state {place} of\n{text}"
        lacking = any(answer.law.merge is None for answer in answers)
        faults = [str(fault) for fault in diagnose_module(module)]
        assert any("TN09" in fault for fault in faults) is lacking, f"{faults}\n{text}"
    assert claimed > len(seeds) // 4
