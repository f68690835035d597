"""Every public function, and every method of what a kernel holds, given what it does not take.

The arguments are of all kinds and in all places, as many as there may be. Whatever is not accepted
raises an error of ours; a TypeError of Python's own is right where a call does not fit a signature,
or an operator is not there.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.errors.kinds import HELD, KINDS, Call, Odd, faults, held, methods_of

FEW: tuple[Any, ...] = (None, "a", 3, (1, 2), Odd())
KEPT = {"set_num_threads", "kernel", "function", "exec", "mem", "reduction"}
"""What changes the process, marks what it is given, or only holds names."""
OPERATORS: tuple[Any, ...] = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.lt, operator.ge, operator.eq, operator.and_, operator.or_, operator.xor,
    operator.lshift, operator.rshift, operator.matmul, divmod, np.add, np.maximum, np.matmul,
)  # fmt: skip
CONVERSIONS = (
    operator.neg, operator.pos, operator.invert, operator.index, abs, int, float, bool, complex,
    round, math.floor, math.ceil, math.trunc, len, iter, list, sorted, hash, str, repr, range,
    np.exp, np.sum, np.asarray, lambda x: x[0], lambda x: x["a"], lambda x: x[1:],
    lambda x: x["a":], lambda x: 3 in x,
)  # fmt: skip
NO_NUMBERS = ("view", "access", "nest", "request", "range", "memory", "part", "dim", "map")


def public_functions() -> dict[str, Callable[..., object]]:
    named = {name: getattr(tn, name) for name in (*tn.__all__, "interpret", "remap")}
    return {
        name: item
        for name, item in named.items()
        if callable(item) and name not in KEPT and not isinstance(item, type)
    }


def public_classes() -> list[type]:
    found = [getattr(tn, name) for name in tn.__all__ if name not in KEPT]
    kinds = [item for item in found if isinstance(item, type)]
    return [kind for kind in kinds if not issubclass(kind, BaseException)]


def arguments(first: Sequence[object]) -> Iterator[tuple[object, ...]]:
    yield ()
    yield from product((*KINDS, *first))
    yield from product((*FEW, *first), KINDS)
    yield from product((3, (1, 2), *first), ("a", 3, (1, 2)), KINDS)


@pytest.mark.parametrize("name", public_functions())
def test_outside_of_a_kernel(name: str) -> None:
    function = public_functions()[name]
    assert faults((name, function, given) for given in arguments(())) == []


@pytest.mark.parametrize("kind", public_classes())
def test_classes(kind: type) -> None:
    assert faults((kind.__name__, kind, given) for given in arguments(())) == []


@pytest.mark.parametrize("name", public_functions())
def test_in_a_kernel(name: str) -> None:
    function = public_functions()[name]
    for things in held():
        given = arguments((things["tile"], things["scalar"]))
        assert faults((name, function, each) for each in given) == []


@pytest.mark.parametrize("kind", HELD)
def test_methods_of_what_a_kernel_holds(kind: str) -> None:
    for things in held():
        methods = methods_of(things[kind])
        calls = (
            (f"{kind}.{name}", method, each)
            for name, method in methods.items()
            for each in arguments(())
        )
        assert faults(calls) == []


@pytest.mark.parametrize("kind", HELD)
def test_operators_of_what_a_kernel_holds(kind: str) -> None:
    for things in held():
        thing = things[kind]
        for other in (*KINDS, *things.values()):
            calls = [(str(op), op, pair) for op in OPERATORS for pair in pairs(thing, other)]
            assert faults(iter(calls)) == []
        assert faults(conversions(thing)) == []


@pytest.mark.parametrize("kind", NO_NUMBERS)
def test_what_is_no_number_is_refused_in_every_operator(kind: str) -> None:
    for things in held():
        thing = things[kind]
        for operation in (*OPERATORS, operator.ge):
            if operation is not operator.eq:
                for pair in pairs(thing, 2):
                    with pytest.raises(tn.TileError) as caught:
                        operation(*pair)
                    assert caught.value.remedy


def test_shapes_and_strides_are_read_as_tuples_are() -> None:
    for things in held():
        for numbers, known in ((things["view"].shape, (3, 4)), (things["view"].strides, (4, 1))):
            wrongs: tuple[Any, ...] = ("a", 2.5, None, [], (0,), Odd(), things["scalar"])
            for wrong in (*wrongs, slice("a", None), slice(0, 2, 0)):
                with pytest.raises(tn.TileError):
                    numbers[wrong]
            for place in (-1, 1, np.int64(1), slice(1, None), slice(None, None, -1)):
                assert numbers[place] == known[place]
            more = (5, 6)
            assert numbers + more == known + more and more + numbers == more + known
            assert numbers + numbers == known + known and np.prod(numbers) == np.prod(known)


def pairs(thing: object, other: object) -> list[tuple[object, object]]:
    return [(thing, other), (other, thing)]


def conversions(thing: object) -> Iterator[Call]:
    return ((str(conversion), conversion, (thing,)) for conversion in CONVERSIONS)


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
