"""Random programs whose nests are rearranged at random: the same bits, or nothing has changed."""

from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest

import tilenest as tn
from tests.random_programs import PLACES, SIZE, TILES, Writer, function_of, open_nest
from tests.unit.ir.photograph import photograph
from tests.unit.passes.test_remap import step
from tilenest import language
from tilenest.analysis import chains_of
from tilenest.execution import identity
from tilenest.ir import Module
from tilenest.passes import Remapping

INSTANCES = 3
TRIPS = (0, 1, 3)
FEW, MANY = 25, 600


def program(seed: int) -> Module:
    """A random program as the body of a parallel, each instance on its own part of Y."""
    head, *body = Writer(seed).text().splitlines()
    spread = [line.replace("Y(", f"Y(w * {PLACES * SIZE} + ") for line in body]
    opened = [f"    for block in tn.parallel({INSTANCES}):", "        w = block.index()"]
    text = "\n".join([head, *opened, *(f"    {line}" for line in spread)]) + "\n"
    names = SimpleNamespace(root_or_inner=open_nest, parallel=language.parallel)
    x = tn.spec((len(TILES) * SIZE,), tn.int32)
    y = tn.spec((PLACES * SIZE * INSTANCES,), tn.int32)
    return tn.kernel(function_of(text, names)).capture(x, np.int64(2), y)


def results(module: Module, trips: int, shuffle: int | None = None) -> np.ndarray:
    y = np.full(PLACES * SIZE * INSTANCES, -77, np.int32)
    x = np.arange(len(TILES) * SIZE, dtype=np.int32)
    tn.interpret(module, [x, trips, y], shuffle=shuffle)
    return y


def planned(random_: random.Random, module: Module) -> Remapping:
    (function,) = module.functions
    chain = random_.choice(list(chains_of(function.walk())))
    plan = Remapping(module, chain, identity(chain.structure))
    for _ in range(random_.randint(1, 3)):
        try:
            plan = step(random_, plan)
        except tn.TileError:
            continue
    return plan


def check(seed: int) -> bool:
    """Whether a remap was applied."""
    module = program(seed)
    expected = [results(module, trips) for trips in TRIPS]
    plan = planned(random.Random(seed), module)
    before = photograph(module)
    try:
        plan.apply()
    except tn.RemapError:
        assert photograph(module) == before, str(plan)
        return False
    for trips, wanted in zip(TRIPS, expected, strict=True):
        np.testing.assert_array_equal(results(module, trips, seed), wanted, err_msg=str(plan))
    return True


def test_random_remaps_of_random_programs() -> None:
    assert sum(check(seed) for seed in range(FEW)) > FEW // 2


@pytest.mark.slow
def test_many_random_remaps_of_random_programs() -> None:
    assert sum(check(seed) for seed in range(FEW, MANY)) > MANY // 2
