"""What was decided and why: the decisions of a plan, with their reasons.

In: nothing. Out: frozen records, which planning makes, passes gather and reports print. The IR
holds what was decided; these hold why.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilenest.errors import SourceLocation
from tilenest.records import record


@record
class Decision:
    """One choice: what it is about, what was chosen over what, and why."""

    subject: str
    choice: str
    runner_up: str
    reason: str
    location: SourceLocation | None = None

    def __str__(self) -> str:
        return f"{self.subject}: {self.choice}, not {self.runner_up}: {self.reason}"


@record
class Plan:
    """Every decision of one compilation, in the order they were taken."""

    decisions: tuple[Decision, ...] = ()

    def with_decisions(self, further: Iterable[Decision]) -> Plan:
        return Plan((*self.decisions, *further))
