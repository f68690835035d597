"""What the tests of wrong kinds share: values of every kind, one of everything that a kernel holds,
and what is wrong with the way in which a call is refused."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any

import numpy as np

import tilenest as tn
from tests.unit.language.building import open_session, view_type, whole
from tilenest import errors, language

Call = tuple[str, Callable[..., object], tuple[object, ...]]
PYTHONS_OWN = re.compile(
    r"positional argument|takes no arguments|unexpected keyword|required keyword|multiple values|"
    r"required argument"
)


class Odd:
    """Of no kind that anything takes, and without a text."""

    def __repr__(self) -> str:
        raise RuntimeError("no text of this kind")


class Endless:
    """What can be gone through without an end; whoever goes far is caught before memory is full."""

    def __iter__(self) -> Iterator[int]:
        yield from repeat(1, 1 << 22)
        raise RuntimeError("read without an end")


def two(a: Any, b: Any) -> Any:
    return a, b


KINDS: tuple[Any, ...] = (
    None,
    "a",
    3,
    -1,
    2.5,
    float("nan"),
    True,
    2**70,
    10**5000,
    [],
    [1],
    (1, 2),
    {},
    b"x",
    Odd(),
    Endless(),
    int,
    two,
    tn.float32,
    np.ones(3),
    np.int64(2),
)


HELD = (
    "tile", "scalar", "view", "access", "counts", "nest", "request", "range", "memory", "part",
    "dim", "map",
)  # fmt: skip


def held() -> Iterator[dict[str, Any]]:
    """One of everything that a kernel holds."""
    types = [view_type(np.ones((3, 4), dtype)) for dtype in (np.float32, np.int32)]
    with open_session(types) as (session, arguments):
        view, counts = (
            language.View(argument, session, name, (3, 4), (4, 1))
            for name, argument in zip("AB", arguments, strict=True)
        )
        memory = language.memory(tn.float32, (4,))
        yield {
            "tile": whole(view),
            "scalar": view.at(0, 0).load(),
            "view": view,
            "access": view((0, 0), (3, 4)),
            "counts": counts((0, 0), (3, 4)),
            "nest": language.root(),
            "request": language.serial(4),
            "range": language.range_(view.extent(0)),
            "memory": memory,
            "part": memory(0, 2),
            "dim": tn.axis("m", 4),
            "map": tn.index_map((3, 4), (3, 4), two),
        }


def methods_of(thing: object) -> dict[str, Callable[..., object]]:
    """What is public, and what a call or a subscript of it is."""
    found = inspect.getmembers(thing, inspect.ismethod)
    hidden = ("__call__", "__getitem__")
    own = {name for name in hidden if name in vars(type(thing))}
    return {name: item for name, item in found if name in own or not name.startswith("_")}


def fault(
    call: Call, keywords: dict[str, object] | None = None, *, fits: bool = False
) -> str | None:
    """What is wrong with the way in which a call is refused; a TypeError of Python's own is right
    where a call does not fit the signature."""
    name, function, given = call
    named = [f"{key}={errors.shown(one)}" for key, one in (keywords or {}).items()]
    shown = f"{name}({', '.join([*map(errors.shown, given), *named])})"
    try:
        function(*given, **(keywords or {}))
    except tn.TileError as error:
        is_right = error.message and not isinstance(error, tn.InternalError)
        return None if is_right else f"{shown}: {error!r}"
    except TypeError as error:
        return None if not fits and PYTHONS_OWN.search(str(error)) else f"{shown}: {error!r}"
    except Exception as error:  # noqa: BLE001 - what is looked for
        return f"{shown}: {error!r}"
    return None


def faults(calls: Iterator[Call]) -> list[str]:
    found = (fault(call) for call in calls)
    return [one for one in found if one is not None]
