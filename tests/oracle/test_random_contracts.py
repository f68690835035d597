"""Random nests that say different things of themselves, rearranged at random.

Parallels of several scopes around nests that hand a state on: serial ones, pipelines of several
windows, reductions with trusted laws that hold for their own steps, and often for no others. The
judge is NumPy in whole numbers, of the program as written; it is asked again of what the compiler
leaves, since only that makes use of a law.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import pytest

from tests.oracle.compare import tn
from tests.unit.ir.photograph import photograph
from tests.unit.passes.test_remap import step
from tilenest.dialects import Nest, Parallel, Pipeline, Reduce, ReductionContract
from tilenest.errors import RemapError, TileError
from tilenest.interp import interpret
from tilenest.ir import Module, Rewriter
from tilenest.machine import AVX2, cpu_target
from tilenest.passes import SCHEDULE_PASSES, Remapping, lower_machine, remap
from tilenest.records import record

Array = np.ndarray[Any, Any]
POLICIES = ("fold_left", "unordered_tree")
FEW, MANY = 30, 400
SCOPES = (("auto", "auto"), ("worker", "worker"), ("worker", "vector"), ("auto", "vector"))
LAW = 'laws = [#state_law<merge = "@join", identity = 0, is_exact = true>], provenance = "trusted"'


@record
class Program:
    """Two parallels, three nests that carry a state, and a body `x + s`, or `x - s`. An even number
    of the latter adds something to the state, so that a sum is the law of some steps only."""

    scopes: tuple[str, str]
    grid: tuple[int, int]
    kinds: tuple[str, ...]
    extents: tuple[int, ...]
    body: str

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.grid, *self.extents)

    def module(self) -> Module:
        """The program, in Candidate form."""
        constants = sorted({0, 1, *self.shape})
        lines = ['module "candidate"', ""]
        view = (
            f"view<i32, [{', '.join(map(str, self.shape))}], [{', '.join(map(str, self.strides))}]>"
        )
        out = f"view<i32, [{', '.join(map(str, self.grid))}], [{self.grid[1]}, 1]>"
        lines.append(f"func @f(%A: {view}, %C: {out}) with (alias_groups = [0, 1]) {{")
        lines += [f"%c{n} = scalar.constant {n} : index" for n in constants]
        lines.append("%zero = scalar.constant 0 : i32")
        for place, (name, scope) in enumerate(zip("pq", self.scopes, strict=True)):
            end = self.grid[place]
            lines.append(
                f"exec.parallel(lower = [%c0], upper = [%c{end}], step = [%c1], "
                f'scope = "{scope}") {{ |%{name}: index|'
            )
        states = ["%zero", "%s0", "%s1", "%s2"]
        for place, kind in enumerate(self.kinds):
            name, _, said = kind.partition(" ")
            lines.append(
                f"%r{place} = exec.{name}(lower = [%c0], upper = [%c{self.extents[place]}], "
                f"step = [%c1], initial = [{states[place]}]{said and ', ' + said}) : i32 "
                f"{{ |%{'ijk'[place]}: index, %s{place}: i32|"
            )
        lines.append("%x = tile.load(%A, [%p, %q, %i, %j, %k]) : i32")
        lines.append(f'%n = scalar.apply "{self.body}"(%x, %s2) : i32')
        lines += ["exec.yield(%n)", "}", "exec.yield(%r2)", "}", "exec.yield(%r1)", "}"]
        lines += ["tile.store(%C, [%p, %q], %r0)", *["exec.yield", "}"] * 2, "func.return", "}"]
        lines += ["", "func @join(%a: i32, %b: i32) -> (i32) {"]
        lines += ['%c = scalar.apply "add"(%a, %b) : i32', "func.return(%c)", "}"]
        module: Module = tn.parse("\n".join(lines))
        return module

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(prod(self.shape[place + 1 :]) for place in range(len(self.shape)))

    def expected(self, source: Array) -> Array:
        total = np.zeros(self.grid, np.int32)
        for place in np.ndindex(*self.extents):
            x = source[(slice(None), slice(None), *place)]
            total = x + total if self.body == "add" else x - total
        return total


def program(random_: random.Random) -> Program:
    body = random_.choice(["add", "sub", "sub"])
    extents = [random_.choice([1, 2, 2, 3]) for _ in range(3)]
    extents[random_.randrange(3)] = random_.choice([64, 66, 72])
    kinds = []
    for place in range(3):
        has_law = body == "add" or prod(extents[place + 1 :]) % 2 == 0
        kinds.append(kind_of(random_, has_law and random_.random() < 0.7))
    grid = random_.randint(1, 2), random_.randint(1, 2)
    return Program(random_.choice(SCOPES), grid, tuple(kinds), tuple(extents), body)


def kind_of(random_: random.Random, has_law: bool) -> str:
    match random_.choice(["serial", "pipeline", *["reduce"] * 4]):
        case "pipeline":
            return f"pipeline window = {random_.choice([0, 2, 4])}"
        case "reduce":
            policy = random_.choice(
                [*["fold_left"] * 3, "unordered_tree" if has_law else "fold_left"]
            )
            laws = f", {LAW}" if has_law else ""
            return f'reduce contract = #reduction_contract<policy = "{policy}"{laws}>'
    return "serial"


def planned(random_: random.Random, module: Module) -> Remapping:
    """Up to three steps; one that there is not leaves the plan as it is."""
    plan = remap(module, "k", function="f")
    for _ in range(random_.randint(1, 3)):
        try:
            plan = step(random_, plan) if random_.random() < 0.4 else joined(random_, plan)
        except TileError:
            continue
    return plan


def joined(random_: random.Random, plan: Remapping) -> Remapping:
    """Two adjacent levels made one, or axes of one nest."""
    names = [level.identity for level in plan.levels.levels]
    at = random_.randrange(len(names))
    join = random_.choice([plan.fuse, plan.unite])
    return join(*names[at : at + 2])


def said_of(module: Module) -> set[tuple[type[Nest], object]]:
    """What the nests say of themselves."""
    found: set[tuple[type[Nest], object]] = set()
    for op in module.walk():
        match op:
            case Parallel():
                found.add((Parallel, op.scope))
            case Pipeline():
                found.add((Pipeline, op.window))
            case Reduce():
                found.add((Reduce, op.contract))
    return found


def ran(module: Module, source: Array, grid: Sequence[int], shuffle: int | None = None) -> Array:
    target = np.full((grid[0] + 2, grid[1]), 77, np.int32)
    interpret(module, [source, target[1:-1]], shuffle=shuffle)
    assert (target[[0, -1]] == 77).all()
    return target[1:-1]


def check(seed: int) -> bool:
    """Whether a remap was applied."""
    random_ = random.Random(seed)
    made = program(random_)
    source = np.random.default_rng(seed).integers(-99, 99, made.shape).astype(np.int32)
    wanted = made.expected(source)
    module = made.module()
    before, said = photograph(module), said_of(module)
    plan = planned(random_, module)
    try:
        plan.apply()
    except RemapError:
        assert photograph(module) == before, str(plan)
        return False
    # A nest of levels of one instance, put in or taken from other work, claims nothing.
    plain = {(Reduce, ReductionContract(policy)) for policy in POLICIES}
    assert said_of(module) <= {*said, *plain, (Parallel, "auto"), (Pipeline, 0)}, str(plan)
    for shuffle in (None, seed):
        found = ran(module, source, made.grid, shuffle)
        np.testing.assert_array_equal(found, wanted, err_msg=str(plan))
    rewriter = Rewriter()
    for _, pass_ in SCHEDULE_PASSES:
        pass_(module, cpu_target(AVX2), rewriter)
    found = ran(lower_machine(module), source, made.grid)
    np.testing.assert_array_equal(found, wanted, err_msg=str(plan))
    return True


def test_random_remaps_of_nests_that_differ() -> None:
    assert sum(check(seed) for seed in range(FEW)) > FEW // 3


@pytest.mark.slow
def test_many_random_remaps_of_nests_that_differ() -> None:
    assert sum(check(seed) for seed in range(FEW, MANY)) > MANY // 3
