"""The levels of a program's execution, their prefixes, and who looks at them.

In: the axes of the nests around an operation, outermost first. Out: a frozen chain of levels with
stable identities. A cut is a depth in the chain: the levels above it are a prefix, whose points are
the instances of what lives there. The parallel levels of a prefix are its spatial part and say who
owns something; the others are its time. An observer is whoever an instance of a prefix means
something to, and must find it again after the levels were rearranged.

An extent is a number or a name. A name may be defined by a formula over other names; whatever is
claimed of a structure is claimed where its definitions hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tilenest.errors import VerifyError
from tilenest.layouts import (
    Axis,
    Constraint,
    DimRef,
    IndexExpr,
    IndexSet,
    Interval,
    Space,
    Sym,
    bounds,
    check_kind,
    tuple_of,
    whole_number,
)
from tilenest.records import record

LevelKind = Literal["parallel", "serial", "pipeline", "reduce"]
ObserverKind = Literal["anchor", "frontier", "owner", "convergence"]
KINDS = ("parallel", "serial", "pipeline", "reduce")
OBSERVERS = ("anchor", "frontier", "owner", "convergence")
UNORDERED = "unordered_tree"
_MOST = (1 << 63) - 1
"""the largest index"""
MOST_INSTANCES = 1 << 62
"""Of a level: more than any run gets through, and so few that sums and blocks of them fit an index.
Of a product that is more, as many are run as fit."""
_set = object.__setattr__


@record
class ExecLevel:
    """One axis of a nest; axes of one nest name the same `nest`. Only a reduce has a policy."""

    identity: str
    name: str
    kind: LevelKind
    extent: int | str
    scope: str = "auto"
    nest: str = ""
    policy: str = ""

    def __post_init__(self) -> None:
        check_kind(self.identity, str, "the identity of a level")
        if not isinstance(self.extent, str):
            extent = whole_number(self.extent, f"the extent of level {self.identity!r}")
            _set(self, "extent", extent)
        check_kind(self.kind, str, "the kind of a level")
        if self.kind not in KINDS:
            raise VerifyError(
                f"level {self.identity!r} is of the unknown kind {self.kind!r}",
                remedy=f"use one of {', '.join(KINDS)}",
            )
        if (self.kind == "reduce") != bool(self.policy):
            raise VerifyError(
                f"level {self.identity!r} of kind {self.kind} has the policy {self.policy!r}",
                remedy="give a policy to reduce levels, and to no other",
            )

    @property
    def is_spatial(self) -> bool:
        """Whether it tells instances apart that own things."""
        return self.kind == "parallel"

    @property
    def is_ordered(self) -> bool:
        """Whether its instances come one after the other; a tree that keeps the order of its
        leaves counts."""
        return self.kind != "parallel" and self.policy != UNORDERED

    @property
    def family(self) -> tuple[str, str, str]:
        """What a remap may not change of a level; where its instances go to is for a binding."""
        return self.kind, self.policy, self.scope

    def __str__(self) -> str:
        policy = f".{self.policy}" if self.policy else ""
        return f"{self.identity}={self.extent} {self.kind}{policy}"


@record
class Definition:
    """A name that stands for a formula: `Sym(i)` in it is `arguments[i]`."""

    name: str
    expression: IndexExpr
    arguments: tuple[str, ...]

    def __post_init__(self) -> None:
        check_kind(self.name, str, "the name of a definition")
        check_kind(self.expression, IndexExpr, "what a definition says")
        _set(self, "arguments", tuple_of(self.arguments, str, "the arguments of a definition"))
        if self.expression.dim_mask or self.expression.sym_mask >> len(self.arguments):
            raise VerifyError(
                f"{self.name} = {self.expression} uses more than its {len(self.arguments)} "
                "arguments",
                remedy="number the symbols of a definition by its arguments",
            )


@record
class PrefixCut:
    """A depth in a chain of levels: 0 is the root, where nothing has been entered."""

    depth: int

    def __post_init__(self) -> None:
        _set(self, "depth", whole_number(self.depth, "the depth of a cut"))


@record
class Observer:
    """Whoever an instance of a prefix means something to.

    An anchor is an operation that runs once an instance; one that is `is_repeatable` may also run
    more often. A frontier is how deep the operation of the same name is spread, an owner has
    storage of its own in each spatial instance, and convergence is a group that acts together.
    """

    name: str
    kind: ObserverKind
    cut: PrefixCut
    is_repeatable: bool = False

    def __post_init__(self) -> None:
        check_kind(self.name, str, "the name of an observer")
        check_kind(self.cut, PrefixCut, "where an observer stands")
        check_kind(self.kind, str, "the kind of an observer")
        if self.kind not in OBSERVERS:
            raise VerifyError(
                f"observer {self.name!r} is of the unknown kind {self.kind!r}",
                remedy=f"use one of {', '.join(OBSERVERS)}",
            )

    def __str__(self) -> str:
        return f"{self.kind} {self.name!r} at depth {self.cut.depth}"


@record
class ExecStructure:
    """A chain of levels, outermost first."""

    levels: tuple[ExecLevel, ...]
    definitions: tuple[Definition, ...] = ()

    def __post_init__(self) -> None:
        _set(self, "levels", tuple_of(self.levels, ExecLevel, "the levels"))
        _set(self, "definitions", tuple_of(self.definitions, Definition, "the definitions"))
        _check_definitions(self.definitions)
        _check_sizes(self.levels, self.definitions)
        identities = [level.identity for level in self.levels]
        if len(set(identities)) < len(identities):
            raise VerifyError(
                f"levels share an identity: {', '.join(identities)}",
                remedy="give every level an identity of its own",
            )
        for outer, inner in zip(self.levels, self.levels[1:], strict=False):
            if outer.nest == inner.nest != "" and outer.family != inner.family:
                raise VerifyError(
                    f"nest {outer.nest!r} holds levels of different kinds: {outer}, {inner}",
                    remedy="give each kind a nest of its own",
                )

    @property
    def depth(self) -> int:
        return len(self.levels)

    @property
    def leaf(self) -> PrefixCut:
        """The cut below every level."""
        return PrefixCut(self.depth)

    @property
    def space(self) -> Space:
        """One axis a level, named by its identity."""
        return self.prefix_space(self.leaf)

    @property
    def symbols(self) -> tuple[str, ...]:
        """Every name its extents use, and their definitions, sorted."""
        used = {name for entry in self.definitions for name in (entry.name, *entry.arguments)}
        return tuple(sorted(used.union(self.space.symbols)))

    def position(self, identity: str) -> int:
        """Where the level with this identity stands."""
        check_kind(identity, str, "the identity of a level")
        for place, level in enumerate(self.levels):
            if level.identity == identity:
                return place
        raise VerifyError(
            f"there is no level {identity!r} among {', '.join(map(str, self.levels))}",
            remedy="name a level of this structure",
        )

    def is_boundary(self, depth: int) -> bool:
        """Whether a nest begins or ends there, so that operations have a place."""
        self.check_cut(PrefixCut(depth))
        if depth in (0, self.depth):
            return True
        return self.levels[depth - 1].nest != self.levels[depth].nest or not self.levels[depth].nest

    def prefix_space(self, cut: PrefixCut) -> Space:
        """The instances of what lives at a cut."""
        self.check_cut(cut)
        return Space(
            tuple(Axis(level.identity, level.extent) for level in self.levels[: cut.depth])
        )

    def active_set(self, points: IndexSet, cut: PrefixCut) -> IndexSet:
        """The instances of what lives at a cut, where those of the whole chain are `points`.

        A predicate counts from the depth on where its last coordinate is known: what stands above
        runs also where nothing runs below it.
        """
        check_kind(points, IndexSet, "the instances")
        self.check_cut(cut)
        kept = tuple(c for c in points.constraints if not c.expression.dim_mask >> cut.depth)
        return IndexSet(self.prefix_space(cut), kept, points.symbols)

    def spatial(self, cut: PrefixCut) -> tuple[int, ...]:
        """The positions of the levels above a cut that tell owners apart."""
        self.check_cut(cut)
        return tuple(i for i, level in enumerate(self.levels[: cut.depth]) if level.is_spatial)

    def check_cut(self, cut: PrefixCut) -> None:
        """Refuse a cut that this chain does not have."""
        check_kind(cut, PrefixCut, "a cut")
        if not 0 <= cut.depth <= self.depth:
            raise VerifyError(
                f"there is no cut at depth {cut.depth} of {self.depth} levels",
                remedy=f"use a depth from 0 to {self.depth}",
            )

    def laws_over(self, names: tuple[str, ...]) -> tuple[Constraint, ...]:
        """What the definitions say, where `Sym(i)` is the i-th of the names."""
        return tuple(
            Constraint(
                Sym(names.index(entry.name)) - renamed(entry.expression, entry.arguments, names),
                True,
            )
            for entry in self.definitions
        )

    def __str__(self) -> str:
        text = ""
        for depth, level in enumerate(self.levels):
            between = " | " if self.is_boundary(depth) else ", "
            text += f"{between if depth else ''}{level}"
        return f"[{text}]"

    def values(self, given: Mapping[str, int]) -> dict[str, int]:
        """The values of every name, where the undefined ones have the given values."""
        check_kind(given, Mapping, "the values of run-time numbers")
        values = dict(given)
        for entry in self.definitions:
            missing = [name for name in entry.arguments if name not in values]
            if missing:
                raise VerifyError(
                    f"the run-time numbers {', '.join(missing)} have no values",
                    remedy="give a value to every name without a definition",
                )
            arguments = [values[name] for name in entry.arguments]
            values[entry.name] = entry.expression.evaluate((), arguments)
        return values


def _check_sizes(levels: tuple[ExecLevel, ...], definitions: tuple[Definition, ...]) -> None:
    """An extent is at least 0: of a formula that could be less, this would be a claim about what it
    is made of."""
    extents = {level.extent for level in levels}
    known: dict[str, Interval | None] = {}
    for entry in definitions:
        numbers: dict[DimRef | Sym, Interval] = {}
        for place, name in enumerate(entry.arguments):
            number = known.get(name, (0, _MOST))
            if number is not None:
                numbers[Sym(place)] = number
        known[entry.name] = found = bounds(entry.expression, numbers)
        if entry.name in extents and (found is None or found[0] < 0):
            raise VerifyError(
                f"the extent {entry.name} = {entry.expression} of {', '.join(entry.arguments)} may "
                "be negative",
                remedy="define extents by formulas that give at least 0",
            )


def _check_definitions(definitions: tuple[Definition, ...]) -> None:
    """Each name is defined once, by names that stand before it: definitions that contradict one
    another hold nowhere, and of nowhere everything is true."""
    waiting = [entry.name for entry in definitions]
    if len(set(waiting)) < len(waiting):
        raise VerifyError(
            f"a name is defined twice: {', '.join(waiting)}",
            remedy="give every definition a name of its own",
        )
    for entry in definitions:
        early = sorted({*entry.arguments} & {*waiting})
        if early:
            raise VerifyError(
                f"{entry.name} is defined by {', '.join(early)}, which is defined there or later",
                remedy="put the arguments of a definition before it",
            )
        waiting.remove(entry.name)


def renamed(
    expression: IndexExpr, names: tuple[str, ...], into: tuple[str, ...], rank: int = 0
) -> IndexExpr:
    """A formula over `rank` coordinates whose symbols stand for `names`, for symbols that stand for
    `into`."""
    if names == into:
        return expression
    symbols = [Sym(into.index(name)) for name in names]
    return expression.substitute([DimRef(place) for place in range(rank)], symbols)
