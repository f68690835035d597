"""TN05 against records that say something else than what happened: refused, or shown to be true.

What a record says is believed if the nests that are there may have come about so. A forgery that is
accepted here therefore comes with the reason why it claims nothing wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import pytest

import tilenest as tn
from tests.unit.passes.remapped import CASES, captured
from tests.unit.passes.test_remap import PLACED
from tests.unit.verify.test_remap_records import runs_all_once, tampered
from tilenest.analysis import chain_along, remaps_of
from tilenest.dialects import (
    AppliedRemap,
    Load,
    Nest,
    Placement,
    RemapLevel,
    RemapObserver,
    Serial,
)
from tilenest.execution import identity
from tilenest.ir import Module, Rewriter
from tilenest.layouts import AffineMap, DimRef
from tilenest.passes import Remapping, remap
from tilenest.records import replace
from tilenest.verify import diagnose_module

Records = tuple[AppliedRemap, ...]


def remapped(name: str, *turns: Callable[[Module], Remapping]) -> tuple[Module, Records]:
    """A case after some remaps, and their records."""
    module = captured(CASES[name])
    for turn in turns:
        turn(module).apply()
    (function,) = module.functions
    assert not diagnose_module(module)
    return module, remaps_of(function)


def verdict(module: Module, *records: AppliedRemap) -> str:
    """What TN05 says of a module that remembers these."""
    (function,) = module.functions
    Rewriter().set_function_attribute(function, "remaps", records)
    found = diagnose_module(module)
    assert {diagnostic.rule for diagnostic in found} <= {"TN05"}, found
    assert all(diagnostic.remedy for diagnostic in found)
    return "; ".join(diagnostic.message for diagnostic in found) or "accepted"


def with_level(
    levels: tuple[RemapLevel, ...], place: int, **fields: object
) -> tuple[RemapLevel, ...]:
    return (*levels[:place], replace(levels[place], **fields), *levels[place + 1 :])


# One record -------------------------------------------------------------------------------------


def split_steps(module: Module) -> Remapping:
    """row=3 | step=4 | column=2 of `owned`, with the steps in two levels of two."""
    return remap(module, "column").split("step", 2)


STRUCTURES: dict[str, tuple[Callable[[AppliedRemap], AppliedRemap], str]] = {
    "more steps than the nests have": (
        lambda one: replace(one, old=with_level(one.old, 1, extent=5)),
        "breaks the law 'all' of the levels",
    ),
    "fewer steps than the nests have": (
        lambda one: replace(one, old=with_level(one.old, 1, extent=3)),
        "breaks the law 'active' of the levels",
    ),
    "more blocks than there are": (
        lambda one: replace(
            one, old=with_level(one.old, 1, extent=6), new=with_level(one.new, 1, extent=3)
        ),
        "no nests are 3 parallel x 3 serial x 2 serial x 2 parallel",
    ),
    "steps that were parallel": (
        lambda one: replace(one, old=with_level(one.old, 1, kind="parallel")),
        "breaks the law 'kind' of the levels",
    ),
    "columns that were and are serial": (
        lambda one: replace(
            one,
            old=with_level(one.old, 2, kind="serial"),
            new=with_level(one.new, 3, kind="serial"),
        ),
        "no nests are 3 parallel x 2 serial x 2 serial x 2 serial",
    ),
    "rows that follow the steps": (
        lambda one: replace(
            one,
            old=(one.old[1], one.old[0], one.old[2]),
            map=AffineMap(4, 0, (DimRef(1) * 2 + DimRef(2), DimRef(0), DimRef(3))),
        ),
        "breaks the law 'prefix",
    ),
    "blocks from the last to the first": (
        lambda one: replace(
            one, map=AffineMap(4, 0, (DimRef(0), DimRef(1) * -2 + DimRef(2) + 2, DimRef(3)))
        ),
        "breaks the law 'order'",
    ),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_levels_that_never_were(name: str) -> None:
    """Either no proof holds, or the function has other nests."""
    forge, message = STRUCTURES[name]
    module, (record,) = remapped("owned", split_steps)
    assert message in verdict(module, forge(record))


def test_whoever_is_left_out() -> None:
    """Everybody at one place is missed, if the record lists nobody else there."""
    module, (record,) = remapped("owned", split_steps)
    places = {(one.kind, one.depth) for one in record.observers}
    assert len(places) == 5
    for place in places:
        kept = tuple(one for one in record.observers if (one.kind, one.depth) != place)
        assert "is not proven for" in verdict(module, replace(record, observers=kept))


def test_whoever_looks_from_another_level() -> None:
    """A level further up or down is another place: it has no counterpart, or who was there is
    missed. Only an owner may be said to stand below serial levels, since the parallel levels alone
    decide whose memory it is."""
    module, (record,) = remapped("owned", split_steps)
    accepted = []
    for kind, depth, by in {
        (one.kind, one.depth, by) for one in record.observers for by in (-1, 1)
    }:
        if 0 <= depth + by <= len(record.old):
            forged = tuple(
                replace(one, depth=depth + by) if (one.kind, one.depth) == (kind, depth) else one
                for one in record.observers
            )
            if verdict(module, replace(record, observers=forged)) == "accepted":
                accepted.append((kind, depth, by))
    assert accepted == [("owner", 1, 1)]


def test_an_order_that_the_caller_saw() -> None:
    """The steps of all rows are said to have become those of each row. The caller saw the former,
    and cannot be left out."""
    module, (record,) = remapped("ordered", lambda module: remap(module, "column"))
    steps_first = replace(
        record,
        old=(record.old[1], record.old[0], record.old[2]),
        map=AffineMap(3, 0, (DimRef(1), DimRef(0), DimRef(2))),
    )
    assert "breaks the law 'owner order'" in verdict(module, steps_first)
    anchors = tuple(one for one in record.observers if one.kind != "owner")
    message = verdict(module, replace(steps_first, observers=anchors))
    assert "is not proven for owner 'what the caller sees'" in message


def test_work_that_is_said_to_be_repeatable() -> None:
    """What a record says may be repeated is not believed: the work of a row stands in the row."""
    module, (record,) = remapped("owned", split_steps)
    forged = tuple(
        replace(one, repeatable=True, moved=4) if one.kind == "anchor" else one
        for one in record.observers
    )
    assert verdict(module, replace(record, observers=forged)) == "accepted"
    moved_only = tuple(one for one in forged if one.depth != 1)
    assert "is not proven for" in verdict(module, replace(record, observers=moved_only))


UNIT = """module "candidate"

