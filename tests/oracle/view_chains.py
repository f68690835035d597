"""Chains of views: as a kernel makes them, and as plain Python, address by address.

A step is one view of a view. A chain takes a place of its last view down to the array, one step
after the other; a place is outside where it leaves any view on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import tilenest as tn

Place = tuple[int, ...]
ARRAY = (5, 6)


@dataclass(frozen=True)
class Step:
    """A view of a view: as the kernel makes it, its shape, and where its places are below."""

    make: Callable[[Any, Any], Any]
    shape: Place
    below: Callable[[Place], Place]


@dataclass(frozen=True)
class Chain:
    """Views of views; `steps` are in the order in which they are made."""

    steps: tuple[Step, ...]

    def make(self, array: Any, zero: Any) -> Any:
        """The view in a kernel; `zero` is a 0 that is known only at run time."""
        for step in self.steps:
            array = step.make(array, zero)
        return array

    @property
    def shapes(self) -> list[Place]:
        """Of the view, then of those below it, last of the array."""
        return [*(step.shape for step in reversed(self.steps)), ARRAY]

    def ways(self, place: Place) -> Iterator[tuple[Place, Place]]:
        """The place and the shape of each view that it lies in, and of the first that it leaves."""
        belows = [*(step.below for step in reversed(self.steps)), None]
        for shape, below in zip(self.shapes, belows, strict=True):
            yield place, shape
            if below is None or not is_inside(place, shape):
                return
            place = below(place)

    def landing(self, place: Place) -> Place | None:
        """The place in the array, or None outside."""
        *_, (last, shape) = self.ways(place)
        return last if is_inside(last, shape) else None


def is_inside(place: Place, shape: Place) -> bool:
    return all(0 <= at < extent for at, extent in zip(place, shape, strict=True))


# Random chains ---------------------------------------------------------------------------------


def transposed(shape: Place, _: Any) -> list[Step]:
    return [Step(lambda A, _: A.T, shape[::-1], lambda place: place[::-1])]


def slice_step(
    first: Place, counts: Place, steps: Place, *, is_open: bool = False, is_moved: bool = False
) -> Step:
    """A slice, whose extents and origins may be known only at run time."""

    def make(A: Any, zero: Any) -> Any:
        origin = tuple(at + zero for at in first) if is_moved else first
        sizes = tuple(count + zero for count in counts) if is_open else counts
        return A.slice(origin, sizes, steps)

    def below(place: Place) -> Place:
        return tuple(f + s * at for f, s, at in zip(first, steps, place, strict=True))

    return Step(make, counts, below)


def sliced(shape: Place, draw: Any) -> list[Step]:
    """A slice that may lie outside."""
    first = tuple(draw(st.integers(-2, extent + 1)) for extent in shape)
    counts = tuple(draw(st.integers(1, 6)) for _ in shape)
    steps = tuple(draw(st.sampled_from([1, 1, 2, -1])) for _ in shape)
    is_open, is_moved = draw(st.booleans()), draw(st.booleans())
    return [slice_step(first, counts, steps, is_open=is_open, is_moved=is_moved)]


def known(shape: Place) -> Step:
    """The same view, of extents that the host knows."""
    return Step(lambda A, _: A.slice((0, 0), shape), shape, lambda place: place)


def reshape_step(shape: Place, sizes: Place) -> Step:
    def below(place: Place) -> Place:
        number = place[0] * sizes[1] + place[1]
        return number // shape[1], number % shape[1]

    return Step(lambda A, _: A.reshape(*sizes), sizes, below)


def reshaped(shape: Place, draw: Any) -> list[Step]:
    total = shape[0] * shape[1]
    rows = draw(st.sampled_from([n for n in range(1, total + 1) if total % n == 0]))
    return [known(shape), reshape_step(shape, (rows, total // rows))]


def swizzle_step(shape: Place, sizes: Place) -> Step:
    """Columns where the rows were, each in its own order, in which some leave the view."""

    def twisted(i: Any, j: Any) -> Any:
        return j % shape[0], i ^ (j & 1)

    def make(A: Any, _: Any) -> Any:
        return A.remap(tn.index_map(sizes, shape, twisted))

    return Step(make, sizes, lambda place: twisted(*place))


def swizzled(shape: Place, draw: Any) -> list[Step]:
    sizes = (draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    return [known(shape), swizzle_step(shape, sizes)]


def repeated(shape: Place, draw: Any) -> list[Step]:
    row, sizes = draw(st.integers(-1, shape[0])), (draw(st.integers(1, 4)), shape[1])
    one = (1, shape[1])
    return [
        Step(lambda A, _: A.slice((row, 0), one), one, lambda place: (row, place[1])),
        Step(lambda A, _: A.broadcast_to(*sizes), sizes, lambda place: (0, place[1])),
    ]


WRITABLE = (transposed, sliced, sliced, reshaped)
READABLE = (*WRITABLE, swizzled, repeated)


@st.composite
def chains(draw: Any, kinds: tuple[Callable[[Place, Any], list[Step]], ...]) -> Chain:
    shape: Place = ARRAY
    steps: list[Step] = []
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3)):
        steps += kind(shape, draw)
        shape = steps[-1].shape
    return Chain(tuple(steps))
