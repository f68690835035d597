"""What a pass is, and running several.

In: a module and passes in order. Out: the changed module and a record for each pass. The caller
gets a hook after every pass; the driver verifies and keeps texts there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from tilenest.ir.module import Module
from tilenest.ir.rewriter import Rewriter
from tilenest.records import record


class Pass(Protocol):
    """One idea in one file: a frozen dataclass of options."""

    @property
    def name(self) -> str: ...

    def run(self, module: Module, rewriter: Rewriter) -> None:
        """Change the module, through the rewriter only."""


@record
class PassRecord:
    """What one pass did."""

    name: str
    changes: int
    seconds: float


AfterPass = Callable[[Module, PassRecord], None]


def run_passes(
    module: Module,
    passes: Sequence[Pass],
    rewriter: Rewriter,
    after_each: AfterPass | None = None,
) -> list[PassRecord]:
    """Run the passes in order; `after_each` sees the module after every one."""
    records: list[PassRecord] = []
    for step in passes:
        changes, start = rewriter.changes, time.perf_counter()
        step.run(module, rewriter)
        seconds = time.perf_counter() - start
        record = PassRecord(step.name, rewriter.changes - changes, seconds)
        records.append(record)
        if after_each is not None:
            after_each(module, record)
    return records
