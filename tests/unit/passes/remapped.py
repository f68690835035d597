"""Kernels whose levels the remap tests rearrange, and what they are called with.

In: the name of a case. Out: a fresh Candidate module and arguments; the array that is written
starts as numbers that no kernel leaves, between guards. Kernels read what they write, so that an
instance that runs twice, or not at all, shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilenest as tn
from tilenest.execution import ExecRemap, ExecStructure
from tilenest.interp import interpret
from tilenest.ir import Module
from tilenest.layouts import DimRef, Expressions, IndexSet
from tilenest.records import record


@tn.kernel
def gemm(A, B, C):
    m, n, k = tn.axis("m", 4), tn.axis("n", 4), tn.axis("k", 2)
    for block in tn.parallel(3, 2):
        i, j = block.index()
        acc = tn.zeros((m, n), tn.float32)
        for step in block.serial(5):
            a = A[(i * 4, step.index() * 2), (m, k)]
            b = B[(step.index() * 2, j * 4), (k, n)]
            acc = tn.mma(a, b, acc)
        C((i * 4, j * 4), (m, n)).store(acc)


@tn.kernel
def run_time(A, C):
    for block in tn.parallel(A.extent(0)):
        total = tn.scalar(0.0, tn.float32)
        for step in block.serial(range(1, A.extent(1), 2)):
            total = total * 2.0 + A.at(block.index(), step.index()).load()
        C.at(block.index()).store(total)


@tn.kernel
def passages(A, C):
    """Nests of one kind with nothing between them, with and without states."""
    for outer in tn.parallel(3):
        for inner in outer.parallel(range(1, 9, 2)):
            total = tn.scalar(0, tn.int32)
            for first in inner.serial(2):
                for second in first.serial(3):
                    total = (
                        total * 3 + A.at(outer.index(), first.index() * 3 + second.index()).load()
                    )
            C.at(outer.index(), inner.index()).store(total)


@tn.kernel
def ordered(A, C):
    """Every step of a serial nest sees what the one before left in the caller's array."""
    for row in tn.parallel(3):
        for step in row.serial(4):
            for column in step.parallel(2):
                old = C.at(row.index(), column.index()).load()
                C.at(row.index(), column.index()).store(
                    old * 2 + A.at(row.index(), step.index()).load()
                )


@tn.function
def column_of(column):
    return tn.cast(column.index(), tn.int32)


@tn.kernel
def owned(A, C):
    """A memory of each row, which all of its steps and columns use."""
    n = tn.axis("n", 2)
    for row in tn.parallel(3):
        kept = tn.memory(tn.int32, (n,))
        kept.store(tn.full((n,), 1, tn.int32))
        for step in row.serial(4):
            kept.store(kept.load() * 2 + A.at(row.index(), step.index()).load())
            for column in step.parallel(2):
                part = tn.reduce(kept.load(), n, tn.add)
                C.at(row.index(), step.index() * 2 + column.index()).store(part + column_of(column))


@tn.kernel
def units(A, C):
    for one in tn.parallel(1):
        for row in one.parallel(3):
            for once in row.serial(1):
                total = A.at(row.index(), once.index()).load()
                for again in once.serial(range(2, 3)):
                    total = total + tn.cast(again.index(), tn.int32)
                C.at(row.index()).store(total)


@tn.kernel
def folded(A, C):
    for row in tn.parallel(3):
        total = tn.scalar(0.0, tn.float32)
        for step in row.reduce(6, policy=tn.reduction.fold_left):
            total = total * 0.5 + A.at(row.index(), step.index()).load()
        C.at(row.index()).store(total)


@tn.kernel
def staged(A, C):
    for row in tn.parallel(4):
        total = tn.scalar(0, tn.int32)
        for step in row.pipeline(5, window=2):
            step.stage("load")
            x = A.at(row.index(), step.index()).load()
            step.stage("add")
            total = total * 2 + x
        C.at(row.index()).store(total)


@tn.kernel
def pipelined(A, C):
    """Nothing but a pipeline inside of two nests."""
    for row in tn.parallel(3):
        for column in row.parallel(2):
            for step in column.pipeline(4, window=2):
                step.stage("load")
                x = A.at(row.index(), step.index()).load()
                step.stage("add")
                old = C.at(row.index(), column.index()).load()
                C.at(row.index(), column.index()).store(old * 2 + x)


@tn.kernel
def scaled(A, S, C):
    """A read that every instance of the inner nest may do by itself."""
    for row in tn.parallel(3):
        factor = S.at(row.index()).load() + 1
        for column in row.parallel(4):
            C.at(row.index(), column.index()).store(
                A.at(row.index(), column.index()).load() * factor
            )


@tn.kernel
def triangle(A, C):
    for row in tn.parallel(4):
        for column in row.serial(row.index() + 1):
            for twice in column.serial(2):
                old = C.at(row.index(), column.index()).load()
                C.at(row.index(), column.index()).store(old * 2 + A.at(twice.index()).load())


