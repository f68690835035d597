"""What a rule of the verifier is made of.

In: a module. Out: a `Subject` that lists its operations once, the `Fault` a rule yields, and the
`Diagnostic` it becomes. A foundation is a rule without which walking the module makes no sense:
when it is broken, the rules after it are not asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TypeVar

from tilenest.errors import SourceLocation
from tilenest.ir.core import Operation
from tilenest.ir.module import Module
from tilenest.records import record

OpT = TypeVar("OpT", bound=Operation)


@record
class Fault:
    """What a rule found: the operation (None for a fault of a function or the module), the failed
    fact, and what would make it right."""

    operation: Operation | None
    message: str
    remedy: str


@record
class Diagnostic:
    """A fault with the id of its rule and the place in the user's source."""

    rule: str
    operation: Operation | None
    location: SourceLocation | None
    message: str
    remedy: str

    def __str__(self) -> str:
        subject = "" if self.operation is None else f"{self.operation.NAME}: "
        return f"{self.rule} {subject}{self.message}"


class Subject:
    """A module under verification; its operations are listed once and found by class."""

    __slots__ = ("_by_class", "_operations", "module")

    def __init__(self, module: Module) -> None:
        self.module = module
        self._operations: list[Operation] | None = None
        self._by_class: dict[type[Operation], list[Operation]] = defaultdict(list)

    @property
    def operations(self) -> list[Operation]:
        """Every operation below the module, in order."""
        if self._operations is None:
            self._operations = list(self.module.walk())
            for operation in self._operations:
                self._by_class[type(operation)].append(operation)
        return self._operations

    def of(self, cls: type[OpT]) -> Iterator[OpT]:
        """Operations of a class or its subclasses."""
        assert self.operations is not None
        for actual, operations in self._by_class.items():
            if issubclass(actual, cls):
                for operation in operations:
                    assert isinstance(operation, cls)
                    yield operation


@record
class Rule:
    """One rule: its id (`IR04`), what holds, and the function that finds where it does not."""

    id: str
    title: str
    check: Callable[[Subject], Iterator[Fault]]
    is_foundation: bool = False
