"""Answers to questions about layouts: proven, disproven with a witness, or unknown.

In: what an engine found. Out: a frozen answer. UNKNOWN is never success: whoever needs a fact asks
`is_proven`, and a rule that needs a proof refuses UNKNOWN.
"""

from __future__ import annotations

from enum import Enum

from tilenest.records import record


class Verdict(Enum):
    """What is known of a claim."""

    PROVEN = "proven"
    DISPROVEN = "disproven"
    UNKNOWN = "unknown"


@record
class Witness:
    """Where a claim fails: the points of its domains that show it, and the values of the run-time
    extents there. Two points collide for injectivity, one leaves the codomain for boundedness."""

    points: tuple[tuple[int, ...], ...]
    symbols: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        points = ", ".join(f"({', '.join(map(str, point))})" for point in self.points)
        values = ", ".join(f"{name}={value}" for name, value in self.symbols)
        return f"{points} at {values}" if values else points


@record
class Answer:
    """A verdict, the engine that found it, why, and the witness of a disproof."""

    verdict: Verdict
    engine: str
    reason: str
    witness: Witness | None = None

    @property
    def is_proven(self) -> bool:
        return self.verdict is Verdict.PROVEN

    @property
    def is_disproven(self) -> bool:
        return self.verdict is Verdict.DISPROVEN

    def __str__(self) -> str:
        shown = "" if self.witness is None else f" (witness {self.witness})"
        return f"{self.verdict.value} by {self.engine}: {self.reason}{shown}"


def proven(engine: str, reason: str) -> Answer:
    return Answer(Verdict.PROVEN, engine, reason)


def disproven(engine: str, reason: str, witness: Witness) -> Answer:
    """A disproof always shows its witness."""
    return Answer(Verdict.DISPROVEN, engine, reason, witness)


def unknown(engine: str, reason: str) -> Answer:
    return Answer(Verdict.UNKNOWN, engine, reason)
