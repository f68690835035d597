"""What has to come after what among the stages of a pipeline.

In: an `exec.pipeline`. Out: the dependences its data flow and its effects ask for, how long what
stages hand on is needed, and whether the dependences it states keep those of effects; of a loop in
order, the storage that its iterations update. A dependence
is kept when stated ones and those of values lead from the one stage to the other over no more
iterations. Storage that a stage allocates is another one in each iteration, so it ties the stages
of one iteration only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from tilenest.analysis.composed_accesses import ComposedAccess, compose
from tilenest.analysis.effects import HIDDEN, TOUCHING, WRITING
from tilenest.analysis.meetings import AHEAD, Relation, turns_met
from tilenest.analysis.memory_effects import coincide, may_overlap
from tilenest.analysis.modulo_schedules import Need
from tilenest.analysis.structure import constant_of, enclosing_blocks, is_defined_above
from tilenest.dialects import Alloc, Dependence, Pipeline, Serial, base_of
from tilenest.ir import (
    BlockArgument,
    Effect,
    EffectKind,
    Operation,
    OpResult,
    Region,
    Value,
)
from tilenest.records import record

_Touch: TypeAlias = tuple[Operation, Effect[Value]]


@record
class StageValue:
    """A value that stage `producer` makes, and the stages that use it, each with how many
    iterations later: a carried state, a value handed on, or storage of one iteration."""

    value: Value
    producer: int
    readers: tuple[tuple[int, int], ...]

    @property
    def need(self) -> Need:
        """How long it is needed; while it is made at least."""
        return Need(self.producer, ((self.producer, 0), *self.readers))


def value_dependences(op: Pipeline) -> tuple[Dependence, ...]:
    """Stages that use what an earlier one yields, and those that use a carried state."""
    yields = _yields(op)
    last = len(op.regions) - 1
    first_yield = op.rank + len(op.initial)
    found: dict[Dependence, None] = {}
    for stage in range(len(op.regions)):
        for argument in _used_arguments(op.regions[stage]):
            if op.rank <= argument < first_yield:
                found[Dependence(last, stage, "value", 1)] = None
            elif argument >= first_yield:
                producer = _producer(yields, argument - first_yield)
                found[Dependence(producer, stage, "value")] = None
    return tuple(found)


def effect_dependences(op: Pipeline) -> tuple[Dependence, ...]:
    """Stages of which one writes what the other touches, over the least iterations they meet at."""
    stages = [_touches(region) for region in op.regions]
    handed = _Handed(op)
    found: list[Dependence] = []
    for later in range(len(stages)):
        for earlier in range(later + 1):
            pairs = [(a, b) for a in stages[earlier] for b in stages[later]]
            if earlier < later:
                found += _meet(op, handed, earlier, later, pairs)
            found += _meet(op, handed, later, earlier, [(b, a) for a, b in pairs])
    return tuple(found)


def handed_values(op: Pipeline) -> tuple[StageValue, ...]:
    """One for each carried state, then one for each value that a stage yields to later ones."""
    needs: list[StageValue] = []
    last = len(op.regions) - 1
    for place, state in enumerate(_entry(op, last)[op.rank : op.rank + len(op.initial)]):
        needs.append(StageValue(state, last, _readers(op, op.rank + place, 1)))
    place = op.rank + len(op.initial)
    for stage, values in enumerate(_handed(region) for region in op.regions[:-1]):
        for value in values:
            needs.append(StageValue(value, stage, _readers(op, place, 0)))
            place += 1
    return tuple(needs)


def stage_storage(op: Pipeline) -> tuple[StageValue, ...]:
    """One for each storage that a stage allocates for its iteration."""
    handed = _Handed(op)
    stages = [_touches(region) for region in op.regions]
    needs: list[StageValue] = []
    for producer, touches in enumerate(stages):
        for _, effect in touches:
            if effect.kind is not EffectKind.ALLOCATE or effect.resource is None:
                continue
            made = effect.resource
            users = [s for s, _ in enumerate(stages) if _uses(op.regions[s], made, handed)]
            needs.append(StageValue(made, producer, tuple((stage, 0) for stage in users)))
    return tuple(needs)


def made_as(value: Value) -> Value:
    """The value itself, or what the stage that made it calls it."""
    holder = value.block.parent_op if isinstance(value, BlockArgument) else None
    return _Handed(holder).source(value) if isinstance(holder, Pipeline) else value


def carried_storage(loop: Serial) -> tuple[Alloc, ...]:
    """The bufs that a loop updates: made before it, read and written by its iterations."""
    kinds: dict[Value, set[EffectKind]] = {}
    for _, effect in _touches(loop.regions[0]):
        if effect.resource is not None:
            kinds.setdefault(base_of(effect.resource), set()).add(effect.kind)
    return tuple(
        held.owner
        for held, found in kinds.items()
        if isinstance(held, OpResult)
        and isinstance(held.owner, Alloc)
        and not loop.is_ancestor_of(held.owner)
        and EffectKind.READ in found
        and found & WRITING
    )


def unkept_dependences(op: Pipeline, stated: Iterable[Dependence]) -> Iterator[Dependence]:
    """Dependences of effects that what is stated does not keep."""
    least = _least_distances([*stated, *value_dependences(op)])
    for needed in effect_dependences(op):
        # One iteration in flight keeps what reaches over iterations.
        if needed.distance and op.window == 1:
            continue
        kept = least.get((needed.producer, needed.consumer))
        if kept is None or kept > needed.distance:
            yield needed


# Values ----------------------------------------------------------------------------------------


def _yields(op: Pipeline) -> list[int]:
    """How many values each stage but the last hands to those behind it."""
    return [len(_handed(region)) for region in op.regions][:-1]


def _handed(region: Region) -> list[Value]:
    """What a stage yields, by the first of its ways out."""
    return next(iter(_exits(region)), [])


def _exits(region: Region) -> list[list[Value]]:
    ends = [block.terminator for block in region.blocks]
    return [list(end.operands) for end in ends if not end.edges]


def _producer(yields: list[int], place: int) -> int:
    for stage, count in enumerate(yields):
        if place < count:
            return stage
        place -= count
    raise AssertionError("the argument belongs to no stage")


def _entry(op: Pipeline, stage: int) -> list[BlockArgument]:
    entry = op.regions[stage].blocks.first
    assert entry is not None
    return list(entry.arguments)


def _used_arguments(region: Region) -> Iterator[int]:
    entry = region.blocks.first
    assert entry is not None
    return (argument.index for argument in entry.arguments if argument.has_uses)


def _readers(op: Pipeline, argument: int, distance: int) -> tuple[tuple[int, int], ...]:
    """The stages that use an argument."""
    using = [
        stage for stage, region in enumerate(op.regions) if argument in _used_arguments(region)
    ]
    return tuple((stage, distance) for stage in using)


def _uses(region: Region, made: Value, handed: _Handed) -> bool:
    """Whether a stage names a storage."""
    return any(
        handed.source(operand) is made for op in region.operations() for operand in _below(op)
    )


def _below(op: Operation) -> Iterator[Value]:
    for nested in op.walk():
        yield from nested.operands
        yield from nested.results


# Effects ---------------------------------------------------------------------------------------


class _Handed:
    """What the arguments of stages are, in the stage that made it."""

    def __init__(self, op: Pipeline) -> None:
        self.op = op
        self._yielded = [value for region in op.regions[:-1] for value in _agreed(region)]
        self._first = op.rank + len(op.initial)

    def source(self, value: Value) -> Value:
        """The value itself, or what an earlier stage called it."""
        while (
            isinstance(value, BlockArgument)
            and value.block.parent_op is self.op
            and value.index >= self._first
        ):
            yielded = self._yielded[value.index - self._first]
            if yielded is None:
                break
            value = yielded
        return value

    def is_of_one_iteration(self, value: Value) -> bool:
        """Whether a stage of the pipeline allocates it."""
        if not isinstance(value, OpResult) or not self.op.is_ancestor_of(value.owner):
            return False
        effects = value.owner.effects()
        return any(e.kind is EffectKind.ALLOCATE and e.resource is value for e in effects)


def _agreed(region: Region) -> list[Value | None]:
    """What a stage yields, where all its ways out say the same."""
    ways = _exits(region)
    same = [all(way[place] is value for way in ways) for place, value in enumerate(ways[0])]
    return [value if is_same else None for value, is_same in zip(ways[0], same, strict=True)]


def _touches(region: Region) -> list[_Touch]:
    return [
        (nested, effect)
        for op in region.operations()
        for nested in op.walk()
        for effect in nested.effects()
    ]


def _meet(
    op: Pipeline,
    handed: _Handed,
    producer: int,
    consumer: int,
    pairs: Iterable[tuple[_Touch, _Touch]],
) -> Iterator[Dependence]:
    """The dependence of a stage on another one, if what they touch ever meets."""
    least = 0 if producer < consumer else 1
    distances = (_distance(op, handed, first, second, least) for first, second in pairs)
    found = [distance for distance in distances if distance is not None]
    if found:
        yield Dependence(producer, consumer, "effect", min(found))


def _distance(
    op: Pipeline, handed: _Handed, first: _Touch, second: _Touch, least: int
) -> int | None:
    """After how many iterations, `least` or more, an effect collides with another."""
    one, other = first[1], second[1]
    kinds = {one.kind, other.kind}
    if not all(kind in TOUCHING | HIDDEN for kind in kinds) or not kinds & (WRITING | HIDDEN):
        return None
    if one.resource is None or other.resource is None or kinds & HIDDEN:
        return least
    a, b = (handed.source(base_of(resource)) for resource in (one.resource, other.resource))
    if handed.is_of_one_iteration(a) or handed.is_of_one_iteration(b):
        return 0 if least == 0 and a is b else None
    if not may_overlap(one.resource, other.resource):
        return None
    return _least_distance(op, first, second, least) if coincide(a, b) else least


def _least_distance(op: Pipeline, first: _Touch, second: _Touch, least: int) -> int | None:
    """How many iterations after `first`, `least` or more, `second` may meet what it left. The
    iterations and all values outside of the pipeline are known; a stage's own may be any."""
    step = constant_of(op.step[0])
    pairs = [(x, y) for x in _composed(first) for y in _composed(second)]
    if op.rank != 1 or not step or not pairs:
        return least
    relation = Relation(
        lambda value: is_defined_above(value, op),
        (_index(op, first), _index(op, second)),
        int(step),
        (least, AHEAD[1]),
    )
    met = [turns_met(x, y, relation) for x, y in pairs]
    return min((turns[0] for turns in met if turns is not None), default=None)


def _composed(touch: _Touch) -> list[ComposedAccess]:
    op, effect = touch
    found = [t for t in op.accesses() if t.memory is effect.resource and t.kind is effect.kind]
    return [compose(op, one) for one in found]


def _index(op: Pipeline, touch: _Touch) -> Value:
    """What the stage of an operation calls the index of the pipeline."""
    around = enclosing_blocks(touch[0])
    stage = next(block.parent for block, holder in around if holder is op)
    assert stage is not None and stage.blocks.first is not None
    return stage.blocks.first.arguments[0]


def _least_distances(stated: Iterable[Dependence]) -> Mapping[tuple[int, int], int]:
    """The least number of iterations over which a chain of dependences leads between two stages."""
    least: dict[tuple[int, int], int] = {}
    stages: set[int] = set()
    for edge in stated:
        pair = (edge.producer, edge.consumer)
        least[pair] = min(edge.distance, least.get(pair, edge.distance))
        stages.update(pair)
    for between in stages:
        for first in stages:
            for last in stages:
                head, tail = least.get((first, between)), least.get((between, last))
                if head is not None and tail is not None:
                    known = least.get((first, last))
                    total = head + tail
                    least[first, last] = total if known is None else min(total, known)
    return least
