"""Kernels that load a part of a memory that may not be stored.

Most store so that a rule which forgets one thing accepts them: that a number is another one in each
turn, that attributes tell two numbers apart, that folds may run from the last turn on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tilenest as tn
from tests.errors.refusals import refused
from tests.oracle.arrays import Array, Placed


def number_of(X: Any, place: Any, most: int) -> Any:
    """A number that is known in a run only, from 0 to a limit."""
    loaded: Any = X.at(0, place).load().cast(tn.int64)
    return tn.minimum(tn.maximum(loaded, 0), most)


BAD_PARTS: dict[str, Callable[[Any, Any], None]] = {}


def bad_part(function: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Stores in a memory of 4 x 16 after which rows 1 and 2 may not be stored."""
    BAD_PARTS[function.__name__.removeprefix("by_")] = function
    return function


@bad_part
def by_rows_around_them(held: Any, X: Any) -> None:
    held((0, 0), (2, 16)).store(X[(0, 0), (2, 16)])
    held((3, 0), (1, 16)).store(X[(0, 0), (1, 16)])


@bad_part
def by_all_but_one_element(held: Any, _: Any) -> None:
    held((0, 0), (4, 15)).store(0.0)
    held((0, 15), (2, 1)).store(0.0)
    held((3, 15), (1, 1)).store(0.0)


@bad_part
def by_a_branch(held: Any, X: Any) -> None:
    if X.extent(0) > 2:
        held((1, 0), (2, 16)).store(0.0)
    else:
        held((0, 0), (2, 16)).store(0.0)


@bad_part
def by_steps_that_leave_rows_out(held: Any, _: Any) -> None:
    for i in tn.serial(2):
        at: Any = i.index()
        held((at * 2, 0), (1, 16)).store(0.0)


@bad_part
def by_a_loop_that_may_not_run(held: Any, X: Any) -> None:
    for i in tn.serial(X.extent(0)):
        held((i, 0), (1, 16)).store(0.0)


@bad_part
def by_steps_along_the_diagonal(held: Any, _: Any) -> None:
    for i in tn.serial(4):
        held((i, i), (1, 4)).store(0.0)


@bad_part
def by_rows_of_unknown_places(held: Any, X: Any) -> None:
    held((X.extent(0) - 3, 0), (2, 16)).store(0.0)


