"""Patches: how instances of a parallel update a tile of the scope around them.

In: payloads, and where each belongs. Out: the results of the parallel: what it was given, with
every patch laid over it. An instance's patches apply in the order written; two instances may touch
one element only by patches that combine, with the same function. Untouched elements keep their
value, and whoever still holds the value given sees it as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.dialects.iterations import dims_of, window
from tilenest.ir import (
    EffectKind,
    Operation,
    OwnEffects,
    ScalarType,
    TileType,
    Touch,
    Value,
    attribute,
    variadic,
)
from tilenest.records import record


@record
class Patch:
    """One update of result `result` of the parallel.

    It takes the next payload, one origin for each axis of the result, and, where it is
    `conditional`, one predicate: a bool for the whole patch or a tile over the payload's dims.
    Elements outside the result are dropped. `combine` is a scalar function of the element and the
    payload; without one the payload replaces the element.
    """

    result: int
    combine: str | None = None
    conditional: bool = False


@record
class BoundPatch:
    """A patch with its operands."""

    patch: Patch
    payload: Value
    origins: tuple[Value, ...]
    predicate: Value | None

    def touch(self, patched: Value) -> Touch[Value]:
        """The elements that it is laid over."""
        dims, is_masked = dims_of(self.payload.type), self.patch.conditional
        return window(patched, self.origins, dims, EffectKind.WRITE, is_masked=is_masked)


class YieldUpdates(Operation):
    """Ends the region of a parallel that updates its `initial` values."""

    NAME = "exec.yield_updates"
    FORMS = ("candidate",)
    TERMINATOR = True
    payloads = variadic()
    origins = variadic()
    predicates = variadic()
    patches = attribute(tuple, default=())

    def effects(self) -> OwnEffects:
        return ()

    def bound(self) -> Iterator[BoundPatch]:
        """The patches with what they take, once they are known to fit."""
        owner = self.parent_op
        assert owner is not None, "stands in a parallel"
        origins, predicates = iter(self.origins), iter(self.predicates)
        for patch, payload in zip(self.patches, self.payloads, strict=True):
            assert isinstance(patch, Patch)
            rank = patch_rank(owner.results[patch.result])
            at = tuple(next(origins) for _ in range(rank))
            yield BoundPatch(patch, payload, at, next(predicates) if patch.conditional else None)


def patch_rank(value: Value) -> int:
    """How many origins place a patch of a value."""
    assert isinstance(value.type, TileType | ScalarType)
    return len(value.type.dims) if isinstance(value.type, TileType) else 0
