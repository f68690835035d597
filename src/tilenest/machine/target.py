"""A target: everything the compiler asks about where programs run, in one frozen record.

In: machine facts, scopes and what contains what, memory resources, atoms. Out: answers by name. A
resource that a target does not have is refused, with those it has as the remedy. Which class of
memory is taken is decided here and nowhere else: the first that can hold what is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilenest.errors import TargetError
from tilenest.execution import TargetScopes
from tilenest.machine.atoms import Catalogue
from tilenest.machine.facts import Machine
from tilenest.machine.resources import ResourceClass
from tilenest.records import record


@record
class MemoryNeed:
    """What a memory is for."""

    owner: str
    """the scope whose instances have one each"""
    is_shared: bool
    """whether instances of nests inside of the owner use it"""
    operations: frozenset[str]
    bytes: int


@record
class Target:
    """What a kernel is compiled for. `aliases` are constraints that leave a choice: the classes
    that meet one, the best first."""

    name: str
    machine: Machine
    scopes: TargetScopes
    resources: tuple[ResourceClass, ...]
    aliases: Mapping[str, tuple[str, ...]]
    atoms: Catalogue
    features: frozenset[str]
    accessor: str
    """the scope whose units run all code; code of owners inside of one runs there by turns"""
    arguments: str
    """the class of memory that arguments lie in"""
    boundaries: frozenset[str]
    """the protocols that entering and leaving a nest perform"""
    root_scopes: tuple[str, ...]
    """what an outermost nest that names no scope may be bound to, the best first"""
    nested_scopes: tuple[str, ...]
    """what a nest inside of another may be bound to"""

    def __hash__(self) -> int:
        # `aliases` has no hash, and hardly any targets differ in nothing but the rest.
        return hash((self.name, self.machine))

    def resource(self, name: str) -> ResourceClass:
        """The resource class of this name."""
        for resource in self.resources:
            if resource.name == name:
                return resource
        raise TargetError(
            f"{self.name} has no memory resource {name!r}",
            remedy=f"use one of {', '.join(self.allocatable)}",
        )

    def choices(self, constraint: str) -> tuple[ResourceClass, ...]:
        """The resource classes that meet a constraint, the best first; also for empty memory."""
        found = tuple(map(self.resource, self.aliases.get(constraint, (constraint,))))
        for resource in found:
            reason = resource.refusal(self.accessor, "allocate")
            if reason is not None:
                raise TargetError(
                    f"memory cannot be made in {constraint!r} on {self.name}: {reason}",
                    remedy=f"use one of {', '.join(self.allocatable)}",
                )
        return found

    def allocation(self, constraint: str) -> ResourceClass:
        """The best resource class that meets a constraint."""
        return self.choices(constraint)[0]

    @property
    def outermost(self) -> str:
        """The scope of code outside of every nest."""
        return self.scopes.outside_in[0]

    @property
    def allocatable(self) -> tuple[str, ...]:
        """The constraints that can be met."""
        made = (r.name for r in self.resources if (self.accessor, "allocate") in r.access)
        return tuple(dict.fromkeys((*self.aliases, *made)))

    def tells_apart(self, topology: str, scopes: Sequence[str]) -> tuple[int, ...]:
        """Which nests, bound to these scopes from the outside in, tell the units of a scope apart:
        those around a unit, and the first that is bound to it. Those inside take turns in one. Code
        outside of every nest is bound to the outermost scope, so no nest tells its units apart."""
        if topology == self.outermost:
            return ()
        around = [
            place for place, scope in enumerate(scopes) if self.scopes.is_within(topology, scope)
        ]
        own = [place for place in around if scopes[place] == topology]
        return tuple(place for place in around if place not in own[1:])

    # Choosing --------------------------------------------------------------------------------

    def choose(self, constraint: str, need: MemoryNeed) -> ResourceClass:
        """The first resource class that meets a constraint and can hold the memory."""
        problems = []
        for resource in self.choices(constraint):
            problem = self.problem(resource, need)
            if problem is None:
                return resource
            problems.append(problem)
        raise TargetError(
            f"memory cannot be in {constraint!r} on {self.name}: {'; '.join(problems)}",
            remedy="leave the class open, or declare the memory in the nest that uses it",
        )

    def problem(self, resource: ResourceClass, need: MemoryNeed) -> str | None:
        """Why a class cannot hold a memory; None where it can."""
        for operation in sorted({"allocate", *need.operations}):
            reason = resource.refusal(self.accessor, operation)
            if reason is not None:
                return reason
        reason = self.ownership_problem(resource, need.owner)
        if reason is None and need.is_shared:
            reason = self.visibility_problem(resource, need.owner)
        if reason is None and resource.capacity is not None and need.bytes > resource.capacity:
            reason = f"it needs {need.bytes} bytes, and {resource.name!r} has {resource.capacity}"
        return reason

    def ownership_problem(self, resource: ResourceClass, owner: str) -> str | None:
        """Why the owners of a scope have no instances of a class for themselves. Those inside of
        one accessor take turns."""
        topology = resource.topology
        if topology == self.accessor or self.scopes.is_within(topology, owner):
            return None
        name = resource.name
        return f"each {owner} owns one, and {name!r} has one instance for all of a {topology}"

    def visibility_problem(self, resource: ResourceClass, owner: str) -> str | None:
        """Why instances inside of an owner do not see what it keeps in a class."""
        if resource.topology != owner:
            return f"memory in {resource.name!r} is visible to one {resource.topology} alone"
        return self.order_problem(resource)

    def order_problem(self, resource: ResourceClass) -> str | None:
        """Why entering and leaving nests does not show what one accessor stored to another."""
        protocol = resource.needs(self.accessor, self.accessor)
        if protocol is None or protocol in self.boundaries:
            return None
        return f"one {self.accessor} sees what another stores in {resource.name!r} after {protocol}"
