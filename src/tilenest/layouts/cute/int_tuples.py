"""Integers and nested tuples of them: the shapes, strides and coordinates of CuTe layouts.

In: an integer or a tuple of such. Out: sizes, leaves, coordinates. The order is colexicographic, as
CuTe has it: the leftmost mode runs fastest. A coordinate may be coarser than a shape: an integer in
the place of a tuple stands for that tuple's coordinate of the same place in the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeAlias

from tilenest.errors import ShapeError
from tilenest.layouts.kinds import whole_number

IntTuple: TypeAlias = "int | tuple[IntTuple, ...]"
MOST_NESTED = 60


def int_tuple(value: IntTuple, what: str, depth: int = 0) -> IntTuple:
    """An integer, or a nested tuple of them: lists are taken for tuples, anything else refused."""
    if not isinstance(value, tuple | list):
        return whole_number(value, what)
    if depth > MOST_NESTED:
        raise ShapeError(
            f"{what} has over {MOST_NESTED} parentheses inside one another",
            remedy="flatten it first",
        )
    return tuple(int_tuple(part, what, depth + 1) for part in value)


def leaves(numbers: IntTuple) -> tuple[int, ...]:
    """The integers of a nested tuple, from left to right."""
    if isinstance(numbers, int):
        return (numbers,)
    return tuple(leaf for part in numbers for leaf in leaves(part))


def size(shape: IntTuple) -> int:
    """How many coordinates a shape has."""
    return prod(leaves(int_tuple(shape, "a shape")))


def is_congruent(one: IntTuple, other: IntTuple) -> bool:
    """Whether two nested tuples differ in their integers only."""
    if isinstance(one, int) or isinstance(other, int):
        return isinstance(one, int) and isinstance(other, int)
    return len(one) == len(other) and all(map(is_congruent, one, other))


def nested_like(profile: IntTuple, parts: Sequence[IntTuple]) -> IntTuple:
    """The nesting of `profile` with its integers replaced by these parts, from left to right."""
    return _filled(profile, iter(parts))


def compact_strides(shape: IntTuple) -> IntTuple:
    """The strides that number the coordinates of a shape in colexicographic order."""
    strides: list[int] = []
    below = 1
    for extent in leaves(shape):
        strides.append(below)
        below *= extent
    return nested_like(shape, strides)


def idx2crd(place: int, shape: IntTuple) -> IntTuple:
    """The coordinate at a place in the colexicographic order of a shape."""
    return _coordinate(whole_number(place, "a place"), int_tuple(shape, "a shape"))


def _coordinate(place: int, shape: IntTuple) -> IntTuple:
    if not 0 <= place < size(shape):
        raise ShapeError(
            f"{place} is no place in the {size(shape)} coordinates of {int_tuple_text(shape)}",
            remedy="use a place from 0 to below the product of the extents",
        )
    if isinstance(shape, int):
        return place
    parts: list[IntTuple] = []
    for part in shape:
        parts.append(_coordinate(place % size(part), part))
        place //= size(part)
    return tuple(parts)


def crd2idx(coordinate: IntTuple, shape: IntTuple, stride: IntTuple | None = None) -> int:
    """The sum of strides times coordinates; without strides, the place in the order."""
    given, extents = int_tuple(coordinate, "a coordinate"), int_tuple(shape, "a shape")
    strides = compact_strides(extents) if stride is None else int_tuple(stride, "the strides")
    return weighted(given, extents, strides)


def weighted(coordinate: IntTuple, shape: IntTuple, strides: IntTuple) -> int:
    """The sum of strides times coordinates."""
    if isinstance(coordinate, int) and not isinstance(shape, int):
        return weighted(_coordinate(coordinate, shape), shape, strides)
    if isinstance(coordinate, int) and isinstance(shape, int) and isinstance(strides, int):
        if not 0 <= coordinate < shape:
            raise _no_coordinate(coordinate, shape)
        return coordinate * strides
    if isinstance(coordinate, int) or isinstance(shape, int) or isinstance(strides, int):
        raise _no_coordinate(coordinate, shape)
    if not len(coordinate) == len(shape) == len(strides):
        raise _no_coordinate(coordinate, shape)
    return sum(map(weighted, coordinate, shape, strides))


def int_tuple_text(numbers: IntTuple) -> str:
    """As CuTe prints it: `(4,(2,3))`."""
    if isinstance(numbers, int):
        return str(numbers)
    return f"({','.join(map(int_tuple_text, numbers))})"


def _filled(profile: IntTuple, parts: Iterator[IntTuple]) -> IntTuple:
    if isinstance(profile, int):
        return next(parts)
    return tuple(_filled(part, parts) for part in profile)


def _no_coordinate(coordinate: IntTuple, shape: IntTuple) -> ShapeError:
    return ShapeError(
        f"{int_tuple_text(coordinate)} is no coordinate of {int_tuple_text(shape)}",
        remedy="nest a coordinate as its shape is nested, or give one integer for a whole tuple",
    )
