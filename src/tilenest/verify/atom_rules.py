"""Rules TN16: operands of atoms lie as the entry of the catalogue demands, and schedules name
entries that fit their nests.

In: calls of atoms that say how their operands lie, as maps from the coordinates of the entry's
iteration. Out: faults where that is not where the entry looks for the elements: at the operand's
layout in the contract, or, where the contract has none, at the operand's own coordinates. What lies
differently needs a repartition before the call, after which it lies as demanded. In: schedules as
well. Out: faults where an entry that one names is not proven for the step of the nest it is to do.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import atom_sites
from tilenest.dialects import AtomCall, AtomChoice, MapReducePost, Sched
from tilenest.ir import Rule, Subject, TileType, TokenType, Type, VectorType
from tilenest.layouts import AffineMap, Answer, Space, equal, of_affine_map
from tilenest.machine import AtomContract, AtomSite, Catalogue, failing
from tilenest.verify.expectations import Findings, place_rule
from tilenest.verify.reduction_rules import regrouping
from tilenest.verify.targets import target_of

_REMEDY = "repartition the operand before the call"


def _layouts(op: AtomCall, subject: Subject) -> Findings:
    contract = target_of(subject).atoms.find(op.atom)
    assert contract is not None, "OP94 holds"
    types = [value.type for value in op.arguments]
    for place, (type_, layout, wanted) in enumerate(
        zip(types, op.layouts, _demanded(contract, types), strict=False)
    ):
        if layout is None or wanted is None:
            continue
        if layout.n_dims != wanted.n_dims:
            yield (
                f"operand {place} lies by {layout.n_dims} coordinates, and {contract} looks for it "
                f"by {wanted.n_dims}",
                _REMEDY,
            )
            continue
        answer = _lie_alike(layout, wanted, _extents(type_, wanted.n_dims))
        if not answer.is_proven:
            yield (
                f"operand {place} lies at {layout}, and {contract} looks at {wanted}: {answer}",
                (_REMEDY),
            )


def _demanded(contract: AtomContract, types: list[Type]) -> Iterator[AffineMap | None]:
    """For each operand where the entry looks; None for tokens, and what has no coordinates."""
    layouts = contract.operand_layouts
    given = [type_ for type_ in types if not isinstance(type_, TokenType)]
    lanes = min((t.lanes for t in given if isinstance(t, VectorType)), default=1)
    counts = [pattern.count(lanes, len(given)) for pattern in contract.operands]
    patterns = iter([place for place, count in enumerate(counts) for _ in range(count)])
    for type_ in types:
        if isinstance(type_, TokenType):
            yield None
            continue
        pattern = next(patterns)
        if pattern < len(layouts):
            yield layouts[pattern]
        else:
            yield AffineMap.identity(len(type_.dims)) if isinstance(type_, TileType) else None


def _extents(type_: Type, n_dims: int) -> tuple[int, ...]:
    """Of the coordinates of the iteration: those of a tile, or as many as there are lanes."""
    if isinstance(type_, TileType):
        return type_.shape
    return (type_.lanes if isinstance(type_, VectorType) else 1,) * n_dims


def _lie_alike(layout: AffineMap, wanted: AffineMap, extents: tuple[int, ...]) -> Answer:
    domain = Space.box(*extents)
    places = Space.box(*[max(extents, default=1)] * len(wanted.results), prefix="place")
    return equal(of_affine_map(layout, domain, places), of_affine_map(wanted, domain, places))


def _chosen(op: MapReducePost, subject: Subject) -> Findings:
    sched = op.sched
    # What may not be regrouped needs no atom, and has a diagnostic of its own.
    if not isinstance(sched, Sched) or any(regrouping(op, subject)):
        return
    sites = atom_sites(op, sched.loops)
    if len(sites) != len(sched.atoms):
        yield (
            f"its loops leave {len(sites)} steps to atoms, and it names {len(sched.atoms)} atoms",
            "name one for each step, or use other loops",
        )
        return
    for site, choice in zip(sites.values(), sched.atoms, strict=True):
        yield from _fits(site, choice, target_of(subject).atoms)


def _fits(site: AtomSite, choice: AtomChoice, atoms: Catalogue) -> Findings:
    contract = atoms.find(choice.atom)
    if contract is None:
        known = ", ".join(entry.id for entry in atoms)
        yield f"no catalogue has the atom {choice.atom!r}", f"atoms are {known}"
        return
    if choice.version != contract.version:
        yield f"names version {choice.version} of {contract}", "name the version there is"
    clause = failing(site, contract)
    if clause is not None:
        yield (
            f"{contract} is not proven for the {site.subject}: {clause}",
            "name an atom whose contract fits, or use other loops",
        )


OPERAND_RULES: tuple[Rule, ...] = (
    place_rule("TN16", "operands of atoms lie as demanded", AtomCall, _layouts),
    place_rule("TN16b", "schedules name atoms that fit their nests", MapReducePost, _chosen),
)
