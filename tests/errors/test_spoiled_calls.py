"""Calls that are right, with one argument after the other replaced by what may not fit.

Every argument that has a name is passed by it. What comes out is a result, or an error of ours: as
the call fits the signature, nothing is left to a TypeError of Python's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.errors.kinds import HELD, KINDS, Odd, fault, held, methods_of, two
from tests.errors.test_wrong_kinds import public_functions

Arguments = dict[str, object]
ELSEWHERE = {"interpret", "remap", "parse", "get_num_threads", "spec"}
"""Functions that kernels do not call."""
REFUSED = {
    "nest.index", "nest.stage",
    "access.atomic_and", "access.atomic_or", "access.atomic_xor",
}  # fmt: skip
"""Methods that these objects refuse whatever they are given."""


def fitting(things: Mapping[str, Any]) -> Arguments:
    """For each name of a parameter, an argument that most functions take."""
    tile = things["tile"]
    row = tile.at(0, axis=0)
    return {
        "a": tile, "b": tile, "x": tile, "y": tile, "z": tile, "gate": tile, "up": tile,
        "condition": tile > 0, "mask": tile > 0, "weight": row, "bias": row, "eps": 1e-5,
        "value": 1.0, "init": 0.0, "expected": 1.0, "low": 0, "high": 1, "other": 2.0,
        "axis": 0, "axes": 0, "label": "m", "extent": 4, "dtype": tn.float32, "name": "load",
        "shape": (3, 4), "domain": (3, 4), "codomain": (3, 4), "stride": (4, 1), "step": 1,
        "origin": (0, 0), "shape_or_layout": (3, 4), "resource": tn.mem.auto,
        "function": two, "index_map": things["map"], "reducer": tn.add, "ordered": True,
        "policy": tn.reduction.fold_left, "propagate_nan": True, "nest": things["nest"],
        "scope": tn.exec.worker, "window": 2, "interval": 1, "bounds": "zero",
    }  # fmt: skip


def special(name: str, things: Mapping[str, Any]) -> Arguments:
    """Where a function needs other arguments than most."""
    tile = things["tile"]
    whole, truths = tile.cast(tn.int32), tile > 0
    tables: list[tuple[str, Arguments]] = [
        ("bitwise_and bitwise_or bitwise_xor floor_divide mod", {"a": whole, "b": whole}),
        ("logical_and logical_or logical_xor logical_not", {"a": truths, "b": truths, "x": truths}),
        ("matmul mma", {"b": tile.T, "c": tn.matmul(tile, tile.T)}),
        ("cdiv", {"a": 3, "b": 4}),
        ("iota", {"axis": 4}),
        ("map", {"function": lambda i, j: i + j, "dtype": tn.int64}),
        ("transpose", {"axes": (1, 0)}),
        ("tile.at", {"coordinates": (1,)}),
        ("tile.bitcast scalar.bitcast bitcast", {"dtype": tn.int32}),
        ("view.at", {"indices": (0, 0), "mask": True}),
        ("view.permute", {"order": (1, 0)}),
        ("view.reshape", {"shape": (4, 3)}),
        ("view.broadcast_to", {"shape": (2, 3, 4)}),
        ("view.__getitem__", {"key": ((0, 0), (3, 4))}),
        ("tile.__getitem__", {"key": ((0, 0), (2, 2))}),
        ("memory.__call__", {"origin": 0, "shape": 2}),
        ("memory.__getitem__", {"key": (0, 2)}),
    ]
    if name.startswith("counts."):
        tables.append((name, {"value": 1, "expected": 1, "other": 2}))
    return {
        key: item for names, one in tables if name in names.split() for key, item in one.items()
    }


def spoiled(
    name: str, function: Callable[..., object], good: Arguments, kinds: Sequence[object]
) -> list[str]:
    """What is wrong with the way in which wrong arguments are refused."""
    parameters = inspect.signature(function).parameters.values()
    starred = [one.name for one in parameters if one.kind is one.VAR_POSITIONAL]
    first: Any = good.get(starred[0], (3,)) if starred else ()
    by_name = {one.name: good[one.name] for one in parameters if one.name not in starred}
    function(*first, **by_name)
    calls: list[tuple[tuple[object, ...], Arguments]] = []
    for kind in kinds:
        calls += [
            ((*first[:place], kind, *first[place + 1 :]), by_name) for place in range(len(first))
        ]
        calls += [(first, by_name | {key: kind}) for key in by_name]
    found = [fault((name, function, given), named, fits=True) for given, named in calls]
    return [one for one in found if one is not None]


@pytest.mark.parametrize("name", sorted(public_functions().keys() - ELSEWHERE))
def test_functions_of_a_kernel(name: str) -> None:
    for things in held():
        good = fitting(things) | special(name, things)
        assert spoiled(name, public_functions()[name], good, [*KINDS, *things.values()]) == []


@pytest.mark.parametrize("kind", HELD)
def test_methods_of_what_a_kernel_holds(kind: str) -> None:
    for things in held():
        things["memory"].store(0.0)
        for name, method in methods_of(things[kind]).items():
            full = f"{kind}.{name}"
            if full in REFUSED:
                continue
            good = fitting(things) | special(full, things)
            assert spoiled(full, method, good, [*KINDS, *things.values()]) == []


def ones(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.ones(shape, np.float32)


OPERATORS: dict[str, Arguments] = {
    "add": {"x": ones(3, 4), "y": ones(3, 4)},
    "swiglu": {"gate": ones(3, 4), "up": ones(3, 4)},
    "gelu": {"x": ones(3, 4), "bias": ones(4), "residual": ones(3, 4)},
    "matmul": {
        "a": ones(3, 4), "b": ones(4, 5), "bias": ones(5), "activation": "relu",
        "residual": ones(3, 5),
    },
    "softmax": {"x": ones(3, 4), "axis": 0, "mask": np.ones((3, 4), np.bool_)},
    "layer_norm": {
        "x": ones(3, 4), "weight": ones(4), "bias": ones(4), "eps": 1e-5, "residual": ones(3, 4),
    },
    "rms_norm": {"x": ones(3, 4), "weight": ones(4), "eps": 1e-6},
    **{
        name: {"x": ones(3, 4), "axis": 0}
        for name in ("sum", "mean", "max", "min", "argmax", "argmin")
    },
}  # fmt: skip
ARRAYS: tuple[Any, ...] = (
    [[1], [2, 3]], [1, "a"], range(3), {1, 2}, 1j, memoryview(b"abcd"), float("inf"),
    np.ones((3, 4), np.int8), np.ones((3, 4), np.float16), np.ones((3, 4), np.complex64),
    ones(0, 4), ones(), ones(1, 4), np.ones((3, 4), ">f4"), np.zeros((3, 4), [("a", int)]),
    np.array(["a"]), np.array([None]), np.ma.ones((3, 4)), np.float32(2), np.longdouble(1),
    np.datetime64("2020-01-01"), tn.spec(4, tn.float32), ones(4, 3)[:, ::-2].T, np.broadcast_to,
)  # fmt: skip


@pytest.mark.parametrize("name", tn.ops.__all__)
def test_operators_on_arrays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their kernels are captured only."""
    monkeypatch.setattr(tn.Kernel, "__call__", tn.Kernel.capture)
    operator = getattr(tn.ops, name)
    (held_by_kernels,) = [list(things.values()) for things in held()]
    kinds = [*KINDS, *ARRAYS, *held_by_kernels]
    assert spoiled(name, operator, OPERATORS[name] | {"out": None}, kinds) == []
    # Without the other arguments, which would be looked at first.
    first = next(iter(OPERATORS[name]))
    found = [fault((name, operator, ()), {first: kind}) for kind in (*KINDS, *ARRAYS)]
    assert [one for one in found if one is not None] == []