@bad_part
def by_a_quotient_of_steps(held: Any, _: Any) -> None:
    for i in tn.serial(4):
        at: Any = i.index()
        held((at // 4 + 1, 0), (1, 16)).store(0.0)


@bad_part
def by_turns_that_each_find_a_number(held: Any, X: Any) -> None:
    """What turns beside each other store would be a row, were the number the same in both."""
    for i in tn.serial(range(-1, 4)):
        row: Any = i.index()
        number = number_of(X, row + 1, 16)
        for j in i.serial(number):
            held((row, j), (1, 1)).store(1.0)
        for j in i.serial(range(number, 16)):
            held((row + 1, j), (1, 1)).store(2.0)


@bad_part
def by_two_turns_that_each_find_a_number(held: Any, X: Any) -> None:
    for i in tn.serial(2):
        row: Any = i.index()
        number = number_of(X, row, 16)
        for j in i.serial(number):
            held((row * 4 - 3, j), (4, 1)).store(1.0)
        for j in i.serial(range(number, 16)):
            held((1 - row * 4, j), (4, 1)).store(2.0)


@bad_part
def by_turns_that_hand_on_a_number(held: Any, X: Any) -> None:
    number = tn.scalar(0, tn.int64)
    for i in tn.serial(range(-1, 4)):
        row: Any = i.index()
        last = tn.minimum(tn.maximum(number, 0), 16)
        for j in i.serial(last):
            held((row, j), (1, 1)).store(1.0)
        for j in i.serial(range(last, 16)):
            held((row + 1, j), (1, 1)).store(2.0)
        number = number_of(X, row + 1, 16)


@bad_part
def by_stages_that_each_find_a_number(held: Any, X: Any) -> None:
    for step in tn.root().pipeline(range(-1, 4), window=2):
        step.stage("before it")
        row: Any = step.index()
        number = number_of(X, row + 1, 16)
        for j in step.serial(number):
            held((row, j), (1, 1)).store(1.0)
        step.stage("from it on")
        for j in step.serial(range(number, 16)):
            held((row + 1, j), (1, 1)).store(2.0)


@bad_part
def by_a_fold_that_finds_numbers(held: Any, X: Any) -> None:
    for i in tn.root().reduce(range(-1, 4), policy=tn.reduction.fold_right):
        row: Any = i.index()
        number = number_of(X, row + 1, 16)
        for j in i.serial(number):
            held((row, j), (1, 1)).store(1.0)
        for j in i.serial(range(number, 16)):
            held((row + 1, j), (1, 1)).store(2.0)


@bad_part
def by_branches_that_each_find_a_number(held: Any, X: Any) -> None:
    if X.extent(0) > 2:
        for j in tn.serial(number_of(X, 0, 16)):
            held((0, j), (4, 1)).store(1.0)
    else:
        for j in tn.serial(range(number_of(X, 1, 16), 16)):
            held((0, j), (4, 1)).store(1.0)


@pytest.mark.parametrize("name", BAD_PARTS)
def test_loading_a_part_that_may_not_be_stored(name: str, x: Array, y: Placed) -> None:
    way = BAD_PARTS[name]

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        way(held, X)
        Y((0, 0), (2, 16)).store(held((1, 0), (2, 16)).load())  # wrong

    caret = "held((1, 0), (2, 16)).load()"
    refused(kernel, tn.UninitialisedMemoryError, caret, x, y, remedy="on every way to the load")


@pytest.mark.parametrize(("start", "by"), [(0, 1), (1, 1), (3, -1), (2, -1)])
def test_a_step_that_reads_what_it_stores_later(start: int, by: int, x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        for i in tn.serial(X.extent(0)):
            own: Any = i.index()
            at = own * by + start
            first = 0 if by > 0 else 3
            Y((0, 0), (1, 16)).store(held((at, 0), (1, 16)).load())  # wrong
            held((own * by + first, 0), (1, 16)).store(X[(i, 0), (1, 16)])

    caret = "held((at, 0), (1, 16)).load()"
    refused(kernel, tn.UninitialisedMemoryError, caret, x, y, remedy="store in it first")


def test_a_step_that_reads_at_a_number_of_its_own(x: Array, y: Placed) -> None:
    """The step before it has stored at another one."""

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        for i in tn.serial(4):
            row: Any = i.index()
            place = number_of(X, row, 15)
            Y((0, 0), (1, 1)).store(held((row - 1, place), (1, 1)).load())  # wrong
            held((row, place), (1, 1)).store(1.0)

    caret = "held((row - 1, place), (1, 1)).load()"
    refused(kernel, tn.UninitialisedMemoryError, caret, x, y, remedy="store in it first")


@pytest.mark.parametrize("policy", [tn.reduction.fold_left, tn.reduction.fold_right])
def test_a_step_of_a_fold_that_reads_what_another_one_stores(
    policy: Any, x: Array, y: Placed
) -> None:
    """A fold may start with its last step."""

    @tn.kernel
    def kernel(_: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        for turn in tn.serial(1):
            for i in turn.reduce(4, policy=policy):
                row: Any = i.index()
                Y((0, 0), (1, 16)).store(held((row - 1, 0), (1, 16)).load())  # wrong
                held((row, 0), (1, 16)).store(1.0)

    caret = "held((row - 1, 0), (1, 16)).load()"
    refused(kernel, tn.UninitialisedMemoryError, caret, x, y, remedy="store in it first")


def test_places_that_two_elements_of_a_tile_say(x: Array, y: Placed) -> None:
    """They differ by an attribute of what takes them out of the tile, and by nothing else."""

    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        places: Any = X[(0, 0), (1, 16)].cast(tn.int64)
        held((places.at(0, 1), 0), (1, 16)).store(1.0)
        Y((0, 0), (1, 16)).store(held((places.at(0, 2), 0), (1, 16)).load())  # wrong

    caret = "held((places.at(0, 2), 0), (1, 16)).load()"
    refused(kernel, tn.UninitialisedMemoryError, caret, x, y, remedy="store in it first")


def test_a_part_that_may_end_beyond_64_bits(x: Array, y: Placed) -> None:
    """Where it starts may be in the memory, or so far behind it that its end has no number."""

    @tn.kernel
    def kernel(_: Any, Y: Any, n: Any) -> None:
        held = tn.memory(tn.float32, (16,))
        held((0,), (2,)).store(1.0)
        for i in tn.serial(range(tn.minimum(n, 0), 1)):
            own: Any = i.index()
            at = own + (2**63 - 1)
            Y((0, 0), (1, 4)).store(tn.reshape(held((at,), (4,)).load(), (1, 4)))  # wrong

    caret = "held((at,), (4,)).load()"
    refused(kernel, tn.UninitialisedMemoryError, caret, x, y, 0, remedy="store in it first")


def test_places_that_may_leave_64_bits(x: Array, y: Placed) -> None:
    @tn.kernel
    def kernel(X: Any, Y: Any) -> None:
        held = tn.memory(tn.float32, (4, 16))
        for i in tn.serial(tn.maximum(X.extent(0), 1) * X.extent(1)):
            at: Any = i.index()
            held((at * 2, 0), (2, 16)).store(X[(0, 0), (2, 16)])
        Y((0, 0), (2, 16)).store(held((0, 0), (2, 16)).load())  # wrong

    caret = "held((0, 0), (2, 16)).load()"
    refused(kernel, tn.UninitialisedMemoryError, caret, x, y, remedy="limit the numbers")
