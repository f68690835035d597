"""Random chains of steps under random observers: the map and the verdict, against all events."""

from __future__ import annotations

from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.execution import oracle
from tests.unit.execution.oracle import Events, every_event
from tilenest.execution import (
    ExecLevel,
    ExecRemap,
    ExecStructure,
    Observer,
    PrefixCut,
    compose,
    fuse,
    identity,
    insert_unit,
    judge,
    permute,
    remove_unit,
    reshape,
    split,
)
from tilenest.execution.levels import LevelKind, ObserverKind
from tilenest.execution.remap import remap_of
from tilenest.layouts import DimRef
from tilenest.records import replace

MOST_POINTS = 400
OBSERVERS: tuple[ObserverKind, ...] = ("anchor", "frontier", "owner", "convergence")
FAMILIES: list[tuple[LevelKind, str, str]] = [
    ("parallel", "", "auto"),
    ("parallel", "", "group"),
    ("serial", "", "auto"),
    ("reduce", "unordered_tree", "auto"),
    ("reduce", "fold_left", "auto"),
]


class Chain:
    """A remap that grows by random steps, and its events that move along."""

    def __init__(self, structure: ExecStructure) -> None:
        self.remap: ExecRemap = identity(structure)
        self.events: Events = every_event(sizes(structure))

    def add(self, step: ExecRemap, events: Events) -> None:
        if prod(sizes(step.new)) <= MOST_POINTS:
            self.remap = compose(self.remap, step)
            self.events = events

    def grow(self, data: st.DataObject) -> None:
        steps = (
            self._permute,
            self._split,
            self._fuse,
            self._permute,
            self._reshape,
            self._split,
            self._insert,
            self._remove,
            self._rename,
        )
        data.draw(st.sampled_from(steps))(data)

    def _split(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, self.remap.new.depth - 1))
        factor = data.draw(st.integers(1, 4))
        name = self.remap.new.levels[at].identity
        self.add(split(self.remap.new, name, factor), oracle.split(self.events, at, factor))

    def _fuse(self, data: st.DataObject) -> None:
        at, count = self._run(data)
        names = [level.identity for level in self.remap.new.levels[at : at + count]]
        moved = oracle.fuse(self.events, at, sizes(self.remap.new)[at : at + count])
        self.add(fuse(self.remap.new, *names), moved)

    def _permute(self, data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(self.remap.new.depth)))
        names = [self.remap.new.levels[at].identity for at in order]
        self.add(permute(self.remap.new, names), oracle.permute(self.events, order))

    def _reshape(self, data: st.DataObject) -> None:
        at, count = self._run(data)
        names = [level.identity for level in self.remap.new.levels[at : at + count]]
        old = sizes(self.remap.new)[at : at + count]
        first = data.draw(st.integers(1, 4))
        new = (first, -(-prod(old) // first))
        moved = oracle.reshape(self.events, at, old, new)
        self.add(reshape(self.remap.new, names, new), moved)

    def _insert(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, self.remap.new.depth))
        kind, policy, scope = data.draw(st.sampled_from(FAMILIES))
        taken = {level.identity for level in self.remap.new.levels}
        name = next(f"u{n}" for n in range(99) if f"u{n}" not in taken)
        unit = ExecLevel(name, name, kind, 1, scope, policy=policy)
        moved = oracle.moved(self.events, lambda p: (*p[:at], 0, *p[at:]))
        self.add(insert_unit(self.remap.new, at, unit), moved)

    def _remove(self, data: st.DataObject) -> None:
        units = [i for i, level in enumerate(self.remap.new.levels) if level.extent == 1]
        if units and self.remap.new.depth > 1:
            at = data.draw(st.sampled_from(units))
            moved = oracle.moved(self.events, lambda p: (*p[:at], *p[at + 1 :]))
            self.add(remove_unit(self.remap.new, self.remap.new.levels[at].identity), moved)

    def _rename(self, data: st.DataObject) -> None:
        """A level in another scope: the same instances, and no legal remap."""
        at = data.draw(st.integers(0, self.remap.new.depth - 1))
        levels = list(self.remap.new.levels)
        scope = data.draw(st.sampled_from(["auto", "group"]))
        levels[at] = replace(levels[at], scope=scope, nest=f"own {at}")
        step = remap_of(
            self.remap.new, ExecStructure(tuple(levels)), map(DimRef, range(len(levels)))
        )
        self.add(step, self.events)

    def _run(self, data: st.DataObject) -> tuple[int, int]:
        """Adjacent levels of one nest and kind."""
        levels = self.remap.new.levels
        at = data.draw(st.integers(0, len(levels) - 1))
        count = 1
        while (
            at + count < len(levels)
            and levels[at + count].family == levels[at].family
            and levels[at + count].nest == levels[at].nest
        ):
            count += 1
        return at, data.draw(st.integers(1, count))


def sizes(structure: ExecStructure) -> tuple[int, ...]:
    found = [level.extent for level in structure.levels if isinstance(level.extent, int)]
    assert len(found) == structure.depth
    return tuple(found)


@st.composite
def structures(draw: st.DrawFn, least: int) -> ExecStructure:
    levels = []
    for place in range(draw(st.integers(2, 3))):
        kind, policy, scope = draw(st.sampled_from(FAMILIES))
        extent = draw(st.integers(least, 4))
        name = f"x{place}"
        levels.append(ExecLevel(name, name, kind, extent, scope, kind + policy + scope, policy))
    return ExecStructure(tuple(levels))


def everybody(structure: ExecStructure) -> list[Observer]:
    """An observer of every kind at every cut."""
    return [
        Observer(f"{kind}{cut}", kind, PrefixCut(cut))
        for kind in OBSERVERS
        for cut in range(structure.depth + 1)
    ]


def is_legal(chain: Chain, observer: Observer) -> bool:
    """The laws by their definitions, over all events."""
    old, new = chain.remap.old.levels, chain.remap.new.levels
    depth = observer.cut.depth
    is_one_to_one = observer.kind != "frontier"
    cuts = list(oracle.deciding_cuts(chain.events, depth, len(new), is_one_to_one))
    if observer.kind == "owner":
        return any(owners_match(chain, depth, cut) for cut in cuts) and oracle.keeps_order(
            old, new, chain.events, depth
        )
    if observer.kind == "anchor":
        return any(anchors_keep_order(chain, depth, cut) for cut in cuts)
    return bool(cuts)


def keeps_scopes(chain: Chain) -> bool:
    """Whether each old coordinate is decided by the new ones of levels in its scope."""
    old, new = chain.remap.old.levels, chain.remap.new.levels
    for place, level in enumerate(old):
        alike = [at for at, other in enumerate(new) if other.scope == level.scope]
        pairs = {
            (tuple(point[at] for at in alike), origin[place])
            for point, origin in chain.events.items()
        }
        if len(pairs) != len({seen for seen, _ in pairs}):
            return False
    return True


def anchors_keep_order(chain: Chain, depth: int, cut: int) -> bool:
    anchors = {new[:cut]: old[:depth] for new, old in chain.events.items()}
    old, new = chain.remap.old.levels[:depth], chain.remap.new.levels[:cut]
    return oracle.keeps_order(old, new, anchors, depth)


def owners_match(chain: Chain, depth: int, cut: int) -> bool:
    pairs = {
        (
            oracle.spatial(chain.remap.new.levels, new, cut),
            oracle.spatial(chain.remap.old.levels, old, depth),
        )
        for new, old in chain.events.items()
    }
    return len(pairs) == len({new for new, _ in pairs}) == len({old for _, old in pairs})


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_chain_takes_every_instance_where_its_steps_take_it(data: st.DataObject) -> None:
    chain = Chain(data.draw(structures(least=0)))
    for _ in range(data.draw(st.integers(1, 5))):
        chain.grow(data)
    found = {point: chain.remap.apply(point) for point in chain.remap.new.space.points()}
    assert {new: old for new, old in found.items() if old is not None} == chain.events


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_the_verdict_is_that_of_all_events(data: st.DataObject) -> None:
    structure = data.draw(structures(least=1))
    chain = Chain(structure)
    for _ in range(data.draw(st.integers(1, 3))):
        chain.grow(data)
    assert oracle.is_permutation(sizes(structure), chain.events)
    whole, *proofs = judge(chain.remap, everybody(structure))
    every = len(structure.levels)
    is_ordered = oracle.keeps_order(structure.levels, chain.remap.new.levels, chain.events, every)
    assert (whole.failure is None) == (is_ordered and keeps_scopes(chain))
    for proof in proofs:
        assert proof.observer is not None
        assert (proof.failure is None) == is_legal(chain, proof.observer), proof
        if proof.failure is None:
            agrees_with_events(chain, proof.old_cut.depth, proof.new_cut.depth, proof.prefix_map)


def agrees_with_events(chain: Chain, depth: int, cut: int, prefix_map: object) -> None:
    assert hasattr(prefix_map, "apply")
    for new, old in chain.events.items():
        assert prefix_map.apply(new[:cut]) == old[:depth]
