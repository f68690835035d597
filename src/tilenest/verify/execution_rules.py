"""Rules TN03 to TN06: where work runs, and what rearranging it kept.

In: nests bound to scopes, operations that say between which nests they belong, and the remaps that
a function remembers. Out: faults where scopes do not nest as those of the target, where a cut does
not exist, where a remap is not proven, and where an operation is placed above what it depends on. A
module without a target is held against the scopes of the language.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from tilenest.analysis import (
    ExecutionStructure,
    Place,
    RemapProblem,
    enclosing_nests,
    enclosing_parallels,
    is_met_in,
    proofs_of_record,
    remap_problem,
    remaps_of,
    trip_counts,
)
from tilenest.dialects import AppliedRemap, AtomCall, Parallel, Placement
from tilenest.errors import TileError
from tilenest.execution import (
    ExecLevel,
    ExecStructure,
    Fact,
    Observer,
    PrefixCut,
    TargetScopes,
    bind,
    check_bindings,
    first_failure,
)
from tilenest.ir import Fault, Operation, Rule, Subject, Variable, describe_attribute
from tilenest.machine import OPEN_SCOPE
from tilenest.verify.targets import scopes_of, target_of

_MOST_JUDGED = 256


# TN03 ----------------------------------------------------------------------------------------


def _bindings(subject: Subject) -> Iterator[Fault]:
    for op in subject.of(Parallel):
        if op.scope == OPEN_SCOPE:
            continue
        around = (nest for nest in enclosing_parallels(op) if nest.scope != OPEN_SCOPE)
        bound = (*reversed(tuple(around)), op)
        scopes = scopes_of(subject, (nest.scope for nest in bound))
        known = scopes.names
        missing = next((nest.scope for nest in bound if nest.scope not in known), None)
        if missing is not None:
            if op.scope == missing:
                yield Fault(
                    op,
                    f"is bound to {missing}, which the target does not have",
                    f"use one of {', '.join(sorted(known))}",
                )
            continue
        found = first_failure(_judged(_levels(bound), _pairs(bound), _waiting(bound), scopes))
        if found is not None:
            yield Fault(
                op,
                f"its binding to {op.scope} breaks the rule of {found.law}: {found.answer.reason}",
                "bind nests inside one another to scopes that the target nests alike",
            )


def _levels(nests: tuple[Parallel, ...]) -> ExecStructure:
    levels = []
    for place, nest in enumerate(nests):
        for axis, trips in enumerate(trip_counts(nest)):
            name = f"{nest.scope}{place}_{axis}"
            extent = f"n_{name}" if trips is None else trips
            levels.append(ExecLevel(name, name, "parallel", extent, nest.scope, f"nest{place}"))
    return ExecStructure(tuple(levels))


def _pairs(nests: tuple[Parallel, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((level.identity, level.scope) for level in _levels(nests).levels)


def _waiting(nests: tuple[Parallel, ...]) -> tuple[Observer, ...]:
    """Where the instances of the innermost nest wait for each other."""
    inner = nests[-1]
    depth = sum(nest.rank for nest in nests[:-1])
    is_met = is_met_in(inner)
    return (Observer("exec.sync", "convergence", PrefixCut(depth)),) if is_met else ()


# Levels and scopes are values that no edit changes: after each pass the same few are asked about.
@lru_cache(maxsize=_MOST_JUDGED)
def _judged(
    structure: ExecStructure,
    pairs: tuple[tuple[str, str], ...],
    observers: tuple[Observer, ...],
    scopes: TargetScopes,
) -> tuple[Fact, ...]:
    return check_bindings(structure, bind(structure, pairs), scopes, observers)


# TN04 ----------------------------------------------------------------------------------------


def _cuts(subject: Subject) -> Iterator[Fault]:
    for op, stated in _stated(subject):
        if not isinstance(stated, Placement):
            yield Fault(
                op, f"its place is {describe_attribute(stated)}", "use a placement, or none"
            )
            continue
        depth = sum(nest.rank for nest in enclosing_nests(op))
        for name, cut in (("anchor", stated.anchor), ("frontier", stated.frontier)):
            if not 0 <= cut <= depth:
                yield Fault(
                    op,
                    f"its {name} is at depth {cut}, and there are {depth} levels around it",
                    f"use a depth from 0 to {depth}",
                )
        active = stated.active
        if active is not None and (active.n_dims, active.n_syms) != (stated.frontier, 0):
            yield Fault(
                op,
                f"its active set {active} is not one of the first {stated.frontier} levels",
                "give one coordinate for each level of the frontier, and no symbols",
            )


def _stated(subject: Subject) -> Iterator[tuple[Operation, object]]:
    for op in subject.operations:
        stated = op.attributes.get("place")
        if stated is not None and not isinstance(stated, Variable):
            yield op, stated


# TN05 ----------------------------------------------------------------------------------------


def _remaps(subject: Subject) -> Iterator[Fault]:
    for function in subject.module.functions:
        remembered = function.attributes.get("remaps", ())
        if not isinstance(remembered, tuple) or len(remembered) != len(remaps_of(function)):
            yield Fault(
                None,
                f"@{function.name} remembers {describe_attribute(remembered)} as its remaps",
                "let a function remember a list of remaps",
                function,
            )
        unproven = [found for one in remaps_of(function) if (found := _unproven(one)) is not None]
        misplaced = None if unproven else remap_problem(function)
        for problem in unproven if misplaced is None else [misplaced]:
            yield Fault(None, f"@{function.name}: {problem.message}", problem.remedy, function)


def _unproven(applied: AppliedRemap) -> RemapProblem | None:
    """What is not proven of a record by itself, for those it lists."""
    try:
        proofs_of_record(applied)
    except TileError as error:
        return RemapProblem(error.message, error.remedy or "remember remaps that were applied")
    return None


# TN06 ----------------------------------------------------------------------------------------


def _anchors(subject: Subject) -> Iterator[Fault]:
    structures = {
        function: subject.analyses.get(ExecutionStructure, function)
        for function in subject.module.functions
        if any(op.attributes.get("place") is not None for op in function.walk())
    }
    for op, stated in _stated(subject):
        function = op.parent_function
        if isinstance(stated, Placement) and function is not None:
            yield from _anchor(op, stated, structures[function].place(op))


def _anchor(op: Operation, stated: Placement, place: Place) -> Iterator[Fault]:
    if stated.anchor > stated.frontier:
        yield Fault(
            op,
            f"its anchor is at depth {stated.anchor}, behind its frontier at {stated.frontier}",
            "spread an operation at least as deep as it stands",
        )
    if 0 <= stated.anchor < place.anchor.depth:
        yield Fault(
            op,
            f"its anchor is at depth {stated.anchor}, and what it depends on is there from depth "
            f"{place.anchor.depth} on",
            f"use an anchor at depth {place.anchor.depth} or deeper",
        )


def _participants(subject: Subject) -> Iterator[Fault]:
    for op in subject.of(AtomCall):
        contract = target_of(subject).atoms.find(op.atom)
        around = [nest.scope for nest in enclosing_parallels(op) if nest.scope != OPEN_SCOPE]
        scopes = scopes_of(subject, around)
        bound = [scope for scope in around if scope in scopes.names]
        if contract is None or not bound or contract.participants not in scopes.names:
            continue
        if not scopes.is_within(contract.participants, bound[0]):
            yield Fault(
                op,
                f"{contract} needs units of {contract.participants}, and one instance here is a "
                f"unit of {bound[0]}",
                "call it outside of the nest that is bound to the smaller scope",
            )


PLACE_RULES = (
    Rule("TN03", "nests are bound as the target's scopes nest", _bindings),
    Rule("TN04", "places are cuts of the nests around", _cuts),
    Rule("TN05", "remembered remaps are proven for all who look at the nests", _remaps),
    Rule("TN06", "anchors cover what an operation depends on, and frontiers follow", _anchors),
    Rule("TN06b", "an atom has the participants that it needs", _participants),
)
