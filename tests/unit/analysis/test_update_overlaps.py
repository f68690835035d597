"""Updates that surely overlap, judged by laying every patch of every instance, one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest

from tilenest.analysis import update_overlap
from tilenest.dialects import YieldUpdates, registry
from tilenest.ir import parse_module

Point = tuple[int, ...]
ROWS, COLUMNS = 6, 5


@dataclass(frozen=True)
class RandomPatch:
    """A window of `size` at (a * i + b * j + c, ..), and how it combines."""

    size: Point
    row: tuple[int, int, int]
    column: tuple[int, int, int]
    combine: str | None
    is_conditional: bool

    def elements(self, at: Point) -> Iterator[Point]:
        first, second = (a * at[0] + b * at[1] + c for a, b, c in (self.row, self.column))
        for row, column in product(range(self.size[0]), range(self.size[1])):
            if 0 <= first + row < ROWS and 0 <= second + column < COLUMNS:
                yield first + row, second + column


def random_patch(source: random.Random) -> RandomPatch:
    def line() -> tuple[int, int, int]:
        return source.choice([0, 1, 2, 3]), source.choice([0, 0, 1]), source.choice([-2, 0, 0, 1])

    size = source.choice([1, 1, 2]), source.choice([1, 2, 5])
    combine = source.choice([None, None, "add", "mul"])
    return RandomPatch(size, line(), line(), combine, source.random() < 0.1)


def text_of(patches: list[RandomPatch], trips: Point, steps: Point) -> str:
    lines, payloads, origins, predicates, records = [], [], [], [], []
    for place, patch in enumerate(patches):
        payloads.append(f"%v{place}")
        for axis, (a, b, c) in (("r", patch.row), ("c", patch.column)):
            name = f"%{axis}{place}"
            lines += [
                f"  {name}a = scalar.constant {a} : index",
                f"  {name}b = scalar.constant {b} : index",
                f"  {name}c = scalar.constant {c} : index",
                f'  {name}i = scalar.apply "mul"(%i, {name}a) : index',
                f'  {name}j = scalar.apply "mul"(%j, {name}b) : index',
                f'  {name}s = scalar.apply "add"({name}i, {name}j) : index',
                f'  {name} = scalar.apply "add"({name}s, {name}c) : index',
            ]
            origins.append(name)
        combine = "" if patch.combine is None else f', combine = "{patch.combine}"'
        conditional = ", conditional = true" if patch.is_conditional else ""
        predicates += ["%p"] * patch.is_conditional
        records.append(f"#patch<result = 0{combine}{conditional}>")
    arguments = ", ".join(
        f"%v{place}: tile<f32, {patch.size[0]}, {patch.size[1]}>"
        for place, patch in enumerate(patches)
    )
    asked = f", predicates = [{', '.join(predicates)}]" if predicates else ""
    body = "\n".join(lines)
    whole = f"tile<f32, {ROWS}, {COLUMNS}>"
    return f"""module "candidate"

func @main(%t: {whole}, %p: bool, {arguments}) -> {whole} {{
  %zero = scalar.constant 0 : index
  %ui = scalar.constant {trips[0] * steps[0]} : index
  %uj = scalar.constant {trips[1] * steps[1]} : index
  %si = scalar.constant {steps[0]} : index
  %sj = scalar.constant {steps[1]} : index
  %u = exec.parallel(lower = [%zero, %zero], upper = [%ui, %uj], step = [%si, %sj], initial = [%t])
      : {whole} {{ |%i: index, %j: index, %entry: {whole}|
{body}
    exec.yield_updates(
        payloads = [{", ".join(payloads)}], origins = [{", ".join(origins)}]{asked},
        patches = [{", ".join(records)}])
  }}
  func.return(%u)
}}
"""


def clashes(one: RandomPatch, other: RandomPatch, points: list[Point]) -> bool:
    if one.combine is not None and one.combine == other.combine:
        return False
    return any(
        set(one.elements(x)) & set(other.elements(y)) for x in points for y in points if x != y
    )


@pytest.mark.parametrize("seed", range(150))
def test_tn08_overlaps_are_real_and_near_ones_are_found(seed: int) -> None:
    source = random.Random(seed)
    patches = [random_patch(source) for _ in range(source.randint(1, 2))]
    trips = source.randint(0, 3), source.randint(1, 3)
    steps = source.choice([1, 2]), source.choice([1, 2])
    (function,) = parse_module(text_of(patches, trips, steps), registry()).functions
    (end,) = [op for op in function.walk() if isinstance(op, YieldUpdates)]
    points = list(
        product(*(range(0, n * step, step) for n, step in zip(trips, steps, strict=True)))
    )
    sure = [patch for patch in patches if not patch.is_conditional]
    found = update_overlap(end)
    assert (found is not None) == any(clashes(a, b, points) for a in sure for b in sure)
    if found is not None:
        one, other = patches[found.first], patches[found.second]
        assert set(one.elements(found.instances[0])) & set(other.elements(found.instances[1]))
        assert found.instances[0] != found.instances[1]


AT_AN_EXTREME = """
module "candidate"

func @main(%t: tile<f32, 4>, %x: f32) -> tile<f32, 4> {
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  %two = scalar.constant 2 : index
  %three = scalar.constant 3 : index
  %u = exec.parallel(lower = [%zero], upper = [%two], step = [%one], initial = [%t])
      : tile<f32, 4> { |%i: index, %entry: tile<f32, 4>|
    %ahead = scalar.apply "mul"(%three, %i) : index
    %back = scalar.apply "sub"(%two, %i) : index
    %at = scalar.apply "maximum"(%ahead, %back) : index
    exec.yield_updates(payloads = [%x], origins = [%at], patches = [#patch<result = 0>])
  }
  func.return(%u)
}
"""


def test_tn08_what_differs_between_instances_is_no_one_number() -> None:
    """The patches lie at 2 and at 3, and each instance has its own maximum."""
    (function,) = parse_module(AT_AN_EXTREME, registry()).functions
    (end,) = [op for op in function.walk() if isinstance(op, YieldUpdates)]
    assert update_overlap(end) is None
