"""Walking over operations and all that is nested in them, in program order.

In: the first operations. Out: an iterator that costs the same for each operation however deep it
lies, and tolerates that the operation just yielded is erased. It stands below the spine, which
walks by it, so it takes whatever has `regions` that list their `operations`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

OpT = TypeVar("OpT")


def walk(operations: Iterator[OpT]) -> Iterator[OpT]:
    """Each operation, followed by those in its regions."""
    waiting: list[Iterator[Any]] = [operations]
    while waiting:
        op = next(waiting[-1], None)
        if op is None:
            waiting.pop()
            continue
        yield op
        if op.regions:
            waiting += [region.operations() for region in reversed(op.regions)]
