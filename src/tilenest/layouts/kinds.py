"""What is given as a number, a name or a map is one: refused where it comes in.

In: what a caller passed, and what it should be. Out: the same, with whole numbers as plain ints and
their groups as tuples, or an ArgumentTypeError that names both. A float in an extent, or an integer
of fixed width in a stride, would otherwise end in a wrong answer far from here.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from types import UnionType
from typing import Any

from tilenest.errors import ArgumentTypeError, ShapeError

MOST_OPERATIONS = 100
MOST_NODES = 1000
"""How deep and how large a formula may be: walks over it are calls inside calls, and its text is
read again by whoever reads the module."""
MOST_PLACES = 1 << 12
MOST_NESTED = 100
"""How deep maps may stand inside one another; each is worked on by a call inside a call."""
_MOST_SHOWN = 60
_MOST_BITS = 1024


def whole_number(value: Any, what: str) -> int:
    """An integer of any kind as an int."""
    try:
        found = index(value)
    except TypeError:
        raise _wrong(value, what, "a whole number") from None
    _check_length(found, what)
    return found


def whole_numbers(values: Any, what: str) -> tuple[int, ...]:
    """Several of them."""
    try:
        found = tuple(map(index, values))
    except TypeError:
        raise _wrong(values, what, "a tuple of whole numbers") from None
    for number in found:
        _check_length(number, what)
    return found


def tuple_of(values: Any, kind: type, what: str) -> tuple[Any, ...]:
    """Items of one kind, or of a kind under it."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise _wrong(values, what, f"a tuple of {kind.__name__}")
    found = tuple(values)
    for item in found:
        check_kind(item, kind, f"an item of {what}")
    return found


def named(values: Any, what: str) -> tuple[tuple[str, Any], ...]:
    """Pairs of a name and something of its own."""
    found = tuple_of(values, tuple, what)
    if any(len(pair) != 2 or not isinstance(pair[0], str) for pair in found):
        raise _wrong(values, what, "a tuple of pairs that begin with a name")
    return found


def check_kind(value: object, kind: type | UnionType, what: str) -> None:
    """Refuse what is not of a kind."""
    if not isinstance(value, kind):
        kinds = (kind,) if isinstance(kind, type) else kind.__args__
        names = " or ".join(one.__name__ for one in kinds)
        raise _wrong(value, what, f"a value of type {names}")


def small_position(value: Any) -> int:
    """The position of a coordinate or symbol, which is a bit in the masks of formulas."""
    place = whole_number(value, "a position")
    if not 0 <= place < MOST_PLACES:
        raise ShapeError(
            f"{place} is no position of a coordinate or symbol",
            remedy=f"use positions from 0 to {MOST_PLACES - 1}",
        )
    return place


def check_size(depth: int, nodes: int) -> None:
    """Refuse a formula that walks over it, or readers of its text, could not follow."""
    if depth > MOST_OPERATIONS or nodes > MOST_NODES:
        reason = (
            f"has over {MOST_OPERATIONS} operations inside one another"
            if depth > MOST_OPERATIONS
            else f"has over {MOST_NODES} operations, names and numbers"
        )
        raise ShapeError(
            f"an index formula {reason}", remedy="keep a part of it in a variable of the program"
        )


def _check_length(number: int, what: str) -> None:
    """Python prints no number of thousands of digits, and none is needed here."""
    if number.bit_length() > _MOST_BITS:
        raise ShapeError(
            f"{what} has a number of {number.bit_length()} bits",
            remedy=f"use numbers of at most {_MOST_BITS} bits",
        )


def _wrong(value: object, what: str, wanted: str) -> ArgumentTypeError:
    try:
        shown = repr(value)
    except (ValueError, RecursionError):
        shown = "its value"
    if len(shown) > _MOST_SHOWN:
        shown = f"{shown[:_MOST_SHOWN]}..."
    return ArgumentTypeError(
        f"{what} is {shown} of type {type(value).__name__}", remedy=f"give {wanted}"
    )
