"""Answers about a module, kept until an edit concerns them.

In: analyses, subjects (a module, a function, or an operation with all below it, each also `On` a
target or something else that no edit changes), and the edits of a rewriter. Out: frozen answers,
equal to what a fresh run gives. An analysis may ask others, which it declares; when one of those
answers is dropped, what was derived from it goes too. An operation is a subject for itself: its
answer must not depend on anything outside but the types of its operands, except through an analysis
it asks. `fresh` runs an analysis without a manager; then nothing is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar, cast

from tilenest.ir.contents import ModuleContents, module_of
from tilenest.ir.core import Function, Operation
from tilenest.ir.edits import Edit, EditKind
from tilenest.records import record

Place: TypeAlias = ModuleContents | Function | Operation
PlaceT = TypeVar("PlaceT", bound=Place)
GivenT = TypeVar("GivenT")


@record
class On(Generic[PlaceT, GivenT]):
    """A place, and what else answers about it depend on: a machine or a target."""

    place: PlaceT
    given: GivenT


Subject: TypeAlias = Place | On[Any, Any]
SubjectT = TypeVar("SubjectT", bound=Subject)
AnswerT = TypeVar("AnswerT")


class Analysis(Generic[SubjectT, AnswerT]):
    """A question about subjects of one kind; a subclass is never instantiated for this."""

    __slots__ = ()

    NAME: ClassVar[str]
    DEPENDS_ON: ClassVar[tuple[type[Analysis[Any, Any]], ...]] = ()
    """the analyses that `compute` may ask"""

    @classmethod
    def compute(cls, subject: SubjectT, ask: Asker, /) -> AnswerT:
        """The answer, which must not change and must be comparable."""
        raise NotImplementedError

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        """Whether an edit of the subject may change the answer; names and locations do not, unless
        the answer holds some."""
        return edit.kind is not EditKind.LABEL


_AnyAnalysis: TypeAlias = type[Analysis[Any, Any]]
_Key: TypeAlias = tuple[_AnyAnalysis, Subject]


@record(eq=False)
class _Kept:
    """An answer and what it was derived from."""

    answer: Any
    needs: frozenset[_Key]


class Asker:
    """Runs analyses for each other and keeps nothing."""

    __slots__ = ()

    def get(self, analysis: type[Analysis[SubjectT, AnswerT]], subject: SubjectT) -> AnswerT:
        return analysis.compute(subject, _Declared(analysis, self, set()))


class _Declared(Asker):
    """What `compute` is given: it gets what the analysis declares, and notes what it took."""

    __slots__ = ("_analysis", "_asker", "_needs")

    def __init__(self, analysis: _AnyAnalysis, asker: Asker, needs: set[_Key]) -> None:
        self._analysis = analysis
        self._asker = asker
        self._needs = needs

    def get(self, analysis: type[Analysis[SubjectT, AnswerT]], subject: SubjectT) -> AnswerT:
        assert analysis in self._analysis.DEPENDS_ON, (
            f"{self._analysis.NAME} does not declare that it asks {analysis.NAME}"
        )
        self._needs.add((analysis, subject))
        return self._asker.get(analysis, subject)


def fresh(analysis: type[Analysis[SubjectT, AnswerT]], subject: SubjectT) -> AnswerT:
    """The answer from a run that keeps nothing."""
    return Asker().get(analysis, subject)


class AnalysisManager(Asker):
    """The answers kept for the modules that one rewriter changes."""

    __slots__ = ("_by_place", "_derived", "_operations")

    def __init__(self) -> None:
        self._by_place: dict[Place, dict[_Key, _Kept]] = {}
        self._derived: dict[_Key, set[_Key]] = {}
        """what was derived from an answer; some of it may be gone already"""
        self._operations = 0
        """how many subjects are operations"""

    # Asking --------------------------------------------------------------------------------

    def get(self, analysis: type[Analysis[SubjectT, AnswerT]], subject: SubjectT) -> AnswerT:
        """The answer, computed if it is not known; about what is detached, nothing is kept."""
        kept = self._by_place.get(_place_of(subject), {}).get((analysis, subject))
        if kept is not None:
            return cast("AnswerT", kept.answer)
        needs: set[_Key] = set()
        answer = analysis.compute(subject, _Declared(analysis, self, needs))
        if _is_attached(_place_of(subject)):
            self._keep((analysis, subject), _Kept(answer, frozenset(needs)))
        return answer

    def _keep(self, key: _Key, kept: _Kept) -> None:
        place = _place_of(key[1])
        if place not in self._by_place:
            self._by_place[place] = {}
            self._operations += isinstance(place, Operation)
        self._by_place[place][key] = kept
        for need in kept.needs:
            self._derived.setdefault(need, set()).add(key)

    def is_known(self, analysis: _AnyAnalysis, subject: Subject) -> bool:
        """Whether an answer is kept."""
        return (analysis, subject) in self._by_place.get(_place_of(subject), {})

    # Listening -----------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        return not self._by_place

    def edited(self, edit: Edit) -> None:
        """Drop the answers that an edit concerns."""
        if self.is_idle:
            return
        for place in self._around(edit):
            for key in list(self._by_place.get(place, ())):
                if key[0].is_affected_by(edit):
                    self._drop(key)
        if self._operations or edit.kind is EditKind.FUNCTION:
            for place in _leaving(edit):
                for key in list(self._by_place.get(place, ())):
                    self._drop(key)

    def _around(self, edit: Edit) -> Iterator[Place]:
        """The places that hold the one of an edit."""
        if edit.module is not None:
            yield edit.module
        if edit.function is not None:
            yield edit.function
        if self._operations and edit.block is not None:
            holder = edit.operation or edit.block.parent_op
            while holder is not None:
                yield holder
                holder = holder.parent_op

    def _drop(self, key: _Key) -> None:
        waiting = [key]
        while waiting:
            found = waiting.pop()
            place = _place_of(found[1])
            kept = self._by_place.get(place, {})
            if kept.pop(found, None) is None:
                continue
            if not kept:
                del self._by_place[place]
                self._operations -= isinstance(place, Operation)
            waiting += self._derived.pop(found, ())

    def mark(self) -> list[tuple[_Key, _Kept]]:
        """All answers kept now."""
        return [pair for answers in self._by_place.values() for pair in answers.items()]

    def restore(self, mark: list[tuple[_Key, _Kept]]) -> None:
        """Keep the answers of a mark and no others: the module is as it was then."""
        self._by_place, self._derived, self._operations = {}, {}, 0
        for key, kept in mark:
            self._keep(key, kept)

    # Judging -------------------------------------------------------------------------------

    def check(self) -> None:
        """Compare every answer kept with a fresh run."""
        for (analysis, subject), kept in self.mark():
            place = _place_of(subject)
            assert _is_attached(place), f"{analysis.NAME} is kept for something detached"
            now = fresh(analysis, subject)
            assert kept.answer == now, f"{analysis.NAME} is out of date: {kept.answer} is now {now}"


def _place_of(subject: Subject) -> Place:
    return subject.place if isinstance(subject, On) else subject


def _is_attached(place: Place) -> bool:
    if isinstance(place, Operation):
        function = place.parent_function
        return function is not None and module_of(function) is not None
    return not isinstance(place, Function) or module_of(place) is not None


def _leaving(edit: Edit) -> Iterator[Place]:
    """The places that go away with what an edit is about."""
    if edit.kind is EditKind.ERASED:
        if edit.operation is not None:
            yield from edit.operation.walk()
        elif edit.block is not None:
            yield from edit.block.walk()
    elif edit.kind is EditKind.FUNCTION and edit.function is not None and edit.detail is None:
        yield edit.function
        yield from edit.function.walk()
