"""What knowing the stored parts costs, in operations walked and proofs, and that orders are right.

The counts are of programs that are as bad as they get: many nests around a load that nothing
explains, and many parts at places of which nothing is known. Orders are judged by all numbers.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tilenest.analysis import MemoryStates, StateFault
from tilenest.analysis.index_values import KnownLeaves, Leaves
from tilenest.analysis.place_order import MOST_PROOFS, PlaceOrder
from tilenest.analysis.stored_parts import PartReader
from tilenest.dialects import Serial, registry
from tilenest.ir import Module, fresh, parse_module
from tilenest.verify import diagnose_module

HEAD = """module "candidate"

func @f(%v: view<f32, [8], [1]>, %n: index, %c: bool) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c5 = scalar.constant 5 : index
  %m, %s = memory.allocate : (memory<f32, 64>, state)
  %t = tile.load(%v, [%c0]) : tile<f32, 1>
  %first = memory.store(%m, %s, %t, [%c0]) : state
"""


def in_nests(depth: int, place: str) -> Module:
    """A load of one element in nests that store the first one."""
    lines, state = [HEAD], "%first"
    for nest in range(depth):
        lines.append(
            f"%r{nest} = exec.serial(lower = [%c0], upper = [%n], step = [%c1], "
            f"initial = [{state}]) : state {{ |%i{nest}: index, %a{nest}: state|\n"
        )
        state = f"%a{nest}"
    lines.append(f"%x = memory.load(%m, {state}, [{place}]) : tile<f32, 1>\n")
    lines.append(f"%end = memory.store(%m, {state}, %x, [%c0]) : state\nexec.yield(%end)\n}}\n")
    lines += [f"exec.yield(%r{nest})\n}}\n" for nest in range(depth - 1, 0, -1)]
    return parse_module("".join([*lines, "func.return\n}\n"]), registry())


def in_branches(count: int) -> Module:
    """Two branches that store parts at places of which no two are known to be in order."""
    lines = [HEAD]
    ends: list[list[str]] = []
    for branch in range(2):
        state = "%first"
        ends.append([])
        for store in range(count):
            name = f"{branch}_{store}"
            factor = 2 * store + 3 + branch
            ends[branch] += [
                f"%f{name} = scalar.constant {factor} : index\n",
                f'%p{name} = scalar.apply "mul"(%n, %f{name}) : index\n',
                f"%s{name} = memory.store(%m, {state}, %t, [%p{name}]) : state\n",
            ]
            state = f"%s{name}"
        ends[branch].append(f"exec.yield({state})\n")
    one, other = map("".join, ends)
    lines.append(f"%both = exec.if(%c) : state {{\n{one}}} {{\n{other}}}\n")
    lines.append("%x = memory.load(%m, %both, [%c0]) : tile<f32, 1>\n")
    return parse_module("".join([*lines, "func.return\n}\n"]), registry())


def in_order(whole: bool, stores: int, loads: int) -> Module:
    """A loop that loads what one before it stored, behind stores and loads of unknown places."""
    lines, state = [HEAD, '%u = scalar.apply "maximum"(%n, %c0) : index\n'], "%first"
    if whole:
        lines.append("%w = tile.load(%v, [%c0]) : tile<f32, 64>\n")
        lines.append("%all = memory.store(%m, %first, %w) : state\n")
        state = "%all"
    lines.append(
        "%band = exec.serial(lower = [%c0], upper = [%u], step = [%c1], "
        f"initial = [{state}]) : state {{ |%j: index, %a: state|\n"
        "%turn = memory.store(%m, %a, %t, [%j]) : state\nexec.yield(%turn)\n}\n"
    )
    state = "%band"
    for place in range(stores + loads):
        lines.append(f"%f{place} = scalar.constant {place + 3} : index\n")
        lines.append(f'%p{place} = scalar.apply "mul"(%n, %f{place}) : index\n')
        if place < stores:
            lines.append(f"%s{place} = memory.store(%m, {state}, %t, [%p{place}]) : state\n")
            state = f"%s{place}"
        else:
            lines.append(f"%x{place} = memory.load(%m, {state}, [%p{place}]) : tile<f32, 1>\n")
    lines.append(
        "exec.serial(lower = [%c0], upper = [%u], step = [%c1]) { |%i: index|\n"
        f"%x = memory.load(%m, {state}, [%i]) : tile<f32, 1>\nexec.yield\n}}\n"
    )
    return parse_module("".join([*lines, "func.return\n}\n"]), registry())


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[None]:
    """One entry for each call of a method from here on."""
    calls: list[None] = []
    given = getattr(owner, name)

    def call(*arguments: Any) -> Any:
        calls.append(None)
        return given(*arguments)

    monkeypatch.setattr(owner, name, call)
    return calls


def faults_of(module: Module) -> list[StateFault]:
    (function,) = module.functions
    return [problem.fault for problem in fresh(MemoryStates, function).problems]


@pytest.mark.parametrize(("place", "times"), [("%c5", 2), ("%c0", 1)])
def test_nests_are_walked_twice_at_most(
    place: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = in_nests(10, place)
    walked = counted(monkeypatch, PartReader, "note")
    assert faults_of(module) == [StateFault.UNINITIALISED] * (times - 1)
    assert len(walked) <= times * sum(1 for _ in module.walk())


def test_many_nests_are_walked_twice_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    module = in_nests(40, "%c5")
    walked = counted(monkeypatch, PartReader, "note")
    assert faults_of(module) == [StateFault.UNINITIALISED]
    assert len(walked) <= 2 * sum(1 for _ in module.walk())


def test_proofs_of_a_function_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """What both branches found before is still known when parts use it up."""
    module = in_branches(120)
    proofs = counted(monkeypatch, KnownLeaves, "is_never_negative")
    assert faults_of(module) == []
    assert len(proofs) <= MOST_PROOFS


@pytest.mark.parametrize(("whole", "loads", "faults"), [(False, 0, 0), (False, 8, 9), (True, 8, 0)])
def test_beyond_the_budget_a_load_is_refused(whole: bool, loads: int, faults: int) -> None:
    """Stores leave proofs to loads; when loads use these up, the remedy helps."""
    found = diagnose_module(in_order(whole, 120, loads))
    assert [diagnostic.rule for diagnostic in found] == ["OP68"] * faults
    assert all("store the whole once before" in (each.remedy or "") for each in found)


def test_turns_that_are_looked_at_one_by_one_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty parts of each of 200 turns lie apart; those of the first parts are known."""
    head = HEAD.replace("f32, 64", "f32, 4096")
    lines = [head, "%c200 = scalar.constant 200 : index\n%c30 = scalar.constant 30 : index\n"]
    lines.append(
        "%turns = exec.serial(lower = [%c0], upper = [%c200], step = [%c1], "
        "initial = [%first]) : state { |%i: index, %a: state|\n"
        '%three = scalar.constant 3 : index\n%at = scalar.apply "mul"(%i, %three) : index\n'
    )
    state = "%a"
    for place in range(20):
        lines.append(f"%f{place} = scalar.constant {100 * place} : index\n")
        lines.append(f'%p{place} = scalar.apply "add"(%at, %f{place}) : index\n')
        lines.append(f"%s{place} = memory.store(%m, {state}, %t, [%p{place}]) : state\n")
        state = f"%s{place}"
    lines.append(f"exec.yield({state})\n}}\n%x = memory.load(%m, %turns, [%c30]) : tile<f32, 1>\n")
    module = parse_module("".join([*lines, "func.return\n}\n"]), registry())
    turns = counted(monkeypatch, PartReader, "_at")
    assert faults_of(module) == []
    assert 0 < len(turns) <= 1024


