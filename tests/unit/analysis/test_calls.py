"""Which function calls which: the order of callees and the circles, against reachability."""

from __future__ import annotations

import random

import pytest

from tests.unit.interp.programs import Program
from tilenest.analysis import call_circles, callees_first
from tilenest.dialects import Call
from tilenest.ir import Module


def module_of(calls: dict[str, list[str]]) -> Module:
    module = Module()
    for name, callees in calls.items():
        program = Program(name=name, into=module)
        for callee in callees:
            program.add(Call(callee=callee, arguments=[]))
        program.finish()
    return module


def reachable(calls: dict[str, list[str]], name: str) -> set[str]:
    found: set[str] = set()
    waiting = list(calls.get(name, []))
    while waiting:
        callee = waiting.pop()
        if callee not in found:
            found.add(callee)
            waiting += calls.get(callee, [])
    return found


@pytest.mark.parametrize("seed", range(60))
def test_call_graphs_made_by_chance(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"f{i}" for i in range(6)]
    calls = {
        name: [chance.choice([*names, "missing"]) for _ in range(chance.randrange(3))]
        for name in names
    }
    module = module_of(calls)
    is_circular = any(name in reachable(calls, name) for name in names)
    circles = call_circles(module)
    assert bool(circles) == is_circular
    for circle in circles:
        assert circle.names[0] == circle.names[-1] == circle.call.callee
        for caller, callee in zip(circle.names, circle.names[1:], strict=False):
            assert callee in calls[caller]
    if not is_circular:
        order = [function.name for function in callees_first(module)]
        assert sorted(order) == sorted(names)
        for name in names:
            assert all(
                order.index(callee) < order.index(name) for callee in calls[name] if callee in names
            )


def test_long_chains_of_calls_need_no_recursion() -> None:
    names = [f"f{i}" for i in range(3000)]
    following = [[name] for name in names[1:]] + [[]]
    module = module_of(dict(zip(names, following, strict=True)))
    assert [function.name for function in callees_first(module)] == names[::-1]
