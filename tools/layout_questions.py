"""Asks the proof engines of layouts every question of the tests' corpus, and prints how they did.

Run `python -m tools.layout_questions` at the root of the repository. In: nothing. Out: for each
engine, and for all of them in the order in which questions try them, how many answers were proven,
disproven, unknown, or none, how many were wrong against enumeration or against the verdict known,
and the median and the longest time. Exits with 1 when an answer is wrong.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable
from statistics import median
from typing import Any

from tests.unit.layouts.corpus import Case, cases
from tests.unit.layouts.judge import ENGINES, check
from tilenest.layouts import Answer

COLUMNS = ("proven", "disproven", "unknown", "none", "wrong")


class Tally:
    """What one engine, or several in turn, made of the cases."""

    def __init__(self, name: str, engines: Iterable[Any]) -> None:
        self.name = name
        self.engines = tuple(engines)
        self.counts: Counter[str] = Counter()
        self.seconds: list[float] = []

    def ask(self, case: Case) -> None:
        start = time.perf_counter()
        answer = first_sure_answer(self.engines, case)
        self.seconds.append(time.perf_counter() - start)
        try:
            verdict = check(answer, case.question, case.maps, case.choices)
        except AssertionError as error:
            print(f"wrong: {self.name}: {case.name}: {error}")
            verdict = "wrong"
        is_sure = verdict in ("proven", "disproven")
        if case.verdict is not None and is_sure and verdict != case.verdict:
            print(f"wrong: {self.name}: {case.name}: {answer}")
            verdict = "wrong"
        self.counts[verdict] += 1

    def row(self) -> str:
        numbers = "".join(f"{self.counts[column]:>11}" for column in COLUMNS)
        middle, longest = median(self.seconds) * 1e3, max(self.seconds) * 1e3
        return f"{self.name:<16}{numbers}{middle:>10.3f}{longest:>10.1f}"


def first_sure_answer(engines: Iterable[Any], case: Case) -> Answer | None:
    """The first proof or disproof, else the last UNKNOWN, else None."""
    best: Answer | None = None
    for engine in engines:
        ask = getattr(engine, case.question, None)
        answer: Answer | None = None if ask is None else ask(*case.maps)
        if answer is not None:
            best = answer
            if answer.is_proven or answer.is_disproven:
                break
    return best


def main() -> int:
    tallies = [Tally(engine.ENGINE, [engine]) for engine in ENGINES]
    tallies.append(Tally("all in turn", ENGINES))
    for case in cases():
        for tally in tallies:
            tally.ask(case)
    heads = "".join(f"{column:>11}" for column in COLUMNS)
    print(f"{'':<16}{heads}{'median ms':>10}{'most ms':>10}")
    for tally in tallies:
        print(tally.row())
    return 1 if any(tally.counts["wrong"] for tally in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