def test_leaves_are_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = in_branches(40)
    described = counted(monkeypatch, Leaves, "_describe")
    assert faults_of(module) == []
    assert len(described) <= 81


@pytest.mark.parametrize("seed", range(20))
def test_orders_hold_of_all_numbers(seed: int) -> None:
    choose = random.Random(seed)
    module = in_nests(1, "%c0")
    (nest,) = (op for op in module.walk() if isinstance(op, Serial))
    (function,) = module.functions
    leaves = Leaves()
    values = nest.body.arguments[0], function.body.arguments[1]
    index, bound = map(leaves.formula, values)
    numbers = [(i, n) for n in range(-3, 7) for i in range(n)]
    order, glances, found = PlaceOrder(leaves), PlaceOrder(leaves), 0
    for _ in range(200):
        (a, b, c), (d, e, f) = ([choose.randint(-2, 2) for _ in range(3)] for _ in range(2))
        one, other = index * a + bound * b + c, index * d + bound * e + f
        holds = all(a * i + b * n + c <= d * i + e * n + f for i, n in numbers)
        is_known = order.is_at_most(one, other)
        assert holds or not is_known
        # Without proofs less is known, and nothing else.
        is_seen = glances.is_at_most(one, other, 0)
        assert is_known or not is_seen
        found += is_known and not is_seen
    assert found
    assert glances.proofs == 0
