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
from tilenest.ir.analyses import AnalysisManager
from tilenest.ir.core import Block, BlockArgument, Function, Operation, Value
from tilenest.ir.module import Module
from tilenest.records import record

OpT = TypeVar("OpT", bound=Operation)


@record
class Fault:
    """What a rule found: the operation (None for a fault of a function or the module), the failed
    fact, what would make it right, and the function where the fault is not one of an operation."""

    operation: Operation | None
    message: str
    remedy: str
    function: Function | None = None


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
    """A module under verification; what is in it is listed once, operations are found by class.
    `context` is what rules of rooms above judge it by, `analyses` what they ask of it."""

    __slots__ = (
        "_blocks",
        "_by_class",
        "_operations",
        "_values",
        "analyses",
        "context",
        "module",
    )

    def __init__(self, module: Module, context: object = None) -> None:
        self.module = module
        self.context = context
        self.analyses = AnalysisManager()
        self._operations: list[Operation] | None = None
        self._blocks: list[tuple[Operation | None, Function, Block]] | None = None
        self._values: list[tuple[Operation | None, Value]] | None = None
        self._by_class: dict[type[Operation], list[Operation]] = defaultdict(list)

    @property
    def operations(self) -> list[Operation]:
        """Every operation below the module, in order."""
        if self._operations is None:
            self._operations = list(self.module.walk())
            for operation in self._operations:
                self._by_class[type(operation)].append(operation)
        return self._operations

    @property
    def blocks(self) -> list[tuple[Operation | None, Function, Block]]:
        """Every block, with the operation that holds it (None in a function) and the function."""
        if self._blocks is None:
            self._blocks = []
            for function in self.module.functions:
                self._blocks += [(None, function, block) for block in function.region.blocks]
                for op in function.walk():
                    for region in op.regions:
                        self._blocks += [(op, function, block) for block in region.blocks]
        return self._blocks

    @property
    def values(self) -> list[tuple[Operation | None, Value]]:
        """Every value, with the operation to blame."""
        if self._values is None:
            self._values = [
                (op, argument) for op, _, block in self.blocks for argument in block.arguments
            ]
            self._values += [(op, result) for op in self.operations for result in op.results]
        return self._values

    def of(self, cls: type[OpT]) -> Iterator[OpT]:
        """Operations of a class or its subclasses."""
        assert self.operations is not None
        for actual, operations in self._by_class.items():
            if issubclass(actual, cls):
                for operation in operations:
                    assert isinstance(operation, cls)
                    yield operation


def parameter_of(value: Value) -> Function | None:
    """The function that a value is a parameter of."""
    block = value.defining_block if isinstance(value, BlockArgument) else None
    region = None if block is None else block.parent
    owner = None if region is None else region.parent
    return owner if isinstance(owner, Function) else None


@record
class Rule:
    """One rule: its id (`IR04`), what holds, and the function that finds where it does not."""

    id: str
    title: str
    check: Callable[[Subject], Iterator[Fault]]
    is_foundation: bool = False
