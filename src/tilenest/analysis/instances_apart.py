"""Whether two accesses of one storage stay apart in different instances of the nests around both.

In: two accesses, and nests that hold both. Out: an answer; proven where no instance touches what
another one does. What is defined outside of the nests is one number for both accesses, and all else
(indices of the nests, what is computed inside) may differ between instances.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis.access_leaves import KnownLeaves, LeafKey
from tilenest.analysis.layout_facts import ComposedAccess
from tilenest.analysis.structure import is_defined_above
from tilenest.ir import Operation, Value
from tilenest.layouts import (
    Answer,
    Constraint,
    DimRef,
    Expressions,
    IndexExpr,
    IndexSet,
    Space,
    Sym,
    never_coincide,
    proven,
    unknown,
)

_ENGINE = "instances"
_FAR = 1 << 62
"""More than any extent: accesses outside of their storage count as well."""


def apart_across(one: ComposedAccess, other: ComposedAccess, nests: Sequence[Operation]) -> Answer:
    """Whether different instances of the nests, outermost first, touch different elements."""
    indices = [index for nest in nests for index in _indices(nest)]
    keys = dict.fromkeys((*one.leaves.keys, *other.leaves.keys))
    shared = [key for key in keys if _is_shared(key, nests)]
    own = _names(one.leaves, shared, "x"), _names(other.leaves, shared, "y")
    names = sorted({*own[0], *own[1]})
    first = _Side(one, own[0], names, 0)
    second = _Side(other, own[1], names, len(one.box))
    space = first.space.product(second.space)
    for index in indices:
        x, y = first.symbol(index), second.symbol(index)
        if x is None or y is None:
            # Instances along this axis do the same.
            return unknown(_ENGINE, f"nothing depends on %{index.name}")
        for ahead in (y - x, x - y):
            constraints = (*first.constraints, *second.constraints, Constraint(ahead - 1))
            pairs = IndexSet(space, constraints, tuple(names))
            answer = never_coincide(first.map, second.map, pairs)
            if not answer.is_proven:
                is_sure = one.is_exact and other.is_exact
                return answer if is_sure else unknown(answer.engine, answer.reason)
    return proven(_ENGINE, "no two instances meet")


class _Side:
    """One access over names that both sides share, its dims standing at `offset` among both's."""

    def __init__(
        self,
        access: ComposedAccess,
        own: list[str],
        names: list[str],
        offset: int,
    ) -> None:
        self._symbols = [Sym(names.index(name)) for name in own]
        self._keys = access.leaves.keys
        dims = [DimRef(place) for place in range(len(access.box))]
        moved = [DimRef(offset + place) for place in range(len(access.box))]
        self.space = Space.box(*access.box, prefix=f"d{offset}_")
        places = Space.box(*[_FAR] * len(access.results), prefix="at")
        results = tuple(self._over(result, dims) for result in access.results)
        self.map = Expressions(self.space, places, results, tuple(names))
        self.constraints = [
            Constraint(self._over(c.expression, moved), c.is_equality) for c in access.constraints
        ]

    def symbol(self, index: Value) -> Sym | None:
        """The name of a leaf on this side."""
        return self._symbols[self._keys.index(index)] if index in self._keys else None

    def _over(self, expression: IndexExpr, dims: Sequence[IndexExpr]) -> IndexExpr:
        return expression.substitute(dims, self._symbols)


def _indices(nest: Operation) -> Sequence[Value]:
    return nest.body.arguments[: len(nest.inductions())]


def _names(leaves: KnownLeaves, shared: list[LeafKey], prefix: str) -> list[str]:
    return [
        f"g{shared.index(key):04}" if key in shared else f"{prefix}{place:04}"
        for place, key in enumerate(leaves.keys)
    ]


def _is_shared(key: LeafKey, nests: Sequence[Operation]) -> bool:
    value = key[0] if isinstance(key, tuple) else key
    return is_defined_above(value, nests[0])
