"""Small CuTe layouts and what they mean, written without the package.

`value(modes, place)` walks the digits of a place, leftmost fastest. `flat_layouts` lists many small
layouts; `layouts` draws nested ones.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from hypothesis import strategies as st

from tilenest.layouts.cute import IntTuple, Layout

Modes = Sequence[tuple[int, int]]


def leaves(numbers: IntTuple) -> list[int]:
    if isinstance(numbers, int):
        return [numbers]
    return [leaf for part in numbers for leaf in leaves(part)]


def modes_of(layout: Layout) -> Modes:
    return list(zip(leaves(layout.shape), leaves(layout.stride), strict=True))


def value(modes: Modes, place: int) -> int:
    total = 0
    for extent, stride in modes:
        total += place % extent * stride
        place //= extent
    return total


def values(layout: Layout) -> list[int]:
    modes = modes_of(layout)
    return [value(modes, place) for place in range(prod(extent for extent, _ in modes))]


def flat_layouts(
    extents: Sequence[int], strides: Sequence[int], ranks: Sequence[int]
) -> Iterator[Layout]:
    for rank in ranks:
        for shape in product(extents, repeat=rank):
            for stride in product(strides, repeat=rank):
                yield Layout(shape, stride)


def is_some_layout(numbers: Sequence[int]) -> bool:
    """Whether numbers are the values of any layout: of some factors with some strides."""
    size = len(numbers)
    return any(
        [value([*zip(shape, strides_at(numbers, shape), strict=True)], i) for i in range(size)]
        == list(numbers)
        for shape in factorings(size)
    )


def strides_at(numbers: Sequence[int], shape: Sequence[int]) -> list[int]:
    return [numbers[prod(shape[:place])] for place in range(len(shape))]


def factorings(size: int) -> Iterator[tuple[int, ...]]:
    """Every way to write a number as an ordered product of numbers above 1."""
    if size == 1:
        yield ()
    for first in range(2, size + 1):
        if size % first == 0:
            yield from ((first, *rest) for rest in factorings(size // first))


@st.composite
def layouts(
    draw: st.DrawFn, strides: Sequence[int] = (0, 1, 2, 3, 4, 6, 8, 12, -1, -4), depth: int = 2
) -> Layout:
    shapes: st.SearchStrategy[IntTuple] = st.sampled_from([1, 2, 2, 3, 4])
    for _ in range(depth):
        shapes = st.one_of(shapes, st.lists(shapes, min_size=1, max_size=3).map(tuple))
    shape = draw(shapes.filter(lambda shape: prod(leaves(shape)) <= 256))

    def strided(part: IntTuple) -> IntTuple:
        if isinstance(part, int):
            return draw(st.sampled_from(strides))
        return tuple(map(strided, part))

    return Layout(shape, strided(shape))