PATCHED = """module "candidate"
dim %d0 "m" = 12
dim %d1 "p" = 2

func @patched(%A: view<i32, [12], [1]>, %C: view<i32, [12], [1]>) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c2 = scalar.constant 2 : index
  %c3 = scalar.constant 3 : index
  %acc = tile.load(%A, [%c0]) : tile<i32, %d0>
  %all = exec.parallel(
      lower = [%c0, %c0], upper = [%c3, %c2], step = [%c1, %c1], initial = [%acc]
  ) : tile<i32, %d0> {
  |%i: index, %j: index, %entry: tile<i32, %d0>|
    %twice = scalar.apply "mul"(%i, %c2) : index
    %place = scalar.apply "add"(%twice, %j) : index
    %o = scalar.apply "mul"(%place, %c2) : index
    %mine = tile.reindex(%entry, [%o], map = (d0)[s0] -> (d0 + s0)) : tile<i32, %d1>
    %new = tile.map(%mine) : tile<i32, %d1> { |%p: index, %x: i32|
      %y = scalar.apply "add"(%x, %x) : i32
      exec.yield(%y)
    }
    exec.yield_updates(payloads = [%new], origins = [%o], patches = [#patch<result = 0>])
  }
  tile.store(%C, [%c0], %all, dims = [%d0])
  func.return
}
"""


BACKWARDS = """module "candidate"

func @backwards(%A: view<i32, [7], [1]>, %C: view<i32, [1], [1]>) with (alias_groups = [0, 1]) {
  %c0 = scalar.constant 0 : index
  %first = scalar.constant 6 : index
  %last = scalar.constant -1 : index
  %step = scalar.constant -2 : index
  %c3 = scalar.constant 3 : i32
  %start = tile.load(%C, [%c0]) : i32
  %all = exec.serial(lower = [%first], upper = [%last], step = [%step], initial = [%start])
      : i32 { |%k: index, %total: i32|
    %x = tile.load(%A, [%k]) : i32
    %more = scalar.apply "mul"(%total, %c3) : i32
    %next = scalar.apply "add"(%more, %x) : i32
    exec.yield(%next)
  }
  tile.store(%C, [%c0], %all)
  func.return
}
"""


@record
class Case:
    """A kernel and the shapes it is called with; where `is_open`, no shape is known at capture."""

    make: Callable[..., Module]
    shapes: tuple[tuple[int, ...], ...]
    leaf: str
    dtype: Any = np.int32
    is_open: bool = False


CASES = {
    "gemm": Case(gemm.capture, ((12, 10), (10, 8), (12, 8)), "step", np.float32),
    "run_time": Case(run_time.capture, ((3, 6), (3,)), "step", np.float32, is_open=True),
    "passages": Case(passages.capture, ((3, 6), (3, 9)), "second"),
    "ordered": Case(ordered.capture, ((3, 4), (3, 2)), "column"),
    "owned": Case(owned.capture, ((3, 4), (3, 8)), "column"),
    "units": Case(units.capture, ((3, 1), (3,)), "again"),
    "folded": Case(folded.capture, ((3, 6), (3,)), "step", np.float32),
    "staged": Case(staged.capture, ((4, 5), (4,)), "step"),
    "pipelined": Case(pipelined.capture, ((3, 4), (3, 2)), "step"),
    "scaled": Case(scaled.capture, ((3, 4), (3,), (3, 4)), "column"),
    "triangle": Case(triangle.capture, ((2,), (4, 4)), "twice"),
    "backwards": Case(lambda *_: tn.parse(BACKWARDS), ((7,), (1,)), "k"),
    "patched": Case(lambda *_: tn.parse(PATCHED), ((12,), (12,)), "i"),
}


def same_instances(old: ExecStructure, new: ExecStructure) -> ExecRemap:
    """Levels that are said to be as many others, each instance the one that it was."""
    names = tuple(sorted({*old.symbols, *new.symbols}))
    places = tuple(map(DimRef, range(old.depth)))
    tau = Expressions(new.space, old.space, places, names)
    return ExecRemap(old, new, tau, IndexSet(new.space))


def captured(case: Case) -> Module:
    dtype = getattr(tn, np.dtype(case.dtype).name)
    shapes = [(None,) * len(s) if case.is_open else s for s in case.shapes]
    return case.make(*(tn.spec(shape, dtype) for shape in shapes))


def results(case: Case, module: Module, shuffle: int | None = None) -> np.ndarray:
    """What the last array holds afterwards, with a row of guards around it."""
    random = np.random.default_rng(7)
    given = [random.integers(-9, 9, shape).astype(case.dtype) for shape in case.shapes[:-1]]
    shape = case.shapes[-1]
    whole = np.full((shape[0] + 2, *shape[1:]), 77, case.dtype)
    interpret(module, [*given, whole[1:-1]], shuffle=shuffle)
    return whole
