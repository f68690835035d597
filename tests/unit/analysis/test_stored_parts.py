"""What knowing the stored parts costs, in operations walked and proofs, and that orders are right.

The counts are of programs that are as bad as they get: many nests around a load that nothing
explains, and many parts at places of which nothing is known. Orders are judged by all numbers.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tilenest.analysis import MemoryStates, StateFault
from tilenest.analysis.index_values import KnownLeaves, Leaves
from tilenest.analysis.place_order import MOST_PROOFS, PlaceOrder
from tilenest.analysis.stored_parts import PartReader
from tilenest.dialects import Reindex, Serial, registry
from tilenest.ir import Module, Rewriter, fresh, parse_module
from tilenest.layouts import AffineMap, Const
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


def filled(name: str, entry: str, end: str) -> str:
    """A loop that stores all before a place, with this name and state."""
    return (
        f"%{name} = exec.serial(lower = [%c0], upper = [{end}], step = [%c1], "
        f"initial = [{entry}]) : state {{ |%j{name}: index, %a{name}: state|\n"
        f"%t{name} = memory.store(%m, %a{name}, %t, [%j{name}]) : state\n"
        f"exec.yield(%t{name})\n}}\n"
    )


def in_branches(count: int) -> Module:
    """Two branches that store parts at places of which no two are known to be in order, and then
    all up to an index of a loop and up to its end; what both share is loaded."""
    lines = [HEAD, '%u = scalar.apply "maximum"(%n, %c0) : index\n']
    lines.append("exec.serial(lower = [%c0], upper = [%u], step = [%c1]) { |%i: index|\n")
    lines.append('%next = scalar.apply "add"(%i, %c1) : index\n')
    lines.append("%k, %empty = memory.allocate : (memory<f32, 64>, state)\n")
    lines.append("%start = memory.store(%k, %empty, %t, [%c0]) : state\n")
    ends: list[list[str]] = []
    for branch, end in enumerate(("%next", "%u")):
        state = "%start"
        ends.append([])
        for store in range(count):
            name = f"{branch}_{store}"
            factor = 2 * store + 3 + branch
            ends[branch] += [
                f"%f{name} = scalar.constant {factor} : index\n",
                f'%p{name} = scalar.apply "mul"(%n, %f{name}) : index\n',
                f"%s{name} = memory.store(%k, {state}, %t, [%p{name}]) : state\n",
            ]
            state = f"%s{name}"
        ends[branch].append(filled(f"all{branch}", state, end).replace("%m", "%k"))
        ends[branch].append(f"exec.yield(%all{branch})\n")
    one, other = map("".join, ends)
    lines.append(f"%both = exec.if(%c) : state {{\n{one}}} {{\n{other}}}\n")
    lines.append("%x = memory.load(%k, %both, [%c0]) : tile<f32, 1>\n")
    lines.append("%y = memory.load(%k, %both, [%i]) : tile<f32, 1>\nexec.yield\n}\n")
    return parse_module("".join([*lines, "func.return\n}\n"]), registry())


def in_order(whole: bool, stores: int, loads: int) -> Module:
    """A loop that loads what one before it stored, behind stores and loads of unknown places."""
    lines, state = [HEAD, '%u = scalar.apply "maximum"(%n, %c0) : index\n'], "%first"
    if whole:
        lines.append("%w = tile.load(%v, [%c0]) : tile<f32, 64>\n")
        lines.append("%all = memory.store(%m, %first, %w) : state\n")
        state = "%all"
    lines.append(filled("band", state, "%u"))
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


@pytest.mark.parametrize(("count", "faults"), [(3, 0), (120, 1)])
def test_proofs_of_a_function_have_a_budget(
    count: int, faults: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What both branches found before is still known when parts use it up; what both share after
    that is known no more."""
    module = in_branches(count)
    proofs = counted(monkeypatch, KnownLeaves, "is_never_negative")
    assert faults_of(module) == [StateFault.UNINITIALISED] * faults
    assert len(proofs) <= MOST_PROOFS


def test_what_two_ways_share_has_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows on one way cross columns on the other, in more and more elements."""

    @tn.kernel
    def kernel(Y: Any, n: Any) -> None:
        held = tn.memory(tn.float32, (128, 128))
        for level in range(2):
            if n > level:
                held((0, 0), (1, 128)).store(1.0)
                for i in range(1, 64):
                    held((2 * i, 0), (1, 128)).store(1.0)
            else:
                for i in range(64):
                    held((0, 2 * i), (128, 1)).store(1.0)
        # What the first row shares is found first.
        Y((0, 0), (1, 1)).store(held((0, 126), (1, 1)).load())

    united = counted(monkeypatch, PartReader, "_united")
    shared = counted(monkeypatch, PartReader, "_shared")
    kernel.capture(np.zeros((1, 1), np.float32), 1)
    stores = 2 * 2 * 64
    assert 64 <= len(shared) <= 1000
    assert len(united) <= 128 * stores + (1 << 15)


@pytest.mark.parametrize(
    ("whole", "stores", "loads", "faults"),
    [(False, 120, 0, 0), (False, 480, 0, 0), (False, 120, 8, 9), (True, 120, 8, 0)],
)
def test_beyond_the_budget_a_load_is_refused(
    whole: bool, stores: int, loads: int, faults: int
) -> None:
    """Stores leave proofs to loads, however many there are; when loads use these up, the remedy
    helps."""
    found = diagnose_module(in_order(whole, stores, loads))
    assert [diagnostic.rule for diagnostic in found] == ["OP68"] * faults
    assert all("store the whole once before" in (each.remedy or "") for each in found)


def test_an_answer_goes_with_any_attribute_of_what_computes_a_place() -> None:
    """Two places are the same element of a tile until one is another element."""

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (8,))
        places: Any = X[0, 4]
        held((places.at(1),), (1,)).store(1.0)
        Y(0, 1).store(held((places.at(1),), (1,)).load())

    module = kernel.capture(np.zeros(8, np.int64), np.zeros(8, np.float32))
    (function,) = module.functions
    rewriter = Rewriter()
    assert rewriter.analyses.get(MemoryStates, function).problems == ()
    *_, second = (op for op in module.walk() if isinstance(op, Reindex))
    rewriter.set_attribute(second, "map", AffineMap(0, 0, (Const(2),)))
    (problem,) = rewriter.analyses.get(MemoryStates, function).problems
    assert problem.fault is StateFault.UNINITIALISED


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
    assert faults_of(module) == [StateFault.UNINITIALISED]
    # The places, the number that they are made of, indices and the end of the loops.
    assert len(described) <= 80 + 1 + 3 + 1


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
        is_known = order.is_at_most(one, other, budget=MOST_PROOFS)
        assert holds or not is_known
        # Without proofs less is known, and nothing else.
        is_seen = glances.is_at_most(one, other, budget=0)
        assert is_known or not is_seen
        found += is_known and not is_seen
    assert found
    assert glances.proofs == 0
