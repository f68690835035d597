"""Target scopes: what of a machine contains what, and how many units there are.

In: scopes as data. Out: a frozen partial order. A scope may stand in several others, and two scopes
need not be comparable. `arity` counts the units of a scope in one unit of what it stands in, None
where nothing limits them; the units of a convergent scope act together there, those of another go
their own ways.
"""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from tilenest.errors import VerifyError
from tilenest.layouts import check_kind, tuple_of, whole_number
from tilenest.records import record

_set = object.__setattr__


@record
class TargetScope:
    """One scope; `within` names the scopes it stands in directly, none for the outermost."""

    name: str
    within: tuple[str, ...] = ()
    arity: int | None = None
    is_convergent: bool = False

    def __post_init__(self) -> None:
        check_kind(self.name, str, "the name of a scope")
        _set(self, "within", tuple_of(self.within, str, "what a scope stands in"))
        if self.arity is not None:
            _set(self, "arity", whole_number(self.arity, f"the units of scope {self.name!r}"))


@record
class TargetScopes:
    """The scopes of a target, which contain one another in no circle."""

    scopes: tuple[TargetScope, ...]

    def __post_init__(self) -> None:
        _set(self, "scopes", tuple_of(self.scopes, TargetScope, "the scopes of a target"))
        names = self.names
        if len(set(names)) < len(names):
            raise VerifyError(
                f"target scopes share a name: {', '.join(names)}",
                remedy="give every scope a name of its own",
            )
        for scope in self.scopes:
            for outer in scope.within:
                self.scope(outer)
        try:
            TopologicalSorter({scope.name: scope.within for scope in self.scopes}).prepare()
        except CycleError as error:
            raise VerifyError(
                f"target scopes contain one another in a circle: {', '.join(error.args[1])}",
                remedy="let containment end at an outermost scope",
            ) from error

    @property
    def names(self) -> tuple[str, ...]:
        """What the scopes are called, in the order in which they are given."""
        return tuple(scope.name for scope in self.scopes)

    @property
    def outside_in(self) -> tuple[str, ...]:
        """The names of the scopes, each after those that contain it."""

        def depth(name: str) -> int:
            return sum(self.is_within(name, outer) for outer in self.names)

        return tuple(sorted(self.names, key=depth))

    def scope(self, name: str) -> TargetScope:
        """The scope of a name."""
        for scope in self.scopes:
            if scope.name == name:
                return scope
        raise VerifyError(
            f"the target has no scope {name!r}",
            remedy=f"use one of {', '.join(self.names)}",
        )

    def is_within(self, inner: str, outer: str) -> bool:
        """Whether a unit of one scope lies in a unit of the other; a scope is within itself."""
        seen: set[str] = set()
        waiting = [inner]
        while waiting:
            name = waiting.pop()
            if name == outer:
                return True
            if name not in seen:
                seen.add(name)
                waiting += self.scope(name).within
        return False
