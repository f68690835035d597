"""Kernels called with one array twice: which may run, judged by what each instance touches."""

from typing import Any

import pytest

import tilenest as tn
from tilenest.analysis import coincidence_hazard

N = 12


def captured(kernel: tn.Kernel, rank: int) -> Any:
    """The captured function, its arguments declared to be one array."""
    count = kernel.__wrapped__.__code__.co_argcount
    module = kernel.capture(*[tn.spec((N,) * rank, tn.float32)] * count)
    (function,) = module.functions
    function.attributes["alias_groups"] = (0,) * count
    return function


@tn.kernel
def same_block(X, Y):
    n = tn.axis("n", 4)
    for block in tn.parallel(3):
        Y(block.index() * 4, n).store(X[block.index() * 4, n])


@tn.kernel
def row_in_two_passes(X, Y):
    r, c = tn.axis("r", 1), tn.axis("c", 4)
    for row in tn.parallel(N):
        i = row.index()
        total = tn.zeros((r, c), tn.float32)
        for step in row.serial(3):
            total = total + X[(i, step.index() * 4), (r, c)]
        for step in row.serial(3):
            x = X[(i, step.index() * 4), (r, c)]
            Y((i, step.index() * 4), (r, c)).store(x + total)


@tn.kernel
def no_parallel(X, Y):
    n = tn.axis("n", 4)
    for step in tn.serial(2):
        Y(step.index() * 4 + 4, n).store(X[step.index() * 4, n])


@tn.kernel
def one_after_the_other(X, Y):
    n = tn.axis("n", 4)
    for block in tn.parallel(2):
        Y(block.index() * 4, n).store(X[block.index() * 4, n])
    for block in tn.parallel(2):
        X(block.index() * 4 + 4, n).store(1.0)


@tn.kernel
def interleaved(X, Y):
    n = tn.axis("n", 1)
    for part in tn.parallel(3):
        for step in part.serial(4):
            x = X[part.index() + 3 * step.index(), n]
            Y(part.index() + (9 - 3 * step.index()), n).store(x)


@tn.kernel
def halves_of_a_view(X, Y):
    low, high = X.slice(0, 6), Y.slice(6, 6)
    for part in tn.parallel(2):
        for step in part.serial(3):
            x = low.at(part.index() * 3 + step.index()).load()
            high.at(5 - part.index() * 3 - step.index()).store(x)


@pytest.mark.parametrize(
    ("kernel", "rank"),
    [
        (interleaved, 1),
        (halves_of_a_view, 1),
        (same_block, 1),
        (row_in_two_passes, 2),
        (no_parallel, 1),
        (one_after_the_other, 1),
    ],
)
def test_instances_that_stay_apart(kernel: tn.Kernel, rank: int) -> None:
    assert coincidence_hazard(captured(kernel, rank)) is None


@tn.kernel
def neighbour(X, Y):
    n = tn.axis("n", 4)
    for block in tn.parallel(2):
        Y(block.index() * 4, n).store(X[block.index() * 4 + 4, n])


@tn.kernel
def wider_read(X, Y):
    for block in tn.parallel(3):
        x = X[block.index() * 4, tn.axis("n", 5)]
        Y(block.index() * 4, tn.axis("m", 1)).store(tn.reduce(x, x.dims[0], tn.add))


@tn.kernel
def transposed(X, Y):
    a, b = tn.axis("a", 1), tn.axis("b", 1)
    for block in tn.parallel(N, N):
        i, j = block.index()
        Y((j, i), (b, a)).store(X[(i, j), (a, b)])


@tn.kernel
def whole_row_read(X, Y):
    r, c, one = tn.axis("r", 1), tn.axis("c", N), tn.axis("one", 1)
    for block in tn.parallel(N, N):
        i, j = block.index()
        Y((i, j), (r, one)).store(tn.reduce(X[(i, 0), (r, c)], c, tn.add))


@tn.kernel
def stored_by_some(X, Y):
    n = tn.axis("n", 2)
    for block in tn.parallel(N):
        i = block.index()
        x = X[i // 2 * 2, n]
        if i % 2 == 0:
            Y(i // 2 * 2, n).store(x)


@tn.kernel
def stored_in_some_rounds(X, Y):
    n = tn.axis("n", 2)
    for block in tn.parallel(N):
        i = block.index()
        x = X[i // 2 * 2, n]
        for _ in block.serial(i % 2):
            Y(i // 2 * 2, n).store(x)


@tn.kernel
def overlapping_views(X, Y):
    low, high = X.slice(0, 7), Y.slice(6, 6)
    for part in tn.parallel(2):
        for step in part.serial(3):
            x = low.at(6 - part.index() * 3 - step.index()).load()
            high.at(5 - part.index() * 3 - step.index()).store(x)


@tn.kernel
def interleaved_unevenly(X, Y):
    n = tn.axis("n", 1)
    for part in tn.parallel(3):
        for step in part.serial(4):
            x = X[part.index() + 3 * step.index(), n]
            Y(part.index() + (8 - 2 * step.index()), n).store(x)


@pytest.mark.parametrize(
    ("kernel", "rank"),
    [
        (overlapping_views, 1),
        (interleaved_unevenly, 1),
        (neighbour, 1),
        (wider_read, 1),
        (transposed, 2),
        (whole_row_read, 2),
        (stored_by_some, 1),
        (stored_in_some_rounds, 1),
    ],
)
def test_instances_that_may_meet(kernel: tn.Kernel, rank: int) -> None:
    hazard = coincidence_hazard(captured(kernel, rank))
    assert hazard is not None
    assert hazard.access.location is not None


SLOTS = """
module "candidate"
dim %d0 "n" = 4

func @main(%X: view<f32, [12], [1]>, %Y: view<f32, [12], [1]>) with (alias_groups = [0, 0]) {
  %zero = scalar.constant 0 : index
  %two = scalar.constant 2 : index
  %three = scalar.constant 3 : index
  %four = scalar.constant 4 : index
  %one = scalar.constant 1 : index
  exec.parallel(lower = [%zero], upper = [%three], step = [%one]) { |%i: index|
    %back = scalar.apply "sub"(%two, %i) : index
    %begin = scalar.apply "mul"(%i, %four) : index
    %slots = array.partition(%X, [%zero]) : array<tile<f32, %d0>, 3>
    %x = array.get(%slots, [SLOT]) : tile<f32, %d0>
    tile.store(%Y, [%begin], %x, dims = [%d0])
    exec.yield
  }
  func.return
}
"""


@pytest.mark.parametrize(("slot", "is_apart"), [("%i", True), ("%back", False)])
def test_slots_of_a_borrowed_array_are_read(slot: str, is_apart: bool) -> None:
    (function,) = tn.parse(SLOTS.replace("SLOT", slot)).functions
    assert (coincidence_hazard(function) is None) == is_apart


def test_without_coinciding_arguments_there_is_nothing_to_ask() -> None:
    function = captured(neighbour, 1)
    function.attributes["alias_groups"] = (0, 1)
    assert coincidence_hazard(function) is None