func @main(%A: view<i32, [4], [1]>) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c4 = scalar.constant 4 : index
  exec.serial(lower = [%c0], upper = [%c4], step = [%c1]) { |%i: index|
    %x = tile.load(%A, [%i]) : i32
    tile.store(%A, [%c0], %x)
    exec.serial(lower = [%c0], upper = [%c1], step = [%c1]) { |%u: index|
      tile.store(%A, [%i], %x)
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""


def test_a_predicate_on_a_level_of_one_instance() -> None:
    """It holds back what stands inside of that level, and not what stands in front of it, although
    both have as many instances otherwise."""
    module = tn.parse(UNIT)
    steps, unit = RemapLevel("i", "i", "serial", 4), RemapLevel("u", "u", "serial", 1)
    observers = (
        RemapObserver("around", "anchor", 1),
        RemapObserver("inside", "anchor", 2),
        RemapObserver("the caller", "owner", 0),
    )
    record = AppliedRemap(
        old=(steps, unit),
        new=(steps, unit),
        map=AffineMap(2, 0, (DimRef(0), DimRef(1))),
        active=AffineMap(2, 0, ()),
        steps=("nothing",),
        observers=observers,
    )
    assert verdict(module, record) == "accepted"
    fewer = replace(
        record,
        old=(replace(steps, extent=3), unit),
        active=AffineMap(2, 0, (DimRef(0) * -1 + DimRef(1) + 2,)),
    )
    assert "is not proven for" in verdict(module, fewer)
    message = verdict(module, replace(fewer, observers=(observers[0], observers[2])))
    assert "is not proven for" in message


WAIT = """module "candidate"

func @main(%A: view<i32, [4], [1]>) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c4 = scalar.constant 4 : index
  exec.serial(lower = [%c0], upper = [%c4], step = [%c1]) { |%i: index|
    %first = tile.load(%A, [%c0]) : i32
    tile.store(%A, [%i], %first)
    exec.parallel(lower = [%c0], upper = [%c4], step = [%c1]) { |%j: index|
      exec.serial(lower = [%c0], upper = [%c4], step = [%c1]) { |%k: index|
        %x = tile.load(%A, [%j]) : i32
        exec.sync
        tile.store(%A, [%j], %x)
        exec.yield
      }
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""


@pytest.mark.parametrize("is_between", [True, False])
def test_whoever_waits(is_between: bool) -> None:
    """The columns of one row wait for each other, which is missed between the levels of a record.
    Below all of them nobody has to be listed: there it is the same as what the whole keeps."""
    module = tn.parse(WAIT)
    plan = remap(module, "k").split("k", 2) if is_between else alone(module, Serial).split("i", 2)
    plan.apply()
    (function,) = module.functions
    (record,) = remaps_of(function)
    kept = tuple(one for one in record.observers if one.kind != "convergence")
    assert (len(kept) < len(record.observers)) == is_between
    message = verdict(module, replace(record, observers=kept))
    assert ("is not proven for convergence" in message) == is_between


@pytest.mark.parametrize(("frontier", "is_between"), [(1, True), (3, False)])
def test_whoever_says_where_it_is_spread(frontier: int, is_between: bool) -> None:
    """A load that is spread over the rows is missed between them and the steps; below all levels
    it is spread over the whole."""
    module = tn.parse(PLACED)
    load = next(op for op in module.walk() if isinstance(op, Load))
    Rewriter().set_attribute(load, "place", Placement(1, min(frontier, 2)))
    remap(module).split("k", 2).apply()
    assert load.place == Placement(1, frontier)
    (function,) = module.functions
    (record,) = remaps_of(function)
    kept = tuple(one for one in record.observers if one.kind != "frontier")
    assert len(kept) < len(record.observers)
    message = verdict(module, replace(record, observers=kept))
    assert ("is not proven for frontier 'tile.load'" in message) == is_between


def alone(module: Module, kind: type[Nest]) -> Remapping:
    """The first nest of a kind, without those around it."""
    nest = next(op for op in module.walk() if isinstance(op, kind))
    chain = chain_along((nest,))
    assert chain is not None
    return Remapping(module, chain, identity(chain.structure))


# Several records --------------------------------------------------------------------------------


def fuse_steps(module: Module) -> Remapping:
    """The steps in one level again, of the rows and steps without the columns inside."""
    return remap(module, "step_inner").fuse("step_outer", "step_inner")


def test_records_in_another_order() -> None:
    """The second begins with what the first left, so that it cannot have come before it."""
    module, (first, second) = remapped("owned", split_steps, fuse_steps)
    assert verdict(module, first, second) == "accepted"
    assert "no nests are 3 parallel x 2 serial x 2 serial" in verdict(module, second, first)


def test_records_of_nests_apart_may_come_in_any_order() -> None:
    """Neither has a level of the other, so the nests came about either way."""
    module, (first, second) = remapped(
        "owned",
        lambda module: remap(module, "row").split("row", 2),
        lambda module: alone(module, Serial).split("step", 2),
    )
    assert verdict(module, second, first) == "accepted"


def test_a_record_that_is_missing() -> None:
    """Without the second, the levels that the first left are not there. Without the first, nothing
    is claimed of what was before the second."""
    module, (first, second) = remapped("owned", split_steps, fuse_steps)
    assert "no nests are 3 parallel x 2 serial x 2 serial" in verdict(module, first)
    assert verdict(module, second) == "accepted"


def test_a_record_twice() -> None:
    """A split cannot have happened twice; that nothing changed may be said often."""
    module, (record,) = remapped("owned", split_steps)
    assert "no nests are" in verdict(module, record, record)
    module, (record,) = remapped("owned", lambda module: remap(module, "column"))
    assert verdict(module, record, record, record) == "accepted"


def test_a_record_of_levels_that_are_gone() -> None:
    """Of levels with several instances it is refused. One of levels of one instance says nothing
    that could be wrong, wherever they were."""
    _, (record,) = remapped("owned", split_steps)
    fresh = captured(CASES["owned"])
    assert "no nests are" in verdict(fresh, record)
    unit = RemapLevel("u", "u", "serial", 1)
    nothing = AffineMap(1, 0, ())
    gone = AppliedRemap((unit,), (unit,), AffineMap(1, 0, (DimRef(0),)), nothing, ("gone",))
    assert verdict(fresh, gone) == "accepted"


def test_work_between_nests_that_a_later_remap_united() -> None:
    """A read of each row runs in every column now. The record of that says where it stood, so an
    earlier one has to be proven for it there."""

    def unite(module: Module) -> Remapping:
        plan = remap(module, "column").unite("row", "column")
        (read,) = [one for one in plan.observers if one.is_repeatable]
        return plan.reanchor(read, 2)

    module, (first, second) = remapped("scaled", lambda module: remap(module, "column"), unite)
    assert verdict(module, first, second) == "accepted"
    without = replace(first, observers=tuple(one for one in first.observers if one.depth != 1))
    assert "is not proven for anchor 'tile.load in row'" in verdict(module, without, second)
    # Nobody says that it ever stood elsewhere: then it was in the columns from the start.
    never = replace(second, observers=tuple(one for one in second.observers if one.depth != 1))
    assert verdict(module, without, never) == "accepted"


def test_an_outer_nest_without_what_stands_in_it() -> None:
    """The levels of a record may end in the middle of a run of nests; who stands there looks."""
    module, (first, second) = remapped(
        "owned", lambda module: remap(module, "row").split("row", 3), split_all
    )
    assert len(first.old) == 1 and len(second.old) == 4
    for kind in ("anchor", "owner"):
        fewer = tuple(one for one in first.observers if one.kind != kind)
        assert f"is not proven for {kind}" in verdict(
            module, replace(first, observers=fewer), second
        )


def split_all(module: Module) -> Remapping:
    return remap(module, "column").split("step", 2).split("column", 1)


@tn.kernel
def in_the_middle(A, C):
    """A state of each row, which every step hands on and all of its columns read."""
    for row in tn.parallel(8):
        total = tn.scalar(0, tn.int32)
        for step in row.serial(4):
            total = total * 2 + A.at(row.index(), step.index()).load()
            for column in step.parallel(2):
                C.at(row.index(), column.index()).store(total)


@tn.kernel
def inside(A, C):
    for row in tn.parallel(8):
        total = tn.scalar(0, tn.int32)
        for step in row.serial(4):
            total = total * 2 + A.at(row.index(), step.index()).load()
        C.at(row.index(), 0).store(total)


@pytest.mark.parametrize(("kernel", "leaf"), [(in_the_middle, "column"), (inside, "step_inner")])
def test_a_state_in_nests_that_were_rearranged_since(kernel: tn.Kernel, leaf: str) -> None:
    """It belonged to a row when its steps were split, and is missed there although the rows are
    three levels by now."""
    module = kernel.capture(tn.spec((8, 4), tn.int32), tn.spec((8, 2), tn.int32))
    remap(module, "step").split("step", 2).apply()
    remap(module, leaf).split("row", 4).split("row.1", 2).apply()
    (function,) = module.functions
    first, second = remaps_of(function)
    assert verdict(module, first, second) == "accepted"
    (state,) = [one for one in first.observers if (one.kind, one.depth) == ("owner", 1)]
    fewer = tuple(one for one in first.observers if one is not state)
    message = verdict(module, replace(first, observers=fewer), second)
    assert "is not proven for owner 'a state'" in message


# Anything ---------------------------------------------------------------------------------------


def test_two_records_of_anything() -> None:
    """Whatever is accepted reaches all instances once, and gives each place where something stands
    a counterpart; both are enumerated."""
    accepted = 0
    for seed in range(60):
        random_ = random.Random(seed)
        module, records = remapped(
            "gemm",
            lambda module: remap(module, "block_1").permute("block_1", "block_0"),
            lambda module: remap(module, "step").split("block_1", 2),
        )
        place = seed % 2
        forged = list(records)
        forged[place] = tampered(random_, tampered(random_, forged[place]))
        if verdict(module, *forged) == "accepted":
            accepted += 1
            assert all(map(runs_all_once, forged)), forged
            assert has_counterpart(forged[1], 2) and has_counterpart(forged[1], 3), forged
    assert 0 < accepted < 60


def has_counterpart(record: AppliedRemap, depth: int) -> bool:
    """Whether the new instances above a depth are those above some old depth, each once."""
    new = tuple(int(level.extent) for level in record.new)
    old = tuple(int(level.extent) for level in record.old)
    deeper = (0,) * (len(new) - depth)
    known = [slack for slack in record.active.results if not slack.dim_mask >> depth]
    above = [
        point
        for point in product(*map(range, new[:depth]))
        if all(slack.evaluate((*point, *deeper)) >= 0 for slack in known)
    ]
    for cut in range(len(old) + 1):
        reached = [record.map.evaluate((*point, *deeper))[:cut] for point in above]
        is_decided = all(
            record.map.evaluate(whole)[:cut] == image
            for point, image in zip(above, reached, strict=True)
            for whole in product(*((place,) for place in point), *map(range, new[depth:]))
            if all(slack >= 0 for slack in record.active.evaluate(whole))
        )
        if is_decided and sorted(reached) == sorted(product(*map(range, old[:cut]))):
            return True
    return False
