"""Anchors, owners and visibility, against what the interpreter does and against plain definitions.

The interpreter's steps are watched: an operation that runs twice with equal coordinates above its
anchor has to compute the same; an access has to reach the memory that its owner's instance made.
The anchor of what has no effects is also what a naive walk over its operands says.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.random_programs import PLACES, SIZE, TILES, Writer, function_of, open_nest
from tests.unit.passes.remapped import CASES, captured, results
from tilenest import language
from tilenest.analysis import ExecutionStructure, Place
from tilenest.dialects import MemoryLoad, MemoryStore, Nest, Parallel, Store
from tilenest.interp import interpret
from tilenest.interp.frame import Frame
from tilenest.ir import BlockArgument, Function, Module, Operation, OpResult, Rewriter, Value, fresh

INSTANCES = 3


def nests_around(op: Operation) -> list[Operation]:
    """By following parents only."""
    found: list[Operation] = []
    holder = op.parent_op
    while holder is not None:
        if isinstance(holder, Nest):
            found.insert(0, holder)
        holder = holder.parent_op
    return found


def coordinates(frame: Frame, op: Operation) -> tuple[int, ...]:
    """Where a running operation is."""
    point: list[int] = []
    for nest in nests_around(op):
        assert isinstance(nest, Nest)
        block = next(r.block for r in nest.regions if any(o is op for o in r.walk()))
        point += [int(frame.values[a]) for a in block.arguments[: nest.rank]]  # type: ignore[arg-type]  # index arguments are arrays
    return tuple(point)


def structure_of(module: Module) -> ExecutionStructure:
    function = module.functions.first
    assert function is not None
    return fresh(ExecutionStructure, function)


class Watch:
    """Every step of an interpreted call: the operation, its coordinates, and what it gave."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[tuple[Operation, tuple[int, ...], Any, Any]] = []
        plain = Frame.step

        def step(frame: Frame, op: Operation) -> Any:
            produced = plain(frame, op)
            if not frame.lifted and not op.TERMINATOR:
                operands = [frame.values.get(value) for value in op.operands]
                self.steps.append((op, coordinates(frame, op), list(produced), operands))
            return produced

        monkeypatch.setattr(Frame, "step", step)


def random_kernel(seed: int) -> Module:
    """A random program as the body of a parallel whose instances share its arguments."""
    head, *body = Writer(seed).text().splitlines()
    text = "\n".join(
        [
            head,
            f"    for block in tn.parallel({INSTANCES}):",
            "        w = block.index()",
            *(f"    {line.replace('Y(', f'Y(w * {PLACES * SIZE} + ')}" for line in body),
        ]
    )
    names = SimpleNamespace(root_or_inner=open_nest, parallel=language.parallel)
    kernel = tn.kernel(function_of(text + "\n", names))
    x = tn.spec((len(TILES) * SIZE,), tn.int32)
    y = tn.spec((PLACES * SIZE * INSTANCES,), tn.int32)
    return kernel.capture(x, np.int64(2), y)


def check_trace(structure: ExecutionStructure, watch: Watch) -> None:
    seen: dict[tuple[Operation, tuple[int, ...]], list[Any]] = {}
    for op, point, produced, _ in watch.steps:
        place = structure.place(op)
        assert len(point) == len(place.levels), op.NAME
        if op.effects() and not op.regions:
            continue
        key = (op, point[: place.anchor.depth])
        arrays = [value for value in produced if isinstance(value, np.ndarray)]
        before = seen.setdefault(key, arrays)
        for one, other in zip(before, arrays, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=f"{op.NAME} {point} {place}")


@pytest.mark.parametrize("seed", range(12))
def test_execution_structure_of_random_programs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value is the same wherever the coordinates above its anchor are; anchors come before
    frontiers; what has effects runs as often as it stands there."""
    module = random_kernel(seed)
    structure = fresh(ExecutionStructure, module.function("kernel"))
    watch = Watch(monkeypatch)
    x = np.arange(len(TILES) * SIZE, dtype=np.int32)
    interpret(module, [x, 2, np.zeros(PLACES * SIZE * INSTANCES, np.int32)])
    check_trace(structure, watch)
    for op, place in structure.places.items():
        assert place.anchor.depth <= place.frontier.depth <= len(place.levels)
        if isinstance(op, Store):
            assert place.anchor.depth == len(place.levels)
        assert place.anchor.depth == naive_depth(op, place), op.NAME


@pytest.mark.parametrize("name", CASES)
def test_execution_structure_of_kernels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, for kernels with memory, patches, stages and loads of what is written."""
    module = captured(CASES[name])
    structure = structure_of(module)
    watch = Watch(monkeypatch)
    results(CASES[name], module)
    check_trace(structure, watch)


