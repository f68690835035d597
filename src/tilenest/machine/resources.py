"""Memory resources of a target as data: what there is, where, how large, who may do what in it.

In: names, scopes and numbers. Out: frozen classes. A new class of memory is one more record:
nothing in the IR or in the checks knows a resource by name. Who may access is a plain relation of
scopes and operations. It is not derived from an order of scopes or of memories: a matrix engine may
read what the group that contains it may not.
"""

from __future__ import annotations

from tilenest.records import record


@record
class Synchronisation:
    """What makes a write of `writer` visible to `reader`: the name of a protocol of the target."""

    writer: str
    reader: str
    by: str


@record
class ResourceClass:
    """One kind of memory.

    `topology` is the scope each unit of which has one instance. `capacity` counts the bytes of one
    instance, None where only addresses end it. A `coherence` of "always" shows every write at once,
    "synchronised" after one of the `synchronisation` rules, "none" to the writer alone.
    """

    name: str
    topology: str
    capacity: int | None
    alignment: int
    coherence: str
    access: frozenset[tuple[str, str]]
    """(scope, operation) pairs that are possible"""
    synchronisation: tuple[Synchronisation, ...] = ()

    @property
    def operations(self) -> frozenset[str]:
        """What some scope can do in it."""
        return frozenset(operation for _, operation in self.access)

    @property
    def relation(self) -> frozenset[tuple[str, str, str]]:
        """The (scope, resource, operation) triples that are possible, as an equation asks."""
        return frozenset((scope, self.name, operation) for scope, operation in self.access)

    def refusal(self, scope: str, operation: str) -> str | None:
        """Why a scope cannot do this here; None where it can."""
        if (scope, operation) in self.access:
            return None
        able = sorted(other for other, done in self.access if done == operation)
        if not able:
            return f"resource {self.name!r} has no {operation}"
        return f"scope {scope!r} cannot {operation} resource {self.name!r}; {able} can"

    def needs(self, writer: str, reader: str) -> str | None:
        """The protocol after which `reader` sees what `writer` wrote; None where none is needed.

        A pair without a rule in a class that needs one has no legal communication at all.
        """
        if self.coherence == "always":
            return None
        for rule in self.synchronisation:
            if (rule.writer, rule.reader) == (writer, reader):
                return rule.by
        return "nothing"


def accesses(scopes: tuple[str, ...], operations: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Every one of the scopes with every one of the operations."""
    return frozenset((scope, operation) for scope in scopes for operation in operations)
