"""Everything that `tilenest.layouts` offers, given what it does not take.

In the place of every argument stands every kind, and in the places before it what is right: maps,
sets, spaces, formulas, dimensions. Whatever is not accepted raises an error of ours.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import product
from types import ModuleType
from typing import Any

import pytest

from tests.errors.kinds import KINDS, faults, methods_of
from tilenest import layouts

LINE, TILE = layouts.Space.box(3), layouts.Space.box(2, "n")
RIGHT: dict[str, Any] = {
    "space": TILE,
    "set": layouts.IndexSet(LINE, (layouts.Constraint(layouts.DimRef(0) - 1),)),
    "map": layouts.strided(LINE, (2,)),
    "run-time map": layouts.Identity(TILE),
    "formula": layouts.DimRef(0) * 2 + layouts.Sym(0),
    "access": layouts.AffineMap.identity(2),
    "correspondence": layouts.LayoutCorr.from_map(layouts.strided(LINE, (2,))),
    "dimensions": layouts.shape_dims((2, layouts.Dim("m", 3))),
}
OF_ROOMS = "tilenest.layouts.kinds"
"""What rooms check their own callers with; what is asked of it is never a user's."""
UNCHECKED = ("value",)
"""What `apply` asks of a kind of map once it has checked the point."""
SYSTEMS = (layouts.cute, layouts.triton, layouts.tirx, layouts.drawing)


def offered(face: ModuleType) -> Iterator[tuple[str, Callable[..., object]]]:
    for name in dir(face):
        item = getattr(face, name)
        home = getattr(item, "__module__", "")
        is_own = home.startswith(face.__name__) and home != OF_ROOMS
        is_made = inspect.isfunction(item) or inspect.isclass(item)
        if (
            name[0] != "_"
            and is_own
            and is_made
            and not (inspect.isclass(item) and issubclass(item, Enum))
        ):
            yield f"{face.__name__}.{name}", item


OFFERED = dict(one for face in (layouts, *SYSTEMS) for one in offered(face))


def arguments(first: tuple[object, ...]) -> Iterator[tuple[object, ...]]:
    yield ()
    yield from product((*KINDS, *first))
    yield from product((3, *first), (*KINDS, *first))
    yield from product(first, ((0,), *first), KINDS)
    for one in first:
        yield from ((one, (0,), {}, kind) for kind in KINDS)


@pytest.mark.parametrize("name", OFFERED)
def test_functions_and_classes(name: str) -> None:
    given = arguments(tuple(RIGHT.values()))
    assert faults((name, OFFERED[name], each) for each in given) == []


@pytest.mark.parametrize("kind", ["space", "set", "map", "run-time map", "correspondence"])
def test_methods(kind: str) -> None:
    for name, method in methods_of(RIGHT[kind]).items():
        if name not in UNCHECKED:
            given = arguments(tuple(RIGHT.values()))
            assert faults((f"{kind}.{name}", method, each) for each in given) == []
