"""Whether the body of rearranged nests computes what their remap says.

In: a record, and the levels that it left: their counters in the function, and the bodies of their
nests. Out: what is wrong, or where each old coordinate stands in the body. Two things are held
against the record, as formulas over the new counters and by proofs of the layouts, not by their
text. A condition right inside the nest of the last level that a predicate reads has to hold exactly
where the predicate does. And whatever depends on a new counter has to depend on it through an old
coordinate: a value that is proven to be what the map says. So the body is a program of the old
levels, run in the active instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from tilenest.analysis.counter_formulas import CounterFormulas
from tilenest.analysis.effects import is_computation
from tilenest.analysis.execution_chains import levels_of
from tilenest.analysis.execution_remaps import is_guard, only_work, remap_of_record
from tilenest.analysis.execution_structure import initial_of
from tilenest.analysis.structure import constant_of
from tilenest.dialects import AppliedRemap, If, Nest
from tilenest.execution import ExecLevel, ExecRemap
from tilenest.ir import Block, Induction, Operation, Value
from tilenest.layouts import Const, Constraint, DimRef, IndexExpr, IndexSet, implies
from tilenest.records import record

_MOST_JUDGED = 1024
_MOST_VALUES = 10_000
"""Values that depend on the counters of one record and are no old coordinates."""
_TRIED = 7
"""A run-time number, where formulas are compared at some instances before they are in general."""


@record
class RemapProblem:
    """Why a function cannot remember what it does, and what to do."""

    message: str
    remedy: str


@record(eq=False)
class NestBody:
    """What stands in one nest: a block, and the states that the block begins with. Of a nest that
    is no more, the block is known where all that stood in it still stands in one."""

    block: Block | None = None
    states: Sequence[Value] = ()


@record(eq=False)
class Rung:
    """One level of one nest, which may be alike to others."""

    level: ExecLevel
    nest: NestBody
    """the same for the levels of one nest"""
    counters: tuple[Value, ...] = ()
    """the values that say which instance of the level runs"""
    domain: Induction[Value] | None = None
    """of a level that does not count from 0, by 1"""
    trips: Value | None = None
    """how many instances there are, where that is known at run time only"""
    guards: frozenset[Operation] = frozenset()
    """the conditions of the remaps that made the levels around from this one"""


@record
class OldBody:
    """Where the old levels of a record are in the function: the counters of each, how many
    instances those with names have, and what stands below all of them."""

    counters: tuple[tuple[Value, ...], ...]
    domains: tuple[Induction[Value] | None, ...]
    trips: Mapping[str, Value]
    nest: NestBody
    guards: frozenset[Operation]


def old_body(applied: AppliedRemap, rungs: Sequence[Rung]) -> OldBody | RemapProblem:
    """The old levels of a proven record in the body of the new ones, of which `rungs` are those of
    more than one instance."""
    remap, _, _ = remap_of_record(applied)
    counted = [place for place, level in enumerate(remap.new.levels) if level.extent != 1]
    try:
        reader = _Reader(remap, dict(zip(counted, rungs, strict=True)))
        nests = reader.read_guards()
        counters = reader.read_coordinates()
    except _ContradictionError as found:
        return RemapProblem(
            f"the remap ({title_of(applied)}) is not what the nests do: {found}",
            "let a function forget its remaps when its nests change in another way",
        )
    nest = rungs[-1].nest if rungs else NestBody()
    guards = frozenset(reader.guards)
    values = reader.formulas.values
    return OldBody(counters, reader.domains(), values, nests.get(nest, nest), guards)


def title_of(applied: AppliedRemap) -> str:
    """What a remap did, by its steps."""
    return "; ".join(applied.steps) or "identity"


class _ContradictionError(Exception):
    """The body says something else than the record, or what it says is not known."""


class _Reader:
    """Reads the body of the nests that one remap left."""

    def __init__(self, remap: ExecRemap, rungs: Mapping[int, Rung]) -> None:
        self.remap = remap
        self.rungs = rungs
        self.symbols = remap.symbols
        self.formulas = CounterFormulas(remap.new, self.symbols)
        self.guards = {guard for rung in rungs.values() for guard in rung.guards}
        self._read_names()
        self.formulas.settle()
        self.map = tuple(map(self.formulas.settled, remap.formula.results))
        self.laws = tuple(map(self._settled, remap.laws))
        self.active = tuple(
            self._settled(c) for c in remap.formula.domain.constraints if c not in remap.laws
        )
        self.points, self.values = self._tried()

    def _settled(self, constraint: Constraint) -> Constraint:
        return Constraint(self.formulas.settled(constraint.expression), constraint.is_equality)

    def _read_names(self) -> None:
        """Find the values of extents: those of new levels, and what these are made of."""
        formulas, levels = self.formulas, self.remap.new.levels
        for place, rung in self.rungs.items():
            extent = levels[place].extent
            if rung.domain is None:
                formulas.count(place, rung.counters)
            if isinstance(extent, str) and rung.trips is not None:
                self._require(formulas.end(extent, rung.trips), f"{extent} has several values")
        for entry in reversed(self.remap.new.definitions):
            is_met = formulas.define(entry.name, entry.expression, entry.arguments)
            self._require(is_met, f"{entry.name} is not computed as {entry.expression}")
        for place, rung in self.rungs.items():
            extent = levels[place].extent
            if isinstance(extent, str) and rung.trips is None:
                is_met = self._is_counted(extent, rung)
                self._require(is_met, f"a nest is not known to have {extent} instances")

    def _is_counted(self, name: str, rung: Rung) -> bool:
        """Whether a level that a remap did not make has as many instances as a name says. Where
        nothing else asks for the name, it is however many these are."""
        is_known = name in self.formulas.values
        if not is_known and name in self._computed_names():
            return False
        return not is_known if rung.domain is None else self.formulas.walk(name, rung.domain)

    def _computed_names(self) -> set[str]:
        """The names that formulas of the record speak of."""
        remap, active = self.remap, self.remap.active
        used = {n for e in remap.new.definitions for n in (e.name, *e.arguments)}
        for names, formulas in (
            (self.symbols, remap.formula.results),
            (active.symbols, [c.expression for c in active.constraints]),
        ):
            used.update(names[place] for part in formulas for place in part.used_syms())
        return used

    def _require(self, is_met: bool, message: str) -> None:
        if not is_met:
            raise _ContradictionError(message)

    def _tried(self) -> tuple[list[tuple[int, ...]], list[int]]:
        """Some active instances at which formulas that differ mostly differ, and the values of
        names there."""
        numbers = {name: constant_of(v) for name, v in self.formulas.values.items()}
        given = {name: int(numbers.get(name) or _TRIED) for name in self.symbols}
        values = self.remap.new.values(given)
        shape = self.remap.new.space.shape(values)
        points = [(0,) * len(shape), tuple(extent - 1 for extent in shape)]
        points += [
            tuple(int(axis == place) for axis in range(len(shape))) for place in range(len(shape))
        ]
        active = IndexSet(self.remap.new.space, self.active, self.symbols)
        found = [point for point in points if active.holds(point, values)]
        return found, [values[name] for name in self.symbols]

    def holds(self, claims: Iterable[Constraint], given: Iterable[Constraint]) -> bool:
        """Whether claims are proven for the new instances at which other constraints hold."""
        space = self.remap.new.space
        return _is_implied(
            IndexSet(space, (*self.laws, *given), self.symbols),
            IndexSet(space, tuple(claims), self.symbols),
        )

    # Conditions ------------------------------------------------------------------------------

    def read_guards(self) -> dict[NestBody, NestBody]:
        """What stands behind the condition in each nest that has one."""
        last = {rung.nest: place for place, rung in self.rungs.items()}
        found = {}
        start = 0
        for nest, place in last.items():
            wanted = [c for c in self.active if start < _depth_of(c) <= place + 1]
            around = [c for c in self.active if _depth_of(c) <= start]
            start = place + 1
            inside = self._guarded(nest, around, wanted) if wanted else None
            if inside is not None:
                found[nest] = inside
        return found

    def _guarded(
        self, nest: NestBody, around: list[Constraint], wanted: list[Constraint]
    ) -> NestBody | None:
        """What is behind the condition for predicates; None where there is no condition, and all
        instances meet them."""
        work, states = _work_in(nest)
        if isinstance(work, If) and is_guard(work, states):
            found = self.formulas.condition(work.condition)
            if found is not None and self._are_equal(found, wanted, around):
                self.guards.add(work)
                return NestBody(work.body, states)
        if not self.holds(wanted, around):
            rule = ", ".join(map(str, wanted))
            raise _ContradictionError(f"no condition holds exactly where {rule}")
        return None

    def _are_equal(
        self, found: Sequence[Constraint], wanted: list[Constraint], around: list[Constraint]
    ) -> bool:
        if {*found} == {*wanted}:
            return True
        return self.holds(found, [*around, *wanted]) and self.holds(wanted, [*around, *found])

    # Coordinates -----------------------------------------------------------------------------

    def read_coordinates(self) -> tuple[tuple[Value, ...], ...]:
        """The values that are each old coordinate. Whatever else is made of the new counters only
        leads to these, or to a condition of the remap."""
        found: tuple[dict[Value, None], ...] = tuple({} for _ in self.map)
        waiting: list[Value] = []
        for place, rung in self.rungs.items():
            if DimRef(place) in self.map:
                found[self.map.index(DimRef(place))].update(dict.fromkeys(rung.counters))
            else:
                waiting += rung.counters
        # Whether a value has to lead to old coordinates. One that is some by the predicates may
        # be a part of others as well, but need not.
        is_bound = dict.fromkeys(waiting, True)
        while waiting:
            value = waiting.pop()
            formula, leads = self.formulas.of(value), is_bound[value]
            if isinstance(formula, Const):
                continue
            place_of = None if formula is None else self._coordinate(formula)
            if place_of is not None:
                found[place_of][value] = None
                leads = False
                if formula in self.map:
                    continue
            users = self._readers(value) if leads else filter(is_computation, value.users)
            for result in dict.fromkeys(result for user in users for result in user.results):
                if not is_bound.get(result, False) and (leads or result not in is_bound):
                    is_bound[result] = leads
                    waiting.append(result)
            if len(is_bound) > _MOST_VALUES:
                raise _ContradictionError("too many values depend on the levels it left")
        return tuple(map(tuple, found))

    def domains(self) -> tuple[Induction[Value] | None, ...]:
        """How the old levels count that were left alone; whatever a remap makes counts from 0."""
        kept: dict[IndexExpr, Induction[Value] | None] = {
            DimRef(place): rung.domain for place, rung in self.rungs.items()
        }
        return tuple(kept.get(wanted) for wanted in self.map)

    def _readers(self, value: Value) -> Iterable[Operation]:
        """Who computes something else of a value that is no old coordinate; nobody else may."""
        for user in value.users:
            if is_computation(user):
                yield user
            elif user not in self.guards:
                formula = self.formulas.of(value)
                what = formula or "a value that depends on the levels it left"
                raise _ContradictionError(
                    f"{user.NAME} reads {what}, which is none of the levels before"
                )

    def _coordinate(self, formula: IndexExpr) -> int | None:
        """The old level whose coordinate a formula is proven to be."""
        if formula in self.map:
            return self.map.index(formula)
        likely = (
            place
            for place, wanted in enumerate(self.map)
            if all(
                formula.evaluate(point, self.values) == wanted.evaluate(point, self.values)
                for point in self.points
            )
        )
        for place in likely:
            equal = Constraint(formula - self.map[place], is_equality=True)
            if self.holds([equal], self.active):
                return place
        return None


def _work_in(nest: NestBody) -> tuple[Operation | None, Sequence[Value]]:
    """The one operation in a nest that is no computation, and the states in front of it; a nest
    around it that has one instance is none, since such nests come and go."""
    block, states = nest.block, list(nest.states)
    while block is not None:
        work = only_work(block)
        if not isinstance(work, Nest) or not _is_once(work) or initial_of(work) != states:
            return work, states
        block = work.body
        states = list(block.arguments[work.rank :])
    return None, ()


def _is_once(nest: Nest) -> bool:
    return len(nest.regions) == 1 and all(level.extent == 1 for level in levels_of(nest))


def _depth_of(predicate: Constraint) -> int:
    """How many levels have to be entered to know a predicate; one without levels counts as one of
    the first."""
    return max(predicate.expression.dim_mask.bit_length(), 1)


@lru_cache(maxsize=_MOST_JUDGED)
def _is_implied(inner: IndexSet, outer: IndexSet) -> bool:
    return implies(inner, outer).is_proven