def test_execution_structure_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two accesses reach one memory exactly where their owners are one instance."""
    module = captured(CASES["owned"])
    structure = structure_of(module)
    watch = Watch(monkeypatch)
    results(CASES["owned"], module)
    owner_of: dict[int, tuple[int, ...]] = {}
    accesses = 0
    for op, point, _, operands in watch.steps:
        if isinstance(op, MemoryLoad | MemoryStore):
            owner = structure.owners[op.memory]
            assert structure.may_see(op, op.memory)
            assert owner.cut.depth == 1
            instance = point[: owner.cut.depth]
            assert owner_of.setdefault(id(operands[0]), instance) == instance
            accesses += 1
    assert len(owner_of) == len(set(owner_of.values())) == 3
    assert accesses > 3 * len(owner_of)


def test_execution_structure_visibility() -> None:
    """Memory of a parallel's instances is not visible outside of it."""
    function = captured(CASES["owned"]).functions.first
    assert function is not None
    structure = fresh(ExecutionStructure, function)
    (memory,) = [m for m, owner in structure.owners.items() if owner.nest is not None]
    for op in function.walk():
        inside = any(isinstance(nest, Parallel) and nest.rank == 1 for nest in nests_around(op))
        assert structure.may_see(op, memory) == inside
        assert structure.may_see(op, function.arguments[0])


def naive_depth(op: Operation, place: Place) -> int:
    """The anchor of an operation without effects, by the coordinates that its operands come from;
    that of another one is where it stands."""
    if op.TERMINATOR or any(nested.effects() for nested in op.walk()):
        return place.anchor.depth if reads_only(op) else len(place.levels)
    levels = [(level.nest, level.axis) for level in place.levels]
    found = {level for value in taken(op) for level in origins(value, set())}
    return max((levels.index(level) + 1 for level in found if level in levels), default=0)


def reads_only(op: Operation) -> bool:
    return not op.TERMINATOR and {
        effect.kind.value for nested in op.walk() for effect in nested.effects()
    } <= {"read", "allocate"}


def taken(op: Operation) -> Iterator[Value]:
    """Every value that is used in an operation and comes from outside of it."""
    for nested in op.walk():
        for value in nested.operands:
            block = value.defining_block
            assert block is not None
            holder = value.owner if isinstance(value, OpResult) else block.parent_op
            if holder is None or not op.is_ancestor_of(holder):
                yield value


def origins(value: Value, seen: set[Value]) -> Iterator[tuple[Operation, int]]:
    """The axes of the nests whose coordinates a value comes from."""
    if value in seen:
        return
    seen.add(value)
    if isinstance(value, OpResult):
        if any(nested.effects() for nested in value.owner.walk()):
            yield from effect_origins(value.owner)
        for operand in taken(value.owner):
            yield from origins(operand, seen)
        return
    assert isinstance(value, BlockArgument)
    nest = value.block.parent_op
    if not isinstance(nest, Nest):
        return
    if value.index < nest.rank:
        yield nest, value.index
        for group in (nest.lower, nest.upper, nest.step):
            yield from origins(group[value.index], seen)
    else:
        yield from ((nest, axis) for axis in range(nest.rank))
        if any(nested.effects() for nested in nest.walk()):
            yield from effect_origins(nest)
        for operand in taken(nest):
            yield from origins(operand, seen)


def effect_origins(op: Operation) -> Iterator[tuple[Operation, int]]:
    """All nests around what writes; reads of these programs see arguments that stay as they are,
    or what is written in every nest around."""
    if not reads_only(op):
        for nest in nests_around(op):
            assert isinstance(nest, Nest)
            yield from ((nest, axis) for axis in range(nest.rank))


def test_execution_structure_is_kept_and_dropped() -> None:
    """The answer is the manager's: an edit of the function drops it, and a name does not."""
    function: Function | None = captured(CASES["gemm"]).functions.first
    assert function is not None
    rewriter = Rewriter()
    first = rewriter.analyses.get(ExecutionStructure, function)
    rewriter.set_name(function.arguments[0], "other")
    assert rewriter.analyses.get(ExecutionStructure, function) is first
    nest = next(op for op in function.walk() if isinstance(op, Nest))
    rewriter.set_operand(nest, 0, nest.operands[2])
    assert not rewriter.analyses.is_known(ExecutionStructure, function)
