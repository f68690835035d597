"""Binding values to targets: names, items, attributes, and unpacking.

In: a target node and a value. Out: the frame with the target bound. Inside a staged construct,
whose body stands for many runs or may not run, only names, existing list slots and what is made
there can be written: names and slots are what regions carry.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from tilenest.capture.frames import Frame
from tilenest.capture.interpreter import Interpreter, placing
from tilenest.errors import CaptureError, RankError
from tilenest.language import Extents, Handle, HostNumbers, Memory, Scalar, Tile


def bind_target(interpreter: Interpreter, target: ast.expr, value: object, frame: Frame) -> None:
    """Assign `value` to a target, which may unpack it."""
    match target:
        case ast.Name():
            if isinstance(value, Memory):
                with placing(target, frame):
                    _bind_memory(interpreter, target.id, value, frame)
            frame.store(target.id, value, frame.locate(target))
        case ast.Tuple() | ast.List():
            _unpack(interpreter, target.elts, value, frame)
        case ast.Starred():
            bind_target(interpreter, target.value, value, frame)
        case ast.Subscript():
            base = interpreter.evaluate(target.value, frame)
            key = interpreter.evaluate(target.slice, frame)
            with placing(target, frame):
                assign_item(interpreter, target, base, key, value, frame)
        case ast.Attribute():
            base = interpreter.evaluate(target.value, frame)
            with placing(target, frame):
                assign_attribute(interpreter, target, base, value)
        case _:
            raise AssertionError(f"no such target: {target}")


def assign_item(
    interpreter: Interpreter,
    target: ast.Subscript,
    base: object,
    key: object,
    value: object,
    frame: Frame,
) -> None:
    """`base[key] = value`."""
    refuse_held_memory([value], "an item")
    if isinstance(base, Tile):
        raise CaptureError(
            "a part of a tile is assigned, which is not supported yet",
            remedy="store to a view, or build the whole tile with tn.where over tn.iota",
        )
    interpreter.check_change(base, target.value, keeps_length=True)
    if isinstance(base, list | dict) and isinstance(key, Scalar):
        raise CaptureError(
            f"an item of a {type(base).__name__} is assigned at a run-time index",
            remedy="use a host int as the index, as in a Python loop over range(4)",
        )
    base[key] = value  # type: ignore[index]  # any host object
    if isinstance(base, list) and isinstance(key, int):
        slot = f"{id(base)}[{range(len(base))[key]}]"
        for scope in interpreter.frames:
            for accesses in scope.accesses:
                accesses.places[slot] = frame.locate(target)


def assign_attribute(
    interpreter: Interpreter, target: ast.Attribute, base: object, value: object
) -> None:
    """`base.name = value`."""
    refuse_held_memory([value], "an attribute")
    if isinstance(base, Handle):
        raise CaptureError(
            f"the attribute {target.attr!r} is assigned inside a run-time loop or `if`",
            remedy="use a variable or a list slot: those are carried out of it",
        )
    interpreter.check_change(base, target.value)
    setattr(base, target.attr, value)


def _bind_memory(interpreter: Interpreter, name: str, memory: Memory, frame: Frame) -> None:
    """A memory has one name at a time; a function that returns it gives up its own."""
    owner = memory.owner_name
    if owner is not None and _is_elsewhere(owner, name, frame, interpreter):
        raise CaptureError(
            f"the memory {owner[1]!r} gets a second name, {name!r}",
            remedy="use the one name: a memory cannot be copied or assigned; pass it to a function "
            "as an argument, or copy its content with store and load",
        )
    memory.owner_name = frame, name
    memory.value.name = memory.value.name or name


def _is_elsewhere(
    owner: tuple[object, str], name: str, frame: Frame, interpreter: Interpreter
) -> bool:
    """Whether an owner is another name, of a function that still runs."""
    holder, known = owner
    is_running = any(holder is each for each in interpreter.frames)
    return is_running and not (holder is frame and known == name)


def refuse_held_memory(items: Iterable[object], what: str) -> None:
    """A memory in a container would be a name that nobody sees."""
    if any(isinstance(item, Memory) for item in items):
        raise CaptureError(
            f"a memory becomes {what} of something",
            remedy="keep each memory in a variable of its own",
        )


def _unpack(
    interpreter: Interpreter, targets: Sequence[ast.expr], value: object, frame: Frame
) -> None:
    items = list(value)  # type: ignore[call-overload]  # any iterable
    starred = [place for place, item in enumerate(targets) if isinstance(item, ast.Starred)]
    expected = len(targets) - len(starred)
    if len(items) < expected or (len(items) > expected and not starred):
        relation = "at least " if starred else ""
        message = f"{len(items)} values are unpacked where {relation}{expected} are needed"
        if isinstance(value, Extents | HostNumbers):
            raise RankError(
                f"a shape has {len(items)} axes: {message}",
                remedy="name every axis once, or pass an array with as many axes as are named",
            )
        raise ValueError(message)
    if starred:
        (place,) = starred
        end = len(items) - (expected - place)
        items[place:end] = [items[place:end]]
    for target, item in zip(targets, items, strict=True):
        bind_target(interpreter, target, item, frame)
