"""Choosing an atom: a contract of the target's catalogue is proven anew for the place it fills.

In: a site (what is to be computed there, on which types, in which order, by whom, and where
operands and results lie), and a target. Out: a selection with the proof of every clause, or a
refusal with the clause that failed for each contract. Layouts are held against each other by layout
questions, whose disproofs show a point; all else is compared as it is stated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilenest.decisions import Decision
from tilenest.errors import SourceLocation
from tilenest.ir import EffectKind, Type
from tilenest.layouts import (
    AffineMap,
    Answer,
    Expressions,
    Space,
    equal,
)
from tilenest.machine.atoms import ORDERS, AtomContract
from tilenest.machine.target import Target
from tilenest.records import record

_MEANING = "meaning"


@record
class AtomSite:
    """The place an atom is to fill: the exact operations it would stand for."""

    subject: str
    """how a decision names it"""
    semantic: str
    """what is computed, by a name without a target"""
    policy: str | None
    """the order in which elements are combined, None where they are not"""
    rounding: str
    """one of `ROUNDINGS`"""
    operands: tuple[Type, ...]
    results: tuple[Type, ...]
    extents: tuple[int, ...]
    """of the iteration coordinates that the layouts start from"""
    operand_layouts: tuple[AffineMap, ...]
    result_layouts: tuple[AffineMap, ...]
    participants: str
    allowed: frozenset[EffectKind] = frozenset()
    """effects that may happen here"""
    is_exact: bool = False
    """whether it is known that no order and no rounding of steps gives other numbers"""
    location: SourceLocation | None = None


@record
class Comparison:
    """What the contract states and what the site does, compared: a claim about no points, so there
    is none to show where it fails."""

    is_proven: bool
    reason: str

    @property
    def is_disproven(self) -> bool:
        """Whether the two differ: a comparison is never in doubt."""
        return not self.is_proven


@record
class Clause:
    """One clause of a contract, held against a site."""

    name: str
    answer: Answer | Comparison

    def __str__(self) -> str:
        return f"{self.name}: {self.answer.reason}"


@record
class Selection:
    """A contract whose every clause is proven for the site."""

    contract: AtomContract
    clauses: tuple[Clause, ...]
    decision: Decision


@record
class Refusal:
    """Why no contract of the catalogue fits: the first clause that is not proven, for each."""

    subject: str
    failed: tuple[tuple[AtomContract, Clause], ...]

    def __str__(self) -> str:
        reasons = "; ".join(f"{contract}: {clause}" for contract, clause in self.failed)
        return f"no atom for {self.subject}: {reasons or 'the catalogue is empty'}"


def select(site: AtomSite, target: Target) -> Selection | Refusal:
    """The first contract, in the catalogue's order, that is proven for the site; where there is
    none, the first clause that each one fails. That is an answer: nothing is raised."""
    failed: list[tuple[AtomContract, Clause]] = []
    for contract in target.atoms:
        clauses: list[Clause] = []
        for clause in _clauses(site, contract, target.features):
            clauses.append(clause)
            if not clause.answer.is_proven:
                failed.append((contract, clause))
                break
        else:
            return Selection(contract, tuple(clauses), _decision(site, contract, clauses, failed))
    return Refusal(site.subject, tuple(failed))


def failing(site: AtomSite, contract: AtomContract) -> Clause | None:
    """The first clause that is not proven for the site, on a machine that has what it needs."""
    clauses = _clauses(site, contract, contract.needs)
    return next((clause for clause in clauses if not clause.answer.is_proven), None)


def _decision(
    site: AtomSite,
    contract: AtomContract,
    clauses: Sequence[Clause],
    failed: Sequence[tuple[AtomContract, Clause]],
) -> Decision:
    meant = [str(other) for other, clause in failed if clause.name != _MEANING]
    runner_up = meant[-1] if meant else "separate operations"
    proof = "; ".join(map(str, clauses))
    return Decision(site.subject, f"{contract}", runner_up, proof, site.location)


def _clauses(site: AtomSite, contract: AtomContract, features: frozenset[str]) -> Iterator[Clause]:
    """The clauses, the cheap ones first."""
    computes = site.semantic in contract.semantics
    does = "computes" if computes else "does not compute"
    yield _fact(_MEANING, computes, f"it {does} {site.semantic!r}")
    mismatch = contract.mismatch(site.operands, site.results)
    yield _fact("types", mismatch is None, f"it {mismatch or 'takes and gives these'}")
    yield _order(site, contract)
    yield _rounding(site, contract)
    yield _fact(
        "participants",
        contract.participants == site.participants,
        f"it is for a {contract.participants}, and here is a {site.participants}",
    )
    beyond = ", ".join(sorted(effect.value for effect in contract.effects - site.allowed))
    yield _fact("effects", not beyond, f"{beyond or 'none'} that may not happen here")
    missing = ", ".join(sorted(contract.needs - features))
    yield _fact("features", not missing, f"{missing or 'none'} that the machine lacks")
    yield from _layouts("operand", site.operand_layouts, contract.operand_layouts, site.extents)
    yield from _layouts("result", site.result_layouts, contract.result_layouts, site.extents)


def _order(site: AtomSite, contract: AtomContract) -> Clause:
    """An order fits where nothing is combined, where the policy permits it, or where all orders
    give one number."""
    order, policy = contract.arithmetic.order, site.policy
    if order == "none":
        return _fact("order", policy is None, "it combines nothing")
    if policy is None:
        return _fact("order", False, f"it combines in the order {order!r}, and nothing is to be")
    if policy in ORDERS[order]:
        return _fact("order", True, f"{policy} permits the order {order!r}")
    if site.is_exact:
        return _fact("order", True, f"the order {order!r} gives the numbers of any other")
    return _fact("order", False, f"{policy} does not permit the order {order!r}")


def _rounding(site: AtomSite, contract: AtomContract) -> Clause:
    """Other roundings give other numbers, but where no step rounds."""
    given, wanted = contract.arithmetic.rounding, site.rounding
    if given == wanted:
        return _fact("rounding", True, f"it rounds as the program does, {given!r}")
    if site.is_exact:
        return _fact("rounding", True, "no step rounds")
    return _fact("rounding", False, f"its rounding is {given!r}, and the program's {wanted!r}")


def _layouts(
    group: str, wanted: Sequence[AffineMap], given: Sequence[AffineMap], extents: tuple[int, ...]
) -> Iterator[Clause]:
    if len(wanted) != len(given):
        yield _fact(f"{group} layouts", False, f"{len(given)} are laid out, not {len(wanted)}")
        return
    for place, (ours, theirs) in enumerate(zip(wanted, given, strict=True)):
        name = f"layout of {group} {place}"
        mismatch = _mismatch(ours, theirs, len(extents))
        if mismatch is not None:
            yield _fact(name, False, mismatch)
        else:
            yield Clause(name, equal(_layout(ours, extents), _layout(theirs, extents)))


def _mismatch(ours: AffineMap, theirs: AffineMap, rank: int) -> str | None:
    """Why two maps say nothing about the same places, None where they can be held together."""
    for owner, map_ in (("site", ours), ("contract", theirs)):
        if map_.n_dims != rank:
            return f"{map_} of the {owner} has {map_.n_dims} coordinates, and there are {rank}"
        if map_.n_syms:
            return f"{map_} of the {owner} has symbols, of which nothing is known"
    if len(ours.results) != len(theirs.results):
        return f"{theirs} and {ours} give places of different ranks"
    return None


def _layout(map_: AffineMap, extents: tuple[int, ...]) -> Expressions:
    widest = max(extents, default=1)
    places = Space.box(*[widest] * len(map_.results), prefix="place")
    return Expressions(Space.box(*extents), places, map_.results)


def _fact(name: str, is_met: bool, text: str) -> Clause:
    return Clause(name, Comparison(is_met, text))
