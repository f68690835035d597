"""Calls of the atoms that a schedule names.

In: the steps that the loops leave to atoms, and the entry of the catalogue that was chosen for
each. Out: `atom.call`s that say how operands lie here and what is touched, so that the verifier
holds what is emitted against the contract.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import atom_sites
from tilenest.dialects import AtomCall, AtomChoice, AtomEffect, MapReducePost
from tilenest.ir import Value
from tilenest.layouts import AffineMap
from tilenest.machine import CPU_ATOMS, AtomContract, AtomSite
from tilenest.nests.emitter import Emitter
from tilenest.records import record


@record
class PlacedAtom:
    """A step of a nest and what does it."""

    site: AtomSite
    choice: AtomChoice
    contract: AtomContract


def placed_atoms(op: MapReducePost) -> dict[int, PlacedAtom]:
    """The atoms of a scheduled op, by the result they finish."""
    sched = op.schedule()
    sites = atom_sites(op, sched.loops)
    assert len(sites) == len(sched.atoms), "TN16b holds"
    placed: dict[int, PlacedAtom] = {}
    for (result, site), choice in zip(sites.items(), sched.atoms, strict=True):
        contract = CPU_ATOMS.find(choice.atom)
        assert contract is not None, "TN16b holds"
        placed[result] = PlacedAtom(site, choice, contract)
    return placed


def call_atom(atom: PlacedAtom, arguments: Sequence[Value], emitter: Emitter) -> list[Value]:
    """What the atom gives for these registers."""
    site, contract = atom.site, atom.contract
    call = AtomCall(
        arguments=arguments,
        atom=atom.choice.atom,
        version=atom.choice.version,
        semantic=site.semantic if len(contract.semantics) > 1 else "",
        layouts=_layouts(atom, len(arguments)),
        touches=tuple(AtomEffect(kind) for kind in sorted(kind.value for kind in contract.effects)),
        result_types=site.results,
    )
    return list(emitter.builder.insert(call).results)


def _layouts(atom: PlacedAtom, count: int) -> tuple[AffineMap | None, ...]:
    """The map of an operand stands with its first register, and holds for those that follow."""
    lanes = max(atom.site.extents)
    layouts: list[AffineMap | None] = []
    for pattern, layout in zip(atom.contract.operands, atom.site.operand_layouts, strict=True):
        layouts += [layout, *[None] * (pattern.count(lanes, count) - 1)]
    return tuple(layouts)
