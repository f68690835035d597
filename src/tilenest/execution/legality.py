"""Whether a remap keeps what a program means to those who look at it.

In: a remap, the observers of the old structure, and the rewrites that go with it. Out: a proof for
the levels as a whole and one for each observer, with its new cut and the map from new instances to
old ones; `check` refuses a remap with a law that is not proven, and says which, for whom and where.
For each observed old cut there has to be a new one that decides it. Where levels of one instance
leave several that meet the observer's laws, the one nearest to where the old levels went is taken,
at the border of a nest where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tilenest.errors import RemapError
from tilenest.execution.laws import (
    CutMap,
    commutes,
    cut_map,
    is_once,
    keeps_kinds,
    keeps_order,
    keeps_owners_apart,
    lands,
    reaches_all,
)
from tilenest.execution.levels import Observer, PrefixCut
from tilenest.execution.pairs import all_proven
from tilenest.execution.proofs import Fact, first_failure
from tilenest.execution.remap import ExecRemap
from tilenest.layouts import Answer, DimRef, LayoutMap, check_kind, tuple_of
from tilenest.records import record, replace

_UNDECIDED = "give the extents as numbers, or rearrange levels of known extents only"
_REMEDIES = {
    "active": "give the remap a predicate that stops at the old extents",
    "once": "give the remap a predicate that leaves out the repeated instances",
    "all": "use factors and extents that reach every instance",
    "kind": "keep parallel, ordered and combining levels apart, and each in its scope",
    "order": "keep ordered levels in their order, and outside the levels they order",
    "prefix": "keep the levels above this cut outermost",
    "prefix active": "give the remap a predicate that stops at the old extents above this cut",
    "prefix once": "keep the levels above this cut outermost, or re-anchor what can be repeated",
    "prefix all": "keep the levels above this cut outermost",
    "owner": "keep the parallel levels above this cut outermost",
    "owner order": "leave the ordered level outside, or let each instance own its memory",
    "participants": "split the group's own levels only below its cut",
}


@record
class Reanchor:
    """A rewrite that goes with a remap: an observer sits at a new cut.

    An operation that may run again is repeated there, and its frontier spreads as deep. Memory
    stays with its owner: the coordinates that tell its instances apart are no axes of it.
    """

    observer: Observer
    cut: PrefixCut


@record
class RemapProof:
    """What holds for an observer; for the levels as a whole, `observer` is None.

    `prefix_map` goes from the instances at the new cut to those at the old one.
    """

    observer: Observer | None
    old_cut: PrefixCut
    new_cut: PrefixCut
    prefix_map: LayoutMap
    facts: tuple[Fact, ...]

    @property
    def failure(self) -> Fact | None:
        """The first law that is not proven."""
        return first_failure(self.facts)

    def __str__(self) -> str:
        lines = [f"{self._who}: new depth {self.new_cut.depth}", *map(str, self.facts)]
        return "\n  ".join(lines)

    def __repr__(self) -> str:
        failure = self.failure
        outcome = "proven" if failure is None else f"{failure.law!r} is not proven"
        return f"<RemapProof of {self._who}: {outcome}>"

    @property
    def _who(self) -> str:
        return "the levels" if self.observer is None else str(self.observer)


def check(
    remap: ExecRemap, observers: Sequence[Observer], reanchors: Sequence[Reanchor] = ()
) -> tuple[RemapProof, ...]:
    """The proofs of a remap: of the whole, then of each observer. Raises a `RemapError` with the
    first law that is not proven, and as `judge` does."""
    proofs = []
    for proof in judge(remap, observers, reanchors):
        if proof.failure is not None:
            raise _refusal(remap, proof, proof.failure)
        proofs.append(proof)
    return tuple(proofs)


def judge(
    remap: ExecRemap, observers: Sequence[Observer], reanchors: Sequence[Reanchor] = ()
) -> Iterator[RemapProof]:
    """What is known of each law, one observer after the other, the whole first. Raises a
    `VerifyError` for cuts that are not there, and a `RemapError` for rewrites of nobody who
    observes, or above an anchor."""
    check_kind(remap, ExecRemap, "what is judged")
    for observer in tuple_of(observers, Observer, "the observers"):
        remap.old.check_cut(observer.cut)
    for entry in tuple_of(reanchors, Reanchor, "the rewrites"):
        remap.new.check_cut(entry.cut)
        if entry.observer not in observers:
            raise RemapError(
                f"{entry.observer} does not observe these levels",
                remedy="re-anchor one of the observers",
            )
    yield from _Judge(remap, {entry.observer: entry.cut for entry in reanchors}).all(observers)


def holds_at(remap: ExecRemap, observer: Observer, new_cut: PrefixCut) -> bool:
    """Whether an observer finds what it sees at a new cut; of the order among owners nothing is
    said, which is the same wherever they stand. Raises a `VerifyError` for cuts that are not
    there."""
    check_kind(remap, ExecRemap, "what is judged")
    check_kind(observer, Observer, "who observes")
    remap.new.check_cut(new_cut)
    asked = _Judge(remap, {})
    is_deep = new_cut.depth >= asked.deciding(observer.cut)
    return is_deep and asked.at(observer, new_cut).failure is None


_Law = Callable[[CutMap], Answer]


class _Judge:
    """Judges one remap; holds the maps between the prefixes at which operations run."""

    def __init__(self, remap: ExecRemap, moved: Mapping[Observer, PrefixCut]) -> None:
        self.remap = remap
        self.moved = moved
        self.formula = remap.formula
        self.used = [result.used_dims() for result in remap.traced]
        self.cuts: dict[tuple[PrefixCut, PrefixCut], CutMap] = {}
        self.answers: dict[tuple[_Law, int, int], Answer] = {}
        self.whole = self.between(remap.old.leaf, remap.new.leaf)
        self.running = {remap.old.leaf: self.whole}
        self.anchors: dict[str, int] = {}
        self.orders: dict[tuple[int, int, tuple[int, ...]], Answer] = {}

    def between(self, old_cut: PrefixCut, new_cut: PrefixCut) -> CutMap:
        key = old_cut, new_cut
        if key not in self.cuts:
            self.cuts[key] = cut_map(self.remap, self.formula, old_cut, new_cut)
        return self.cuts[key]

    def decides(self, cut: CutMap) -> Answer:
        return commutes(self.formula, cut)

    def known(self, law: _Law, cut: CutMap) -> Answer:
        """The answer of a law, which several observers may ask for at one cut."""
        key = law, len(cut.old), len(cut.new)
        if key not in self.answers:
            self.answers[key] = law(cut)
        return self.answers[key]

    def all(self, observers: Sequence[Observer]) -> Iterator[RemapProof]:
        """The whole, then anchors, which say where something runs, then the others."""
        old, new = self.remap.old, self.remap.new
        facts = tuple(self.facts())
        yield RemapProof(None, old.leaf, new.leaf, self.whole.layout, facts)
        for observer in sorted(observers, key=lambda one: one.kind != "anchor"):
            cut = self.moved.get(observer)
            proof = self.searched(observer) if cut is None else self.rewritten(observer, cut)
            if observer.kind == "owner":
                proof = replace(proof, facts=(*proof.facts, self.order_seen(observer)))
            elif observer.kind == "anchor" and proof.failure is None:
                self.anchors[observer.name] = proof.new_cut.depth
                self.running[observer.cut] = self.between(observer.cut, proof.new_cut)
            yield proof

    def facts(self) -> Iterator[Fact]:
        """The laws of the levels as a whole."""
        old = self.remap.old
        yield Fact("active", self.known(lands, self.whole))
        yield Fact("once", self.known(is_once, self.whole))
        yield Fact("all", self.known(reaches_all, self.whole))
        yield Fact("kind", keeps_kinds(self.whole))
        yield Fact("order", self.order(self.whole, old.spatial(old.leaf)))

    def searched(self, observer: Observer) -> RemapProof:
        """The proof at the nearest new cut that meets the laws; else the failure at the nearest cut
        that decides the old one."""
        first = max(self.least(observer), self.deciding(observer.cut))
        usual = max(first, self.entered(observer.cut))
        depths = (*range(usual, self.remap.new.depth + 1), *reversed(range(first, usual)))
        known: dict[int, RemapProof] = {}
        for depth in filter(self.remap.new.is_boundary, depths):
            known[depth] = self.at(observer, PrefixCut(depth))
            if known[depth].failure is None:
                return known[depth]
        best: RemapProof | None = None
        for depth in depths:
            proof = known.get(depth) or self.at(observer, PrefixCut(depth))
            if best is None or (best.failure is not None and _gets_further(proof, best)):
                best = proof
        assert best is not None, "an anchor has a cut"
        return best

    def least(self, observer: Observer) -> int:
        """The shallowest cut there may be: an operation is spread no less deep than it stands."""
        return self.anchors.get(observer.name, 0) if observer.kind == "frontier" else 0

    def deciding(self, cut: PrefixCut) -> int:
        """The shallowest depth that may decide an old prefix: it has the levels that are taken over
        as they are."""
        kept = [r for r in self.formula.results[: cut.depth] if isinstance(r, DimRef)]
        levels = self.remap.new.levels
        return max((r.position + 1 for r in kept if levels[r.position].extent != 1), default=0)

    def entered(self, cut: PrefixCut) -> int:
        """The depth below the last new level that an old prefix went into. It is deeper than
        `deciding` only by levels of one instance, which decide nothing."""
        return max((dim + 1 for used in self.used[: cut.depth] for dim in used), default=0)

    def at(self, observer: Observer, new_cut: PrefixCut) -> RemapProof:
        """What holds at one new cut, up to the first law that fails."""
        cut = self.between(observer.cut, new_cut)
        facts = []
        for fact in self.laws(observer, cut):
            facts.append(fact)
            if not fact.answer.is_proven:
                break
        return RemapProof(observer, observer.cut, new_cut, cut.layout, tuple(facts))

    def laws(self, observer: Observer, cut: CutMap) -> Iterator[Fact]:
        """The laws of an observer."""
        yield Fact("prefix", self.known(self.decides, cut))
        yield Fact("prefix active", self.known(lands, cut))
        may_repeat = observer.is_repeatable and observer in self.moved
        if observer.kind != "frontier" and not may_repeat:
            law = "participants" if observer.kind == "convergence" else "prefix once"
            yield Fact(law, self.known(is_once, cut))
        yield Fact("prefix all", self.known(reaches_all, cut))
        if observer.kind == "owner":
            yield Fact("owner", keeps_owners_apart(cut))
        if observer.kind == "anchor":
            yield Fact("order", self.order(cut, self.remap.old.spatial(observer.cut)))

    def order_seen(self, observer: Observer) -> Fact:
        """What one owner sees of all that runs."""
        seen = self.remap.old.spatial(observer.cut)
        answers = (
            self.order(cut, tuple(place for place in seen if place < len(cut.old)))
            for cut in self.running.values()
        )
        return Fact("owner order", all_proven(answers, "each owner sees the same order"))

    def order(self, cut: CutMap, same: tuple[int, ...]) -> Answer:
        """The law of order, which several observers may ask for."""
        key = len(cut.old), len(cut.new), same
        if key not in self.orders:
            self.orders[key] = keeps_order(cut, same)
        return self.orders[key]

    def rewritten(self, observer: Observer, new_cut: PrefixCut) -> RemapProof:
        """The proof at a cut that a rewrite names."""
        if new_cut.depth < self.least(observer):
            raise RemapError(
                f"{observer} cannot go to depth {new_cut.depth}: its anchor is at depth "
                f"{self.least(observer)}",
                remedy="spread an operation at least as deep as it stands",
            )
        return self.at(observer, new_cut)


def _gets_further(proof: RemapProof, other: RemapProof) -> bool:
    """Whether a proof holds, or fails at a cut that decides the old one when the other does not."""
    if proof.failure is None:
        return True
    assert other.failure is not None, "there is nothing to get further than a proof"
    return other.failure.law == "prefix" != proof.failure.law


def _undecided(remap: ExecRemap) -> str:
    """What may help where nobody knows: fewer steps at a time ask for less."""
    parts = "; or apply the first steps by themselves, as parts of a remap may be proven"
    return _UNDECIDED + (parts if len(remap.provenance) > 1 else "")


def _refusal(remap: ExecRemap, proof: RemapProof, fact: Fact) -> RemapError:
    who = "the levels" if proof.observer is None else str(proof.observer)
    return RemapError(
        f"the remap ({remap}) breaks the law {fact.law!r} of {who}: {fact.answer}",
        remedy=_REMEDIES[fact.law] if fact.answer.is_disproven else _undecided(remap),
    )
