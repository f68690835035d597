"""Remaps one after the other, inside, at and around the nests that an earlier one left.

The judge of whether a remap may follow is the same remap of the same nests in a function that
remembers nothing; the judge of results is the interpreter of what was captured. Compiled code gives
the same bits: no remap here regroups a sum.
"""

# mypy: disable-error-code="untyped-decorator"
# `tn` is Any here, so its decorators are untyped.

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.oracle.compare import tn
from tilenest.analysis import ExecChain, chain_along, chain_to, remaps_of
from tilenest.dialects import Nest
from tilenest.errors import TileError
from tilenest.execution import identity
from tilenest.ir import Module, Rewriter, print_module
from tilenest.passes import Remapping
from tilenest.records import record
from tilenest.verify import verify_module

SHAPE = (6, 16)
FEW, MANY = 3, 40
SOURCE = np.random.default_rng(5).integers(-9, 9, SHAPE).astype(np.float32)


def grid(A: Any, C: Any) -> None:
    for i in tn.parallel(6):
        for j in i.parallel(16):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load() * 2.0)


def swept(A: Any, C: Any) -> None:
    """Every step sees what the one before left in the caller's array."""
    for i in tn.parallel(6):
        for k in i.serial(range(1, 16)):
            before = C.at(i.index(), k.index() - 1).load()
            C.at(i.index(), k.index()).store(before * 0.5 + A.at(i.index(), k.index()).load())


def summed(A: Any, C: Any) -> None:
    """A tile is made, handed on and stored between the nests."""
    u, n = tn.axis("u", 1), tn.axis("n", 4)
    for i in tn.parallel(6):
        total = tn.zeros((u, n), tn.float32)
        for k in i.serial(4):
            total = total * 0.5 + A[(i.index(), k.index() * 4), (u, n)]
        C((i.index(), 0), (u, n)).store(total)


def cube(A: Any, C: Any) -> None:
    for i in tn.parallel(6):
        for j in i.parallel(4):
            for k in j.serial(4):
                at = j.index() * 4 + k.index()
                C.at(i.index(), at).store(A.at(i.index(), at).load() + 1.0)


def anchored(A: Any, C: Any) -> None:
    """Reads stand between the nests."""
    for i in tn.parallel(6):
        factor = A.at(i.index(), 0).load()
        for j in i.parallel(4):
            more = A.at(i.index(), j.index()).load() * factor
            for k in j.serial(4):
                C.at(i.index(), j.index() * 4 + k.index()).store(more + A.at(k.index(), 1).load())


def owned(A: Any, C: Any) -> None:
    """A memory of each row, which all of its steps and columns use."""
    n = tn.axis("n", 4)
    for i in tn.parallel(6):
        kept = tn.memory(tn.float32, (n,))
        kept.store(tn.full((n,), 1, tn.float32))
        for k in i.serial(4):
            kept.store(kept.load() * 0.5 + A.at(i.index(), k.index()).load())
            for j in k.parallel(4):
                most = tn.reduce(kept.load(), n, tn.maximum)
                C.at(i.index(), k.index() * 4 + j.index()).store(most + 1.0)


def siblings(A: Any, C: Any) -> None:
    """Nests beside each other, in nests of one instance."""
    for one in tn.parallel(1):
        for i in one.parallel(6):
            for once in i.serial(1):
                C.at(i.index(), once.index()).store(A.at(i.index(), 1).load())
            for k in i.serial(15):
                C.at(i.index(), k.index() + 1).store(A.at(i.index(), k.index()).load())
        for i in one.parallel(6):
            for j in i.parallel(16):
                C.at(i.index(), j.index()).store(C.at(i.index(), j.index()).load() + 0.5)


def twins(A: Any, C: Any) -> None:
    """Two runs of nests with the same names and extents; one has memory of its own."""
    n = tn.axis("n", 4)
    for i in tn.parallel(6):
        for j in i.parallel(16):
            C.at(i.index(), j.index()).store(A.at(i.index(), j.index()).load() * 2.0)
    for i in tn.parallel(6):
        kept = tn.memory(tn.float32, (n,))
        kept.store(tn.full((n,), 1, tn.float32))
        for j in i.parallel(16):
            most = tn.reduce(kept.load(), n, tn.maximum)
            C.at(i.index(), j.index()).store(most + C.at(i.index(), j.index()).load())


def counted(A: Any, C: Any) -> None:
    """As many instances as the arguments say."""
    for i in tn.parallel(A.extent(0)):
        for j in i.parallel(tn.cdiv(A.extent(1), 4)):
            for k in j.serial(4):
                at = j.index() * 4 + k.index()
                C.at(i.index(), at).store(A.at(i.index(), at).load() + 1.0)


