"""What is known of a rule: the record that every check of this room answers with.

In: the name of a rule and an answer. Out: a frozen fact. A rule holds only where its answer is
proven; UNKNOWN is a failure like a disproof, with another remedy.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilenest.layouts import Answer
from tilenest.records import record


@record
class Fact:
    """One rule, and what is known of it."""

    law: str
    answer: Answer

    def __str__(self) -> str:
        return f"{self.law}: {self.answer}"


def first_failure(facts: Iterable[Fact]) -> Fact | None:
    """The first rule that is not proven."""
    return next((fact for fact in facts if not fact.answer.is_proven), None)
