"""Calls of atoms: what a machine offers beyond loops, by its id in the machine's catalogue.

In: operands as the entry lays them out. Out: values, and tokens of the entry's protocol, which are
ordinary values that later calls take. The call says what it touches, so that no pass needs to know
the entry; the verifier holds it against the catalogue.
"""

from __future__ import annotations

from tilenest.dialects.iterations import rank_of
from tilenest.dialects.stages import EVERY
from tilenest.ir import (
    Effect,
    EffectKind,
    MapUse,
    Operation,
    OwnEffects,
    Value,
    VectorType,
    attribute,
    variadic,
)
from tilenest.layouts import AffineMap
from tilenest.records import record

ATOM_EFFECTS = tuple(kind.value for kind in EffectKind)


@record
class AtomEffect:
    """One effect of a call: a kind of `ATOM_EFFECTS`, on an operand or (None) on anything."""

    kind: str
    operand: int | None = None


class AtomCall(Operation):
    """`atom(arguments)`: what entry `atom` of the catalogue does.

    `semantic` says what is wanted of an entry that has a choice. `layouts` has a map for each
    argument, from the coordinates of the entry's operand to its own, or none (empty where no
    argument is laid out); `protocol` names the protocol that the tokens belong to.
    """

    NAME = "atom.call"
    NEEDS = ("atoms",)
    FORMS = EVERY
    arguments = variadic()
    atom = attribute(str, leading=True)
    version = attribute(int, default=1)
    semantic = attribute(str, default="")
    layouts = attribute(tuple, default=())
    touches = attribute(tuple, default=())
    protocol = attribute(str, default="")

    def effects(self) -> OwnEffects:
        return tuple(map(self._effect, self.touches))

    def map_uses(self) -> tuple[MapUse, ...]:
        # An element of a vector is found by its register and the lane.
        ranks = [2 if isinstance(v.type, VectorType) else rank_of(v.type) for v in self.arguments]
        return tuple(
            MapUse(f"operand {place}", layout, layout.n_dims, 0, rank)
            for place, (rank, layout) in enumerate(zip(ranks, self.layouts, strict=False))
            if rank is not None and isinstance(layout, AffineMap)
        )

    def _effect(self, declared: object) -> Effect[Value]:
        arguments = self.arguments
        match declared:
            case AtomEffect(kind, None) if kind in ATOM_EFFECTS:
                return Effect(EffectKind(kind))
            case AtomEffect(kind, int(place)) if kind in ATOM_EFFECTS and place in range(
                len(arguments)
            ):
                return Effect(EffectKind(kind), arguments[place])
        # A rule refuses it; until then it may do anything.
        return Effect(EffectKind.CALL)
