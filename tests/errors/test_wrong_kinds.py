"""Every public function, and every method of what a kernel holds, given what it does not take.

The arguments are of all kinds and in all places, as many as there may be. Whatever is not accepted
raises an error of ours; a TypeError of Python's own is right where a call does not fit a signature,
or an operator is not there.
"""

from __future__ import annotations

import inspect
import math
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from enum import Enum
from itertools import product
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.unit.language.building import open_session, view_type, whole
from tilenest import language

Call = tuple[str, Callable[..., object], tuple[object, ...]]
PYTHONS_OWN = re.compile(
    r"positional argument|unexpected keyword|required keyword|multiple values|unsupported operand"
    r"|bad operand type|required argument"
)


class Odd:
    """Of no kind that anything takes."""


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
    [],
    (1, 2),
    {},
    b"x",
    Odd(),
    int,
    two,
    tn.float32,
    np.ones(3),
    np.int64(2),
)
FEW: tuple[Any, ...] = (None, "a", 3, (1, 2), Odd())
KEPT = {"set_num_threads", "kernel", "function", "exec", "mem", "reduction"}
"""What changes the process, marks what it is given, or only holds names."""
OPERATORS = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.lt, operator.ge, operator.eq, operator.and_, operator.or_, operator.xor,
    operator.lshift, operator.rshift, operator.getitem, divmod,
)  # fmt: skip
CONVERSIONS = (
    operator.neg, operator.pos, operator.invert, operator.index, abs, int, float, bool, complex,
    round, len, iter, list, hash, str, repr,
)  # fmt: skip


def public_functions() -> dict[str, Callable[..., object]]:
    named = {name: getattr(tn, name) for name in (*tn.__all__, "interpret", "remap")}
    return {
        name: item
        for name, item in named.items()
        if callable(item) and name not in KEPT and not isinstance(item, type | Enum)
    }


def arguments(first: Sequence[object]) -> Iterator[tuple[object, ...]]:
    yield ()
    yield from product((*KINDS, *first))
    yield from product((*FEW, *first), KINDS)
    yield from product((3, (1, 2), *first), ("a", 3, (1, 2)), KINDS)


def fault(call: Call) -> str | None:
    """What is wrong with the way in which a call is refused."""
    name, function, given = call
    try:
        function(*given)
    except tn.TileError as error:
        is_right = error.message and not isinstance(error, tn.InternalError)
        return None if is_right else f"{name}{given}: {error!r}"
    except TypeError as error:
        return None if PYTHONS_OWN.search(str(error)) else f"{name}{given}: {error!r}"
    except Exception as error:  # noqa: BLE001 - what is looked for
        return f"{name}{given}: {error!r}"
    return None


def faults(calls: Iterator[Call]) -> list[str]:
    found = (fault(call) for call in calls)
    return [one for one in found if one is not None]


@pytest.mark.parametrize("name", public_functions())
def test_outside_of_a_kernel(name: str) -> None:
    function = public_functions()[name]
    assert faults((name, function, given) for given in arguments(())) == []


def held() -> Iterator[dict[str, Any]]:
    """One of everything that a kernel holds."""
    array = np.ones((3, 4), np.float32)
    with open_session([view_type(array)]) as (session, (argument,)):
        view = language.View(argument, session, "A", (3, 4), (4, 1))
        yield {
            "tile": whole(view),
            "scalar": view.at(0, 0).load(),
            "view": view,
            "access": view((0, 0), (3, 4)),
            "nest": language.root(),
            "memory": language.memory(tn.float32, (4,)),
        }


@pytest.mark.parametrize("name", public_functions())
def test_in_a_kernel(name: str) -> None:
    function = public_functions()[name]
    for things in held():
        given = arguments((things["tile"], things["scalar"]))
        assert faults((name, function, each) for each in given) == []


@pytest.mark.parametrize("kind", ["tile", "scalar", "view", "access", "nest", "memory"])
def test_methods_of_what_a_kernel_holds(kind: str) -> None:
    for things in held():
        thing = things[kind]
        methods = [
            (f"{kind}.{name}", method)
            for name, method in inspect.getmembers(thing, callable)
            if not name.startswith("_")
        ]
        assert methods
        calls = ((name, method, each) for name, method in methods for each in arguments(()))
        assert faults(calls) == []


@pytest.mark.parametrize("kind", ["tile", "scalar", "view", "access", "nest", "memory"])
def test_operators_of_what_a_kernel_holds(kind: str) -> None:
    """An operator that is not there is a TypeError of Python's own."""
    for things in held():
        thing = things[kind]
        for other in (*KINDS, *things.values()):
            for operation in OPERATORS:
                with suppress(tn.TileError, TypeError):
                    operation(thing, other)
        for conversion in CONVERSIONS:
            with suppress(tn.TileError, TypeError):
                conversion(thing)


INDEX_FUNCTIONS: dict[str, Callable[..., object]] = {
    "too few": lambda: 0,
    "too many": lambda i, j, k: (i + j, k),
    "compared": lambda i, j: (i if i < j else j, j),
    "equal": lambda i, j: (0 if i == 0 else i, j),
    "divided": lambda i, j: (i / 2, j),
    "raised": lambda i, j: (i**2, j),
    "rounded": lambda i, j: (math.floor(i), j),
    "converted": lambda i, j: (int(i), j),
    "a float": lambda i, j: (i + 0.5, j),
    "mathematics": lambda i, j: (math.sqrt(i), j),
    "counted": lambda i, j: (sum(range(i)), j),
    "of a name": lambda i, j: ("a", i + j),
    "NumPy": lambda i, j: (np.float32(2) * i, j),
    "too few results": lambda i, j: i + j,
}


@pytest.mark.parametrize("name", INDEX_FUNCTIONS)
def test_index_functions(name: str) -> None:
    function = INDEX_FUNCTIONS[name]
    for things in held():
        with pytest.raises(tn.TileError) as caught:
            tn.index_map((3, 4), (3, 4), function)
        assert caught.value.remedy
        with pytest.raises(tn.TileError):
            tn.reindex(things["tile"], (3, 4), function)


def test_integers_of_numpy_in_an_index_function() -> None:
    for _ in held():
        mapped = tn.index_map((3, 4), (6, 4), lambda i, j: (np.int64(2) * i, j))
        assert str(mapped.map) == "(d0, d1) -> (d0*2, d1)"


def wrong_seeds() -> list[Any]:
    return ["a", -1, 2.5, [], Odd()]


def test_modules_and_remaps() -> None:
    @tn.kernel
    def copy(X: Any, Y: Any) -> None:
        for block in tn.parallel(X.extent(0)):
            Y.at(block.index()).store(X.at(block.index()).load())

    @tn.kernel
    def idle(X: Any, Y: Any) -> None:
        pass

    def module() -> Any:
        return copy.capture(np.ones(5), np.ones(5))

    assert faults(("parse", tn.parse, (each,)) for each in KINDS) == []
    for name in ("capture", "compile"):
        assert faults((name, getattr(idle, name), each) for each in arguments(())) == []
    one = module()
    for name in ("show", "svg"):
        assert faults((name, getattr(one, name), each) for each in arguments(())) == []
    for shuffle in wrong_seeds():
        with pytest.raises(tn.ArgumentTypeError, match="shuffle is"):
            tn.interpret(one, [np.ones(5), np.ones(5)], shuffle=shuffle)
    levels = tn.remap(module())
    steps = "split fuse unite permute reshape coalesce insert_unit remove_unit then reanchor"
    for name in steps.split():
        calls = ((name, getattr(levels, name), each) for each in arguments(("block",)))
        assert faults(calls) == [], name
