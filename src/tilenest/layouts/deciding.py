"""How a question about layout maps is decided: the order of the tries, and the last check.

In: a question as data: how each engine answers it, what follows from the parts of a map, how to try
every point, and what makes a witness right. Out: one answer. A run-time extent stands for all its
values, so engines may prove a claim and trying a few values may only disprove it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice, product
from typing import Protocol

from tilenest.errors import ShapeError
from tilenest.layouts.answers import Answer, Witness, proven, unknown
from tilenest.layouts.engines import engines
from tilenest.layouts.enumeration import points_within
from tilenest.layouts.formula_algebra import Formulas
from tilenest.layouts.kinds import whole_number
from tilenest.layouts.layout_map import Point, Values
from tilenest.layouts.spaces import IndexSet, Space
from tilenest.records import record, replace

DEFAULT_BUDGET = 1 << 16
STRUCTURE = "structure"
# Values of run-time extents that are tried for a counterexample, and how large spaces may get.
_TRIED = (3, 1, 2, 5)
_MOST_TRIALS = 64
_MOST_POINTS_TRIED = 1024


class Engine(Protocol):
    """What a proof engine offers; None for formulas it cannot read."""

    def is_total(self, formulas: Formulas) -> Answer | None: ...
    def is_bounded(self, formulas: Formulas) -> Answer | None: ...
    def is_injective(self, formulas: Formulas) -> Answer | None: ...
    def is_surjective(self, formulas: Formulas) -> Answer | None: ...
    def covers(self, formulas: Formulas, wanted: IndexSet) -> Answer | None: ...
    def equal(self, f: Formulas, g: Formulas) -> Answer | None: ...
    def are_disjoint(self, f: Formulas, g: Formulas) -> Answer | None: ...


@record
class Question:
    """One question, ready to be decided.

    `spaces` are those whose points `enumerated` goes through, each of which costs `n_nodes`;
    `symbols` are all run-time numbers that matter, and `is_broken` says whether the points of a
    witness break the claim.
    """

    spaces: tuple[Space, ...]
    n_nodes: int
    symbols: tuple[str, ...]
    by_engine: Callable[[Engine], Answer | None]
    by_parts: Callable[[], Answer | None]
    enumerated: Callable[[Values], Answer]
    is_broken: Callable[[tuple[Point, ...], Values], bool]


def decide(question: Question, budget: int) -> Answer:
    """The first sure answer, else UNKNOWN with what every try said."""
    budget = whole_number(budget, "a budget of points")
    reasons: list[str] = []
    for attempt in _attempts(question, budget):
        answer = attempt()
        if answer is None:
            continue
        if answer.is_proven:
            return answer
        if answer.witness is not None:
            shown = _completed(question, answer.witness)
            if question.is_broken(shown.points, dict(shown.symbols)):
                return replace(answer, witness=shown)
        reasons.append(f"{answer.engine}: {answer.reason}")
    return unknown("questions", "; ".join(dict.fromkeys(reasons)) or "nothing decides it")


def all_of(*answers: Answer) -> Answer | None:
    """Proven when all answers are; parts prove the whole and never disprove it."""
    if all(answer.is_proven for answer in answers):
        return proven(STRUCTURE, "; ".join(answer.reason for answer in answers))
    return None


def _attempts(question: Question, budget: int) -> Iterator[Callable[[], Answer | None]]:
    for engine in engines().in_order:
        yield partial(_asked, partial(question.by_engine, engine))
    yield partial(_asked, question.by_parts)
    yield lambda: _tried(question, budget)


def _asked(answer: Callable[[], Answer | None]) -> Answer | None:
    try:
        return answer()
    except ShapeError:
        # A number on the way leaves 64 bits, or a formula gets too large.
        return None


def _tried(question: Question, budget: int) -> Answer | None:
    """Every point where all extents are known, else some points that may disprove the claim."""
    if budget <= 0:
        return None
    most = points_within(budget, question.n_nodes)
    if not question.symbols:
        large = [s for s in question.spaces if s.size is None or s.size > most]
        if large:
            return unknown("enumeration", f"{large[0]} has over {most} points")
        return question.enumerated({})
    for values in _trials(question.symbols):
        if all(_is_small(space, values, most) for space in question.spaces):
            answer = question.enumerated(values)
            if answer.is_disproven:
                return answer
    return unknown("enumeration", f"{', '.join(question.symbols)} stand for every value")


def _trials(symbols: tuple[str, ...]) -> Iterator[Values]:
    for chosen in islice(product(_TRIED, repeat=len(symbols)), _MOST_TRIALS):
        yield dict(zip(symbols, chosen, strict=True))


def _is_small(space: Space, values: Values, most: int) -> bool:
    size = Space.box(*space.shape(values)).size
    return size is not None and size <= min(most, _MOST_POINTS_TRIED)


def _completed(question: Question, witness: Witness) -> Witness:
    """With a value for every run-time number: one that no formula mentions may have any."""
    values = dict.fromkeys(question.symbols, 1) | dict(witness.symbols)
    return Witness(witness.points, tuple(sorted(values.items())))