@tn.kernel
def copy(X: Any, Y: Any, *, block: int = 4) -> None:
    n = tn.axis("n", block)
    for part in tn.parallel(tn.cdiv(X.extent(0), block)):
        Y(part.index() * block, n).store(X[part.index() * block, n])


def test_describing_an_array() -> None:
    good: Arguments = {"shape": (3, 4), "dtype": tn.float32, "strides": (4, 1)}
    assert spoiled("spec", tn.spec, good, KINDS) == []
    wrongs: tuple[Any, ...] = (1.5, "a", (1.5, 1), ("a", 1), (True, 1), (2**70, 1), (Odd(), 1))
    for strides in wrongs:
        with pytest.raises(tn.TileError):
            tn.spec((3, 4), tn.float32, strides)
    for shape in (1.5, True, -1, 2**70, (3, 1.5), (3, -1), (3, True), {3: 4}):
        with pytest.raises(tn.ShapeError):
            tn.spec(shape, tn.float32)  # type: ignore[arg-type]  # what is refused
    known = tn.spec(np.int64(4), tn.float32, np.int64(2))
    assert known == tn.spec((4,), tn.float32, (2,)) and type(known.shape[0]) is int


@pytest.mark.parametrize("kind", [*KINDS, ones(3, 4)], ids=lambda kind: type(kind).__name__)
def test_kernels_as_objects(kind: Any) -> None:
    x, y = ones(5), ones(5)
    compiled = copy.compile(x, y, target="interpret")
    calls: list[tuple[str, Callable[..., object], tuple[Any, ...], Arguments]] = [
        ("call", copy, (x, kind), {}),
        ("target", copy, (x, y), {"target": kind}),
        ("block", copy, (x, y), {"block": kind, "target": "interpret"}),
        ("compile", copy.compile, (kind, y), {"target": "interpret"}),
        ("compile target", copy.compile, (x, y), {"target": kind}),
        ("capture", copy.capture, (x, kind), {}),
        ("capture block", copy.capture, (x, y), {"block": kind}),
        ("ir", compiled.ir, (kind,), {}),
        ("text", compiled.text, (kind,), {}),
        ("compiled", compiled, (x, kind), {}),
        ("kernel", tn.kernel, (), {"bounds": kind}),
        ("kernel", tn.kernel, (), {"math": kind}),
        ("function", tn.function, (kind,), {}),
    ]
    for name, function, given, named in calls:
        assert fault((name, function, given), named, fits=True) is None


def test_modules_and_remaps() -> None:
    module, x = copy.capture(ones(5), ones(5)), ones(5)
    named: Arguments = {"module": module, "arguments": [x, ones(5)], "function": "copy"}
    assert spoiled("interpret", tn.interpret, named | {"shuffle": 3}, KINDS) == []
    assert (
        spoiled("remap", tn.remap, {"module": module, "nest": None, "function": None}, KINDS) == []
    )
    levels = tn.remap(module)
    for name, method in methods_of(levels).items():
        keys = list(inspect.signature(method).parameters)
        for kind in KINDS:
            for given in (
                (kind,) * len(keys),
                *(("block",) * n + (kind,) for n in range(len(keys))),
            ):
                assert fault((name, method, given[: len(keys)])) is None
