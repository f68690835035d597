"""Bindings of execution levels to target scopes, and whether they fit.

In: an execution structure, the levels that are bound, and the scopes of a target. Out: facts. A
binding maps the instances of the prefix that ends with its level to target coordinates; an axis of
these is named after a scope, with a part behind a dot where several levels share one, or after
`time` where units take several turns. What encloses an instance has to enclose its unit: the target
ancestor of the child's binding is the parent's binding of the ancestor. The witness of a disproof
is one or two instances; what no instance breaks holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from math import prod

from tilenest.errors import VerifyError
from tilenest.execution.levels import ExecStructure, Observer, PrefixCut
from tilenest.execution.pairs import STRUCTURE, all_proven, holds_on, is_empty, no_pair
from tilenest.execution.proofs import Fact
from tilenest.execution.remap import extent_in, formula_over
from tilenest.execution.scopes import TargetScopes
from tilenest.layouts import (
    Answer,
    Axis,
    Const,
    Constraint,
    DimRef,
    Expressions,
    IndexExpr,
    IndexSet,
    LayoutMap,
    Project,
    Space,
    check_kind,
    equal,
    is_bounded,
    is_total,
    proven,
    tuple_of,
    unknown,
)
from tilenest.records import record, replace

TIME = "time"


@record
class Binding:
    """A parallel level bound to a scope; `map` starts from the prefix that ends with the level."""

    level: str
    scope: str
    map: LayoutMap

    def __post_init__(self) -> None:
        check_kind(self.level, str, "the level of a binding")
        check_kind(self.scope, str, "the scope of a binding")
        check_kind(self.map, LayoutMap, "the map of a binding")


def bind(structure: ExecStructure, bound: Sequence[tuple[str, str]]) -> tuple[Binding, ...]:
    """Bindings of levels to scopes where each coordinate is the number of a unit. Raises a
    `VerifyError` for a level that is not there, and for what is no pair of names."""
    check_kind(structure, ExecStructure, "what is bound")
    pairs = tuple_of(bound, tuple, "what is bound")
    if any(len(pair) != 2 for pair in pairs):
        raise VerifyError("a binding is a level and a scope", remedy="give pairs of names")
    places = {structure.position(level): scope for level, scope in pairs}
    shared = Counter(places.values())
    bindings = []
    for place in sorted(places):
        above = [outer for outer in sorted(places) if outer <= place]
        axes = []
        for outer in above:
            level, scope = structure.levels[outer], places[outer]
            is_alone = shared[scope] == 1
            axes.append(Axis(scope if is_alone else f"{scope}.{level.identity}", level.extent))
        domain = structure.prefix_space(PrefixCut(place + 1))
        units = Expressions(domain, Space(tuple(axes)), tuple(map(DimRef, above)))
        bindings.append(Binding(structure.levels[place].identity, places[place], units))
    return tuple(bindings)


def check_bindings(
    structure: ExecStructure,
    bindings: Sequence[Binding],
    scopes: TargetScopes,
    observers: Sequence[Observer] = (),
) -> tuple[Fact, ...]:
    """What is known of the bindings, one fact a rule and binding or pair of bindings. Raises a
    `VerifyError` for levels that are not parallel, scopes that the target lacks, and maps of
    another prefix."""
    check_kind(structure, ExecStructure, "what is bound")
    check_kind(scopes, TargetScopes, "the scopes of a target")
    bindings = tuple_of(bindings, Binding, "the bindings")
    ordered = sorted(bindings, key=lambda binding: structure.position(binding.level))
    for binding in ordered:
        _check_types(structure, binding, scopes)
    pairs = list(combinations(ordered, 2))
    # A unit that is not there is in no other one: the first failure is the one to mend.
    facts = [Fact("containment", _is_contained(structure, *pair, scopes)) for pair in pairs]
    facts += [Fact("capacity", _has_units(binding, scopes)) for binding in ordered]
    facts += [Fact("ancestor", _commutes(outer, inner)) for outer, inner in pairs]
    facts += [Fact("unit", _has_own_unit(structure, binding, ordered)) for binding in ordered]
    facts += [
        Fact("convergence", _converges(structure, observer, ordered, scopes))
        for observer in observers
        if observer.kind == "convergence"
    ]
    return tuple(facts)


def _check_types(structure: ExecStructure, binding: Binding, scopes: TargetScopes) -> None:
    place = structure.position(binding.level)
    if not structure.levels[place].is_spatial:
        raise VerifyError(
            f"level {structure.levels[place]} is bound to {binding.scope!r}",
            remedy="bind parallel levels; the others are time",
        )
    if binding.map.domain != structure.prefix_space(PrefixCut(place + 1)):
        raise VerifyError(
            f"the binding of level {binding.level!r} maps {binding.map.domain}",
            remedy="map the prefix that ends with the level",
        )
    scopes.scope(binding.scope)
    for axis in binding.map.codomain.axes:
        if _scope_of(axis) != TIME:
            scopes.scope(_scope_of(axis))


def _scope_of(axis: Axis) -> str:
    return axis.name.partition(".")[0]


def _is_contained(
    structure: ExecStructure, outer: Binding, inner: Binding, scopes: TargetScopes
) -> Answer:
    """Whether no instance is in a unit of a scope that the scope around it does not contain."""
    if scopes.is_within(inner.scope, outer.scope):
        return proven(STRUCTURE, f"{inner.scope} is within {outer.scope}")
    answer = is_empty(_instances(structure, inner), "no instance is in such a unit")
    reason = (
        f"level {inner.level} is inside {outer.level}, but scope {inner.scope} is not within "
        f"{outer.scope}"
    )
    return replace(answer, reason=reason) if answer.is_disproven else answer


def _instances(structure: ExecStructure, binding: Binding) -> IndexSet:
    """The instances of the prefix that ends with a bound level."""
    names = structure.symbols
    return IndexSet(binding.map.domain, structure.laws_over(names), names)


def _commutes(outer: Binding, inner: Binding) -> Answer:
    """Whether the unit that encloses the inner instance is the unit of the enclosing instance."""
    names = [axis.name for axis in inner.map.codomain.axes]
    wanted = [axis.name for axis in outer.map.codomain.axes]
    if not set(wanted) <= set(names):
        return unknown(STRUCTURE, f"{inner.level} says nothing of {', '.join(wanted)}")
    ancestor = inner.map.then(
        Project(inner.map.codomain, tuple(names.index(name) for name in wanted))
    )
    parent = Project(inner.map.domain, tuple(range(outer.map.domain.rank))).then(outer.map)
    if ancestor.codomain != parent.codomain:
        return unknown(STRUCTURE, f"{outer.level} and {inner.level} count units differently")
    return equal(ancestor, parent)


def _has_units(binding: Binding, scopes: TargetScopes) -> Answer:
    """Whether every instance gets one of the units there are."""
    axes = binding.map.codomain.axes
    for name in dict.fromkeys(_scope_of(axis) for axis in axes):
        arity = None if name == TIME else scopes.scope(name).arity
        extents = [axis.extent for axis in axes if _scope_of(axis) == name]
        if arity is None:
            continue
        known = [extent for extent in extents if isinstance(extent, int)]
        if len(known) < len(extents) and 0 not in known:
            return unknown(STRUCTURE, f"how many units of {name} is known at run time")
        if len(known) == len(extents) and prod(known) > arity:
            answer = _is_numbered_below(arity, binding, name)
            reason = f"{prod(known)} units of {name} are asked for, of {arity}"
            if not answer.is_proven:
                return replace(answer, reason=reason)
    answers = (is_total(binding.map), is_bounded(binding.map))
    return all_proven(answers, "there are units enough")


def _is_numbered_below(arity: int, binding: Binding, scope: str) -> Answer:
    """Whether no instance is in a unit of a scope beyond those there are."""
    found = formula_over(binding.map, binding.map.symbols)
    if found is None:
        return unknown(STRUCTURE, "the binding is not one formula")
    number: IndexExpr = Const(0)
    for result, axis in zip(found.results, binding.map.codomain.axes, strict=True):
        if _scope_of(axis) == scope:
            number = number * extent_in(axis.extent, found.symbols) + result
    reason = f"there are {arity} units of {scope}"
    return holds_on(found.domain, Constraint(Const(arity - 1) - number), reason)


def _has_own_unit(
    structure: ExecStructure, binding: Binding, bindings: Sequence[Binding]
) -> Answer:
    """Whether no two instances of bound levels, at one time, are on one unit."""
    place = structure.position(binding.level)
    bound = {structure.position(other.level) for other in bindings}
    found = formula_over(binding.map, binding.map.symbols)
    if found is None:
        return unknown(STRUCTURE, "the binding is not one formula")
    rest = [other for other in range(place + 1) if other not in bound]
    reason = "no unit has two instances at one time"
    answers = (
        no_pair(found.domain, rest, found.results, DimRef(other), reason)
        for other in sorted(bound)
        if other <= place
    )
    return all_proven(answers, reason)


def _converges(
    structure: ExecStructure,
    observer: Observer,
    bindings: Sequence[Binding],
    scopes: TargetScopes,
) -> Answer:
    """Whether the units below a cut act together, and are whole units of their scopes."""
    depth = observer.cut.depth
    places = [structure.position(binding.level) for binding in bindings]
    answers = []
    for binding, place in zip(bindings, places, strict=True):
        if place < depth:
            continue
        if not scopes.scope(binding.scope).is_convergent:
            reason = f"{observer} is spread over {binding.scope}, whose units go their own ways"
            answers.append(_is_alone(structure, binding, place, range(depth), reason))
        for other, above in zip(bindings, places, strict=True):
            if other.scope == binding.scope and above < depth:
                reason = f"{observer} is spread over a part of the units of {binding.scope} only"
                shared = {*range(place + 1)} - {above}
                answers.append(_is_alone(structure, binding, above, shared, reason))
    return all_proven(answers, f"{observer} acts as one")


def _is_alone(
    structure: ExecStructure, binding: Binding, place: int, shared: Iterable[int], reason: str
) -> Answer:
    """Whether no two instances that share coordinates differ at a place."""
    instances = _instances(structure, binding)
    answer = no_pair(instances, shared, (), DimRef(place), "one instance acts alone")
    return replace(answer, reason=reason) if answer.is_disproven else answer
