"""What is no number is compared with nothing: every class refuses every operator that it lacks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.unit.language.building import open_session, view_type
from tilenest import ir
from tilenest import language as tn
from tilenest.errors import TileError
from tilenest.language.moves import Coordinate
from tilenest.language.reindexing import Symbols
from tilenest.layouts import Dim, DimRef
from tilenest.opaque import Opaque

Use = Callable[[Any], object]


def uses_of_with(thing: Any) -> None:
    with thing:
        pass


USES: dict[str, Use] = {
    "==": lambda thing: thing == 0,
    "== reflected": lambda thing: 0 == thing,  # noqa: SIM300  # what is refused
    "== itself": lambda thing: thing == thing,
    "== None": lambda thing: thing == None,  # noqa: E711  # what is refused
    "!=": lambda thing: thing != 0,
    "!= of NumPy": lambda thing: np.float32(1) != thing,
    "<": lambda thing: thing < 0,
    "in": lambda thing: 0 in thing,
    "in a list": lambda thing: thing in [0],
    "count": [0].count,
    "next": next,
    "reversed": reversed,
    "with": uses_of_with,
    "@": lambda thing: operator.matmul(thing, thing),
    "|": lambda thing: 1 | thing,
    "float": float,
}


@pytest.fixture
def things() -> Iterator[list[Any]]:
    """One of every class that is opaque and no element."""
    type_ = view_type(np.zeros((4,), np.float32))
    with open_session([type_]) as (session, (argument,)):
        view = tn.View(argument, session, "A", type_.shape, type_.strides)
        memory = tn.memory(ir.float32, (4,))
        nest = tn.parallel(4)
        handle = tn.NestHandle(session, nest, ())
        yield [
            *(view, view(0, 2), memory, memory(0, 2), nest, nest.axes[0], handle),
            tn.index_map(4, 4, lambda i: i),
            Coordinate(session, Symbols(), DimRef(0)),
        ]


@pytest.mark.parametrize("use", USES)
def test_every_use_is_refused(things: list[Any], use: str) -> None:
    for thing in things:
        with pytest.raises(TileError) as caught:
            USES[use](thing)
        assert caught.value.remedy


def test_identity_stays(things: list[Any]) -> None:
    places = {thing: place for place, thing in enumerate(things)}
    assert [places[thing] for thing in things] == list(range(len(things)))
    assert len({*things}) == len(things)


def test_dims_are_compared_by_identity() -> None:
    one, other = Dim("n", 4), Dim("n", 4)
    assert [one == same for same in (one, other)] == [True, False]
    assert [one != same for same in (one, other)] == [False, True]
    assert [other, one].index(one) == 1 and one in [other, one]


def test_every_class_is_here(things: list[Any]) -> None:
    def below(kind: Any) -> Iterator[Any]:
        yield kind
        for inner in kind.__subclasses__():
            yield from below(inner)

    known = {type(thing) for thing in things} | {*below(tn.Scalar), *below(tn.Tile), Dim}
    classes = set(below(Opaque)) - {Opaque, *tn.Scalar.__mro__}
    # A record is made of a class that is left behind.
    assert {kind.__qualname__ for kind in classes} <= {kind.__qualname__ for kind in known}
