"""Random legal edits of modules in every form, through a rewriter.

In: a module and a seed. Out: the module edited: operations erased, copied and moved, operands and
attributes changed for others of their kind, contracts among them, functions and labels. What the
verifier refuses is undone, so that every edit leaves a legal module.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tilenest as tn
from tests.unit.analysis.random_functions import forms
from tilenest import library
from tilenest.errors import SourceLocation
from tilenest.ir import (
    Block,
    Module,
    Operation,
    Rewriter,
    Value,
    clone_module,
)
from tilenest.machine import AVX2, cpu_target
from tilenest.passes import SCHEDULE_PASSES, lower_machine
from tilenest.records import fields_of, is_record, replace
from tilenest.verify import diagnose_module

TARGET = cpu_target(AVX2)
WORDS = {
    "policy": ("unordered_tree", "ordered_tree", "fold_left", "fold_right"),
    "scope": ("?", "auto", "device", "group", "worker"),
    "kind": ("plain", "vector", "unrolled"),
    "bounds": ("zero", "check", "assume"),
    "function": ("add", "mul", "maximum", "neg", "sub"),
    "order": ("ascending", "descending", "source"),
    "ties": ("first", "last", "any"),
    "resource": ("auto", "private", "shared"),
}


class Edits:
    """A module under edits."""

    def __init__(self, module: Module, seed: int) -> None:
        self.module = module
        self.chance = random.Random(seed)
        self.rewriter = Rewriter()
        self.done: Counter[str] = Counter()
        self.kinds: tuple[Callable[[], bool], ...] = (
            self.erase,
            self.copy,
            self.move,
            self.operand,
            self.operand,
            self.attribute,
            self.attribute,
            self.attribute,
            self.function,
            self.label,
        )

    def edit(self) -> None:
        """One edit; nothing where the verifier refuses it."""
        kind = self.chance.choice(self.kinds)
        with self.rewriter.transaction() as opened:
            if not kind():
                return
            rules = {found.rule for found in diagnose_module(self.module)}
            if rules == {"OP68"}:
                # That something is read too early is an answer like others.
                self.rewriter.analyses.check()
            if rules or self.chance.random() < 0.05:
                opened.rollback()
                self.done["undone"] += 1
                return
        self.done[kind.__name__] += 1

    def any_op(self) -> Operation:
        return self.chance.choice(list(self.module.walk()))

    # Kinds -----------------------------------------------------------------------------------

    def erase(self) -> bool:
        op = self.any_op()
        if op.TERMINATOR or any(result.has_uses for result in op.results):
            return False
        self.rewriter.erase(op)
        return True

    def copy(self) -> bool:
        op = self.any_op()
        if op.TERMINATOR or sum(1 for _ in self.module.walk()) > 120:
            return False
        self.rewriter.clone_before(op, op, {})
        return True

    def move(self) -> bool:
        op = self.any_op()
        block = op.parent
        assert block is not None
        place = self.chance.choice(list(block.operations))
        if op.TERMINATOR or place is op:
            return False
        self.rewriter.move_before(op, place)
        return True

    def operand(self) -> bool:
        op = self.any_op()
        if not op.operands:
            return False
        index = self.chance.randrange(len(op.operands))
        old = op.operands[index]
        others = [v for v in _visible(op) if v.type == old.type and v is not old]
        if not others:
            return False
        self.rewriter.set_operand(op, index, self.chance.choice(others))
        return True

    def attribute(self) -> bool:
        op = self.any_op()
        if not op.attributes:
            return False
        name = self.chance.choice(list(op.attributes))
        old = op.attributes[name]
        alike = [o.attributes.get(name) for o in self.module.walk() if type(o) is type(op)]
        new = self.chance.choice([self.varied(name, old), self.chance.choice(alike)])
        if new == old or type(new) is not type(old):
            return False
        self.rewriter.set_attribute(op, name, new)
        return True

    def function(self) -> bool:
        function = self.chance.choice(list(self.module.functions))
        places = range(len(function.arguments))
        groups = tuple(self.chance.choice((place, 0)) for place in places)
        name, value = self.chance.choice(
            (("alias_groups", groups), ("title", self.chance.random()))
        )
        self.rewriter.set_function_attribute(function, str(name), value)
        return True

    def label(self) -> bool:
        op = self.any_op()
        if op.results and self.chance.random() < 0.5:
            self.rewriter.set_name(self.chance.choice(op.results), f"n{self.chance.randrange(99)}")
        else:
            place = SourceLocation("here.py", self.chance.randrange(1, 99), 0, 1, "f", "")
            self.rewriter.set_location(op, (place,))
        return True

    # Values of attributes --------------------------------------------------------------------

    def varied(self, name: str, value: Any) -> Any:
        """Another value of the same type: one part of it is changed."""
        if isinstance(value, bool):
            return not value
        if isinstance(value, int):
            return value + self.chance.choice((-1, 1, 8))
        if isinstance(value, str):
            return self.chance.choice(WORDS.get(name, (value,)))
        if isinstance(value, tuple) and value:
            place = self.chance.randrange(len(value))
            return (*value[:place], self.varied(name, value[place]), *value[place + 1 :])
        if is_record(value) and fields_of(type(value)):
            field = self.chance.choice(list(fields_of(type(value))))
            try:
                return replace(value, **{field: self.varied(field, getattr(value, field))})
            except (tn.TileError, AssertionError, ValueError):
                return value
        return value


def _visible(op: Operation) -> Iterator[Value]:
    """What is defined before an operation, in its block and in those around it."""
    holder: Operation | None = op
    while holder is not None and holder.parent is not None:
        block: Block = holder.parent
        yield from block.arguments
        before = holder.previous
        while before is not None:
            yield from before.results
            before = before.previous
        holder = block.parent_op


# Modules ---------------------------------------------------------------------------------------


@tn.kernel
def piped(X: Any, Y: Any) -> None:
    rows, columns = tn.axis("r", 8), tn.axis("c", 8)
    for block in tn.parallel(2):
        total: Any = tn.zeros((rows, columns), tn.float32)
        for step in block.pipeline(4, window=2):
            step.stage("load")
            x = X[(step.index() * 8, 0), (rows, columns)]
            step.stage("sum")
            total = total + x * x
        Y((block.index() * 8, 0), (rows, columns)).store(total)


@tn.kernel
def reduced(X: Any, Y: Any) -> None:
    rows, columns = tn.axis("r", 8), tn.axis("c", 32)
    for block in tn.parallel(4):
        x = X[(block.index() * 8, 0), (rows, columns)]
        kept = tn.reduce(x, columns, tn.maximum, policy=tn.reduction.fold_left)
        total = tn.reduce(x, columns, tn.add)
        Y((0, block.index() * 8), (1, rows)).store(kept + total)


@tn.kernel
def multiplied(X: Any, Y: Any) -> None:
    m, n, k = tn.axis("m", 8), tn.axis("n", 16), tn.axis("k", 32)
    for block in tn.parallel(2, 1):
        i, j = block.index()
        a = X[(i * 8, 0), (m, k)]
        b = X[(0, j * 16), (k, n)]
        product: Any = tn.zeros((m, n), tn.float32)
        Y((i * 8, j * 16), (m, n)).store(tn.mma(a, b, product))


@tn.kernel
def chosen(X: Any, Y: Any) -> None:
    rows, columns = tn.axis("r", 4), tn.axis("c", 32)
    for block in tn.parallel(4):
        cells = tn.memory(tn.float32, (rows, columns))
        cells.store(X[(block.index() * 4, 0), (rows, columns)] + 1.0)
        loaded: Any = cells.load()
        best: Any = library.argmax(loaded, columns)
        Y((0, block.index() * 4), (1, rows)).store(best.cast(tn.float32))


@tn.kernel
def placed(X: Any, Y: Any) -> None:
    for block in tn.parallel(2):
        held = tn.memory(tn.float32, (8, 4))
        places: Any = X[(block.index(), 0), (1, 4)].cast(tn.int64)
        held((places.at(0, 1), 0), (1, 4)).store(1.0)
        Y((block.index(), 0), (1, 4)).store(held((places.at(0, 1), 0), (1, 4)).load())


KERNELS = (piped, reduced, multiplied, chosen, placed)


def modules(seed: int) -> Iterator[Module]:
    """Kernels of all kinds in every form, and one random kernel up to Scheduled."""
    for module in forms(seed):
        yield clone_module(module)
    for kernel in KERNELS:
        yield from _stages(kernel)


def staged(kernel: tn.Kernel, form: str) -> Module:
    """A kernel when it has just come to a form, Scheduled when all of it is planned."""
    found = [module for module in _stages(kernel) if module.form == form]
    return found[-1]


def _stages(kernel: tn.Kernel) -> Iterator[Module]:
    arrays = np.zeros((32, 32), np.float32), np.zeros((32, 32), np.float32)
    module = clone_module(kernel.capture(*arrays))
    yield clone_module(module)
    rewriter, form = Rewriter(), module.form
    for _, step in SCHEDULE_PASSES:
        list(step(module, TARGET, rewriter))
        if module.form != form:
            form = module.form
            yield clone_module(module)
    yield clone_module(module)
    yield lower_machine(module)
