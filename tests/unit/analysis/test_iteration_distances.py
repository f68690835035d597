"""Over how many iterations windows of a view meet, against the elements that they touch."""

from __future__ import annotations

import itertools
import random

import pytest

import tilenest as tn
from tilenest.analysis import effect_dependences, handed_values, stage_storage
from tilenest.dialects import Dependence, Pipeline
from tilenest.ir import Module

TRIPS = 14
SIZE = 3


def module(chance: random.Random) -> tuple[Module, list[list[tuple[str, int, int, bool]]], int]:
    """Stages of accesses A[scale * i + offset + j, 0], for j < 4 in a loop or without one."""
    step = chance.choice((1, 2, 3))
    lines: list[str] = []
    stages: list[list[tuple[str, int, int, bool]]] = []
    for stage in range(chance.randrange(1, 4)):
        accesses: list[tuple[str, int, int, bool]] = []
        lines.append(f"{{ |%i{stage}: index|" if stage else "{ |%i0: index|")
        for place in range(chance.randrange(1, 3)):
            kind = chance.choice(("load", "store"))
            scale, offset = chance.choice((-1, 0, 1, 2)), chance.randrange(-4, 5)
            loops = chance.random() < 0.3
            accesses.append((kind, scale, offset, loops))
            n = f"{stage}_{place}"
            body = [
                f'%a{n} = scalar.apply "mul"(%i{stage}, %c{scale + 1}) : index',
                f'%b{n} = scalar.apply "add"(%a{n}, %n) : index',
                f'%o{n} = scalar.apply "add"(%b{n}, %k{offset + 4}) : index',
            ]
            origin = f"%o{n}"
            if loops:
                body.append(
                    "exec.serial(lower = [%zero], upper = [%four], step = [%one]) "
                    f"{{ |%j{n}: index|"
                )
                body.append(f'%p{n} = scalar.apply "add"(%o{n}, %j{n}) : index')
                origin = f"%p{n}"
            access = (
                f"%t{n} = tile.load(%A, [{origin}, %zero]) : tile<f32, %d0, %d1>"
                if kind == "load"
                else f"tile.store(%A, [{origin}, %zero], %t, dims = [%d0, %d1])"
            )
            lines += [*body, access, *(["exec.yield", "}"] if loops else [])]
        lines += ["exec.yield", "}"]
        stages.append(accesses)
    numbers = [f"%c{c + 1} = scalar.constant {c} : index" for c in (-1, 0, 1, 2)]
    numbers += [f"%k{k + 4} = scalar.constant {k} : index" for k in range(-4, 5)]
    text = "\n".join(
        (
            'module "candidate"',
            f'dim %d0 "m" = {SIZE}\ndim %d1 "n" = 2',
            "func @main(%A: view<f32, [?, ?], [?, 1]>, %n: index) {",
            *numbers,
            "%trips = view.extent(%A, axis = 0) : index",
            "%zero = scalar.constant 0 : index",
            "%one = scalar.constant 1 : index",
            "%four = scalar.constant 4 : index",
            f"%step = scalar.constant {step} : index",
            "%t = tile.load(%A, [%zero, %zero]) : tile<f32, %d0, %d1>",
            "exec.pipeline(lower = [%zero], upper = [%trips], step = [%step]) " + lines[0],
            *lines[1:],
            "func.return\n}\n",
        )
    )
    return tn.parse(text), stages, step


def rows(access: tuple[str, int, int, bool], index: int) -> set[int]:
    _, scale, offset, loops = access
    starts = [scale * index + offset + j for j in range(4 if loops else 1)]
    return {start + r for start in starts for r in range(SIZE)}


@pytest.mark.parametrize("seed", range(80))
def test_pipeline_effects_depend_over_the_iterations_at_which_they_meet(seed: int) -> None:
    parsed, stages, step = module(random.Random(seed))
    (op,) = [op for op in parsed.walk() if isinstance(op, Pipeline)]
    found = {(d.producer, d.consumer): d.distance for d in effect_dependences(op)}
    for a, b in itertools.product(range(len(stages)), repeat=2):
        distances = [
            distance
            for first, second in itertools.product(stages[a], stages[b])
            if "store" in (first[0], second[0])
            for distance in range(0 if a < b else 1, TRIPS)
            for i in range(TRIPS - distance)
            if rows(first, i * step) & rows(second, (i + distance) * step)
        ]
        known = all(x[1] == y[1] for x, y in itertools.product(stages[a], stages[b]))
        if known:
            assert found.get((a, b)) == min(distances, default=None), (a, b)
        elif distances:
            assert found[a, b] <= min(distances)


LOCAL = """
module "scheduled"

func @main(%A: view<f32, [8], [1]>, %n: index, %x: f32) {
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  %s = exec.pipeline(lower = [%zero], upper = [%n], step = [%one], initial = [%x]) : f32 {
      |%i: index, %in: f32|
    %b = buf.alloc : buf<f32>
    tensor.map_reduce_post(
        inputs = [%A], outputs = [%b], extents = [], input_access = [#access<map = () -> (0)>],
        output_access = [#access<map = () -> ()>], specs = [#result_spec<dims = []>],
        sched = #sched<loops = []>
    ) { |%element: f32|
      exec.yield(%element)
    }
    exec.yield(%b)
  } { |%i: index, %in: f32, %c: buf<f32>|
    %y = buf.read(%c) : f32
    exec.yield(%y, %c)
  } { |%i: index, %in: f32, %c: buf<f32>, %y: f32, %again: buf<f32>|
    %z = buf.read(%again) : f32
    %next = scalar.apply "add"(%in, %y) : f32
    exec.yield(%next)
  }
  func.return
}
"""


def test_pipeline_storage_of_an_iteration_ties_its_stages_only() -> None:
    (op,) = [op for op in tn.parse(LOCAL).walk() if isinstance(op, Pipeline)]
    assert set(effect_dependences(op)) == {
        Dependence(0, 1, "effect"),
        Dependence(0, 2, "effect"),
    }
    assert [(v.producer, v.readers) for v in stage_storage(op)] == [(0, ((0, 0), (1, 0), (2, 0)))]
    assert [(v.producer, v.readers) for v in handed_values(op)] == [
        (2, ((2, 1),)),
        (0, ((1, 0),)),
        (1, ((2, 0),)),
        (1, ((2, 0),)),
    ]
