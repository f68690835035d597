"""The meaning of updates: patches of instances laid over what a parallel was given.

In: the entry values and what every instance handed over, in the order of the domain. Out: the
values afterwards. As a sanitizer, it refuses two instances that touch one element unless both only
combine into it, with the same function.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType

import numpy as np

from tilenest.dialects import YieldUpdates
from tilenest.errors import AncestorUpdateError
from tilenest.interp.frame import Frame, Handler, as_array
from tilenest.interp.functions import apply
from tilenest.interp.values import NUMPY_DTYPES, Array, RuntimeValue, Update, dims_of, spread
from tilenest.ir import DType, Operation
from tilenest.records import record

NOBODY = -1
_Part = slice | EllipsisType
_Window = tuple[_Part, ...]


@record
class Instance:
    """One instance: where in the domain, and its updates in order."""

    point: tuple[int, ...]
    updates: Sequence[RuntimeValue]


def yield_updates(frame: Frame, op: YieldUpdates) -> list[Update]:
    found = []
    for bound in op.bound():
        dims = dims_of(bound.payload.type)
        payload = frame.array(bound.payload)
        predicate = np.ones((), np.bool_)
        if bound.predicate is not None:
            given = frame.array(bound.predicate)
            predicate = spread(given, dims_of(bound.predicate.type), dims)
        origins = tuple(frame.integers(bound.origins))
        # One element of a tile is a patch of extent 1 along every axis.
        shape = payload.shape if dims else (1,) * len(origins)
        chosen = np.broadcast_to(predicate, payload.shape).reshape(shape)
        place, combine = bound.patch.result, bound.patch.combine
        found.append(Update(place, combine, payload.reshape(shape), origins, chosen))
    return found


def lay_over(entry: Sequence[RuntimeValue], instances: Sequence[Instance]) -> list[RuntimeValue]:
    """The values after every instance."""
    patched = [_Patched(as_array(value)) for value in entry]
    for ordinal, instance in enumerate(instances):
        for update in instance.updates:
            assert isinstance(update, Update)
            patched[update.result].lay(update, ordinal, instances)
    return [value.elements for value in patched]


class _Patched:
    """A value being updated: its elements, who touched each first, and how (no name: otherwise
    than by one function)."""

    def __init__(self, entry: Array) -> None:
        self.elements = entry.copy()
        self.first = np.full(entry.shape, NOBODY, np.int64)
        self.combine = np.full(entry.shape, "", np.object_)

    def lay(self, update: Update, ordinal: int, instances: Sequence[Instance]) -> None:
        window, inside = self._window(update)
        payload, chosen = update.payload[inside], update.predicate[inside]
        first, combine = self.first[window], self.combine[window]
        name = update.combine or ""
        is_same = (combine == name) & bool(name)
        clash = chosen & (first != NOBODY) & (first != ordinal) & ~is_same
        if clash.any():
            self._refuse(update, np.argwhere(clash)[0], first[clash][0], ordinal, instances)
        if name:
            payload = apply(name, _dtype(payload), [self.elements[window], payload])
        is_mixed = (first == ordinal) & (combine != name)
        np.copyto(self.elements[window], payload, where=chosen)
        np.copyto(combine, np.where(is_mixed, "", name), where=chosen)
        np.copyto(first, np.where(first == NOBODY, ordinal, first), where=chosen)

    def _window(self, update: Update) -> tuple[_Window, _Window]:
        """Which part of the value meets which part of the payload."""
        # The dots keep an element of a value without axes an array.
        here: list[_Part] = [...]
        there: list[_Part] = [...]
        axes = zip(update.origins, update.payload.shape, self.elements.shape, strict=True)
        for origin, extent, size in axes:
            start, stop = max(origin, 0), max(min(origin + extent, size), 0)
            start = min(start, stop)
            here.append(slice(start, stop))
            there.append(slice(start - origin, stop - origin) if stop > start else slice(0, 0))
        return tuple(here), tuple(there)

    def _refuse(
        self,
        update: Update,
        place: Array,
        other: int,
        ordinal: int,
        instances: Sequence[Instance],
    ) -> None:
        corner = [max(origin, 0) for origin in update.origins]
        element = tuple(int(at + first) for at, first in zip(place, corner, strict=True))
        first, second = instances[int(other)].point, instances[ordinal].point
        raise AncestorUpdateError(
            f"instances {first} and {second} both update element {element} of a tile of the "
            "scope around them",
            remedy="let every instance update a part of its own, or combine: "
            "x.update(origin, shape, value, combine=tn.add)",
        )


def _dtype(array: Array) -> DType:
    return next(dtype for dtype, own in NUMPY_DTYPES.items() if own == array.dtype)


HANDLERS: dict[type[Operation], Handler] = {YieldUpdates: yield_updates}
