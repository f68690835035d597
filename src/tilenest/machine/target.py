"""A target: everything the compiler asks about where programs run, in one frozen record.

In: machine facts, scopes and what contains what, memory resources, atoms. Out: answers by name. A
resource that a target does not have is refused, with those it has as the remedy.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilenest.errors import TargetError
from tilenest.execution import TargetScopes
from tilenest.machine.atoms import Catalogue
from tilenest.machine.facts import Machine
from tilenest.machine.resources import ResourceClass
from tilenest.records import record


@record
class Target:
    """What a kernel is compiled for. `aliases` resolve names that leave the choice open."""

    name: str
    machine: Machine
    scopes: TargetScopes
    resources: tuple[ResourceClass, ...]
    aliases: Mapping[str, str]
    atoms: Catalogue
    features: frozenset[str]

    def resource(self, name: str) -> ResourceClass:
        """The resource class a constraint names."""
        wanted = self.aliases.get(name, name)
        for resource in self.resources:
            if resource.name == wanted:
                return resource
        raise TargetError(
            f"{self.name} has no memory resource {name!r}",
            remedy=f"use one of {', '.join(self.allocatable)}",
        )

    def allocation(self, name: str) -> ResourceClass:
        """The resource class that memory with this constraint is made in; empty memory as well."""
        resource = self.resource(name)
        if not resource.is_allocatable:
            raise TargetError(
                f"memory cannot be made in {name!r} on {self.name}",
                remedy=f"use one of {', '.join(self.allocatable)}",
            )
        return resource

    @property
    def allocatable(self) -> tuple[str, ...]:
        """The constraints that can be met."""
        return (*self.aliases, *(r.name for r in self.resources if r.is_allocatable))
