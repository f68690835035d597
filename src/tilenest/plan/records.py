"""What a plan is made of: decisions with their reasons.

In: nothing. Out: frozen records. The IR holds what was decided; the plan holds why, for reports.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilenest.errors import SourceLocation


@dataclass(frozen=True, slots=True)
class Decision:
    """One choice: what it is about, what was chosen over what, and why."""

    subject: str
    choice: str
    runner_up: str
    reason: str
    location: SourceLocation | None = None

    def __str__(self) -> str:
        return f"{self.subject}: {self.choice}, not {self.runner_up}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Every decision of one compilation, in the order they were taken."""

    decisions: tuple[Decision, ...] = ()

    def with_decisions(self, further: Iterable[Decision]) -> Plan:
        return Plan((*self.decisions, *further))
