"""What is given as a number, a name or a map is one: refused where it comes in.

In: what a caller passed, and what it should be. Out: the same, with whole numbers as plain ints and
their groups as tuples, or an ArgumentTypeError that names both. A float in an extent, or an integer
of fixed width in a stride, would otherwise end in a wrong answer far from here. A group is counted
while it is read, so that one without an end is refused as well.
"""

from __future__ import annotations

from itertools import islice
from operator import index
from types import UnionType
from typing import Any

from tilenest.errors import ArgumentTypeError, ShapeError, shown

MOST_OPERATIONS = 100
MOST_NODES = 1000
"""How deep and how large a formula may be: walks over it are calls inside calls, and its text is
read again by whoever reads the module."""
MOST_PLACES = 1 << 12
"""The largest rank: how many coordinates or symbols there may be."""
MOST_ITEMS = 1 << 20
"""The longest group of anything else, as of the entries of a table."""
MOST_NESTED = 100
"""How deep maps may stand inside one another; each is worked on by a call inside a call."""
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
    """Several of them, one a coordinate."""
    items = _listed(values, what, "whole numbers", MOST_PLACES)
    try:
        found = tuple(map(index, items))
    except TypeError:
        raise _wrong(values, what, "a tuple of whole numbers") from None
    for number in found:
        _check_length(number, what)
    return found


def tuple_of(values: Any, kind: type, what: str, most: int = MOST_ITEMS) -> tuple[Any, ...]:
    """At most so many items of one kind, or of a kind under it."""
    found = _listed(values, what, kind.__name__, most)
    for item in found:
        if not isinstance(item, kind):
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


def small_constant(value: Any) -> int:
    """A number in a formula."""
    number = whole_number(value, "an index constant")
    if not -(1 << 63) <= number < 1 << 63:
        raise ShapeError(
            f"the index constant {number} does not fit 64 bits",
            remedy="use smaller extents, strides or offsets",
        )
    return number


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


def _listed(values: Any, what: str, items: str, most: int) -> tuple[Any, ...]:
    """What there is to go through, which is no text."""
    if type(values) is tuple and len(values) <= most:
        return values
    given: Any = None if isinstance(values, str | bytes) else values
    try:
        found = tuple(islice(given, most + 1))
    except TypeError:
        raise _wrong(values, what, f"a tuple of {items}") from None
    if len(found) > most:
        raise ShapeError(
            f"{what} is a {type(values).__name__} of over {most} items",
            remedy=f"give at most {most}",
        )
    return found


def _wrong(value: object, what: str, wanted: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"{what} is {shown(value)} of type {type(value).__name__}", remedy=f"give {wanted}"
    )