KERNELS = (grid, swept, summed, cube, anchored, owned, siblings, twins, counted)


STEPS: tuple[Callable[[Remapping, list[str], int], Remapping], ...] = (
    lambda plan, names, at: plan.split(names[at], 2),
    lambda plan, names, at: plan.split(names[at], 5),
    lambda plan, names, at: plan.fuse(*names[at : at + 2]),
    lambda plan, names, at: plan.unite(*names[at : at + 2]),
    lambda plan, names, at: plan.permute(*reversed(names[at : at + 2])),
    lambda plan, names, at: plan.insert_unit(at, f"unit{len(names)}"),
    lambda plan, names, at: plan.insert_unit(at + 1, f"unit{len(names)}", "parallel"),
    lambda plan, names, at: plan.remove_unit(names[at]),
)


def steps(random_: random.Random, plan: Remapping) -> Remapping:
    """Up to two steps; one that there is not leaves the plan as it is."""
    for _ in range(random_.randint(0, 2)):
        names = [level.identity for level in plan.levels.levels]
        try:
            plan = random_.choice(STEPS)(plan, names, random_.randrange(max(len(names), 1)))
        except (TileError, IndexError):
            continue
    return plan


def run_of(random_: random.Random, module: Module) -> ExecChain | None:
    """The nests down to any one, or only the last of these."""
    found = [chain_to(op) for op in module.walk() if isinstance(op, Nest)]
    if not found:
        return None
    nests = random_.choice(found).nests
    return chain_along(nests[-random_.randint(1, len(nests)) :])


@record
class Turns:
    """Two or three remaps, which a number and the nests there are decide."""

    seed: int

    def plans(self, module: Module) -> Iterator[Remapping]:
        """Each one is of the nests that the one before left."""
        for turn in range(2 + self.seed % 2):
            random_ = random.Random(f"{self.seed} {turn}")
            chain = run_of(random_, module)
            if chain is not None:
                yield steps(random_, Remapping(module, chain, identity(chain.structure)))


def is_applied(plan: Remapping) -> bool:
    try:
        plan.apply()
    except tn.RemapError:
        return False
    return True


def interpreted(module: Module, shuffle: int | None = None) -> np.ndarray[Any, Any]:
    target = np.full(SHAPE, 77, np.float32)
    tn.interpret(module, [SOURCE, target], shuffle=shuffle)
    return target


def forget(module: Module) -> None:
    for function in module.functions:
        if remaps_of(function):
            Rewriter().set_function_attribute(function, "remaps", ())


def check(kernel: Any, turns: Turns) -> None:
    extents = (None, None) if kernel is counted else SHAPE
    spec = tn.spec(extents, tn.float32)
    module, forgetful = (tn.kernel(kernel).capture(spec, spec) for _ in range(2))
    expected = interpreted(module)
    done = []
    for plan, alone in zip(turns.plans(module), turns.plans(forgetful), strict=True):
        forget(forgetful)
        done.append(str(plan))
        assert is_applied(plan) == is_applied(alone), done
    for shuffle in (None, 3):
        np.testing.assert_array_equal(interpreted(module, shuffle), expected, err_msg=str(done))
    verify_module(tn.parse(print_module(module)))
    target = np.full(SHAPE, 77, np.float32)
    tn.kernel(kernel).rearranged(
        lambda captured: [is_applied(plan) for plan in turns.plans(captured)]
    )(SOURCE, target)
    np.testing.assert_array_equal(target, expected, err_msg=str(done))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_remaps_of_nests_that_are_alike(order: tuple[int, int]) -> None:
    """The record of each could be that of the other, but for the memory."""
    spec = tn.spec(SHAPE, tn.float32)
    module = tn.kernel(twins).capture(spec, spec)
    expected = interpreted(module)
    leaves = [
        nest
        for nest in module.walk()
        if isinstance(nest, Nest) and isinstance(nest.parent_op, Nest)
    ]
    for place in order:
        chain = chain_to(leaves[place])
        Remapping(module, chain, identity(chain.structure)).split("j", 2).apply()
    np.testing.assert_array_equal(interpreted(module), expected)


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    # What was compiled before is compiled again.
    monkeypatch.setenv("TILENEST_CACHE", "0")


@pytest.mark.parametrize("kernel", KERNELS)
def test_remaps_in_turn(kernel: Any) -> None:
    for seed in range(FEW):
        check(kernel, Turns(seed))


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_many_remaps_in_turn(kernel: Any) -> None:
    for seed in range(FEW, MANY):
        check(kernel, Turns(seed))
