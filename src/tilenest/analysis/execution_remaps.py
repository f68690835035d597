"""Who looks at a run of nests, and the proofs of the remaps that were applied to it.

In: a chain of nests; a remap as a function remembers it. Out: the nests inside which something
stands that needs its place, the observers that a remap is checked for, and its proofs. The same
remap is proven once: its record says everything the answer depends on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from tilenest.analysis.effects import Effects, effects_of, is_computation
from tilenest.analysis.execution_chains import ExecChain
from tilenest.analysis.execution_structure import initial_of, owner_at
from tilenest.analysis.memory_effects import may_overlap
from tilenest.analysis.structure import enclosing_nests, nearest_parallel
from tilenest.dialects import (
    AppliedRemap,
    If,
    Nest,
    Parallel,
    Pipeline,
    Placement,
    RemapLevel,
    RemapObserver,
    RemapSymbol,
    Synchronize,
    base_of,
)
from tilenest.errors import VerifyError
from tilenest.execution import (
    Definition,
    ExecLevel,
    ExecRemap,
    ExecStructure,
    Observer,
    PrefixCut,
    Reanchor,
    RemapProof,
    check,
)
from tilenest.ir import Block, EffectKind, Function, Operation, ScalarType, Value
from tilenest.layouts import AffineMap, Constraint, Expressions, IndexExpr, IndexSet, Space
from tilenest.records import record

_MOST_JUDGED = 256
SHARED_EFFECTS = frozenset(
    {EffectKind.WRITE, EffectKind.ATOMIC, EffectKind.SYNCHRONIZE, EffectKind.CALL}
)
"""What others than the instance see, where memory is not its own."""


# Who looks -------------------------------------------------------------------------------------


def kept_boundaries(chain: ExecChain) -> tuple[int, ...]:
    """The nests, by their position, inside which something stands that is not only there for the
    next nest; the innermost always counts."""
    last = len(chain.nests) - 1
    return tuple(
        place
        for place, nest in enumerate(chain.nests)
        if place == last or passage_of(nest) is not chain.nests[place + 1]
    )


def passage_of(outer: Nest) -> Nest | None:
    """The nest of which an instance of `outer` is nothing but a run, or, behind a condition,
    nothing at all."""
    if not _is_plain(outer) or is_met_in(outer):
        return None
    block = outer.body
    states = list(block.arguments[outer.rank :])
    while True:
        inner = _only_work(block)
        if isinstance(inner, If):
            if not _is_guard(inner, states):
                return None
            block = inner.body
        elif isinstance(inner, Nest) and _is_plain(inner) and initial_of(inner) == states:
            return inner
        else:
            return None


def _is_plain(nest: Nest) -> bool:
    """Whether nothing but its levels makes a nest; one that joins updates, and a pipeline whose
    stages depend on each other, stay the nests they are."""
    if isinstance(nest, Parallel) and nest.initial:
        return False
    is_staged = isinstance(nest, Pipeline) and nest.dependences is not None
    return len(nest.regions) == 1 and not is_staged and not has_branches(nest)


def has_branches(op: Operation) -> bool:
    """Whether a region of it is more than one block."""
    return any(len(region.blocks) != 1 for region in op.regions)


def is_met_in(nest: Nest) -> bool:
    """Whether its instances wait for each other."""
    return any(isinstance(op, Synchronize) and nearest_parallel(op) is nest for op in nest.walk())


def _only_work(block: Block) -> Operation | None:
    """The one operation of a block that is no computation, if its results are what the block hands
    on, and nobody else sees them."""
    work = [op for op in block.operations if not op.TERMINATOR and not is_computation(op)]
    if len(work) != 1 or list(block.terminator.operands) != list(work[0].results):
        return None
    users = (user for result in work[0].results for user in result.users)
    return work[0] if all(user is block.terminator for user in users) else None


def _is_guard(condition: If, states: Sequence[Value]) -> bool:
    """Whether the other way does nothing, and hands on the states as they were."""
    if has_branches(condition):
        return False
    other = condition.regions[1].block
    return len(other.operations) == 1 and list(other.terminator.operands) == list(states)


def may_repeat(nest: Nest, inner: Nest) -> bool:
    """Whether what stands in a nest, besides the nest inside it, gives the same scalars however
    often it runs in an instance."""
    if inner.results or nest.results:
        return False
    around = effects_of(nest)
    others = [op for op in nest.body.operations if op is not inner and not op.TERMINATOR]
    return not around.writes_anything and all(_is_steady_read(op, around) for op in others)


def _is_steady_read(op: Operation, around: Effects) -> bool:
    if not all(isinstance(result.type, ScalarType) for result in op.results):
        return False
    effects = effects_of(op)
    is_reading = effects.kinds <= {EffectKind.READ} and not effects.reads_anything
    return is_reading and not any(may_overlap(a, b) for a in effects.reads for b in around.writes)


def observers_of(chain: ExecChain) -> tuple[Observer, ...]:
    """Everybody who looks at the levels of a chain: what stands in a kept boundary runs once an
    instance; memory, states and, where it is written, what the caller owns sees its order; who
    waits for each other acts together."""
    found: dict[Observer, None] = {}
    for place in kept_boundaries(chain):
        nest = chain.nests[place]
        inner = chain.nests[place + 1 : place + 2]
        is_repeatable = bool(inner) and may_repeat(nest, inner[0])
        cut = PrefixCut(chain.starts[place + 1])
        found[Observer(_title(chain, place), "anchor", cut, is_repeatable)] = None
        if initial_of(nest):
            names = ", ".join(result.name or "a state" for result in nest.results)
            found[Observer(names, "owner", _owner_cut(chain, chain.starts[place]))] = None
    for op in chain.nests[0].walk():
        found.update(dict.fromkeys(_lookers(chain, op)))
    for placed in placed_in(chain):
        found.update(dict.fromkeys(placed.observers()))
    return tuple(found)


@record
class Placed:
    """An operation below the first nest of a chain that says where it runs."""

    operation: Operation
    stated: Placement
    name: str
    outside: int
    """the levels around the chain"""
    inside: int
    """the levels of the chain around the operation"""

    def cut_of(self, depth: int) -> PrefixCut | None:
        """A stated depth in the levels of the chain; None where it is not one of these."""
        within = depth - self.outside
        return PrefixCut(within) if 0 <= within <= self.inside else None

    def observers(self) -> Iterator[Observer]:
        """The operation as it looks at the chain: its anchor, and how deep it is spread."""
        anchor, frontier = self.cut_of(self.stated.anchor), self.cut_of(self.stated.frontier)
        if anchor is not None:
            yield Observer(self.name, "anchor", anchor)
        if frontier is not None:
            yield Observer(self.name, "frontier", frontier)


def placed_in(chain: ExecChain) -> tuple[Placed, ...]:
    """The operations of a chain that say where they run, in order."""
    outside = sum(nest.rank for nest in enclosing_nests(chain.nests[0]))
    found: list[Placed] = []
    for op in chain.nests[0].walk():
        stated = op.attributes.get("place")
        if isinstance(stated, Placement):
            around = [nest for nest in chain.nests if nest is not op and nest.is_ancestor_of(op)]
            inside = chain.starts[len(around)]
            found.append(Placed(op, stated, f"{op.NAME} {len(found)}", outside, inside))
    return tuple(found)


def _lookers(chain: ExecChain, op: Operation) -> Iterator[Observer]:
    for effect in op.effects():
        if effect.kind is EffectKind.ALLOCATE and effect.resource is not None:
            yield Observer(effect.resource.name or "memory", "owner", _cut_at(chain, op))
        elif effect.kind in SHARED_EFFECTS and _is_from_outside(chain, effect.resource):
            yield Observer("what the caller sees", "owner", PrefixCut(0))
    if isinstance(op, Synchronize):
        nest = nearest_parallel(op)
        if nest in chain.nests:
            depth = chain.starts[chain.nests.index(nest)]
            yield Observer("who waits", "convergence", PrefixCut(depth))


def _is_from_outside(chain: ExecChain, memory: Value | None) -> bool:
    if memory is None:
        return True
    block = base_of(memory).defining_block
    holder = None if block is None else block.parent_op
    return holder is None or not chain.nests[0].is_ancestor_of(holder)


def _cut_at(chain: ExecChain, op: Operation) -> PrefixCut:
    """The owner of memory that an operation makes."""
    inside = [nest for nest in chain.nests if nest.is_ancestor_of(op)]
    return _owner_cut(chain, chain.starts[len(inside)])


def _owner_cut(chain: ExecChain, depth: int) -> PrefixCut:
    return owner_at(chain.axes[:depth]).cut


def _title(chain: ExecChain, place: int) -> str:
    """What an anchor is called: the operations there that do something."""
    block = chain.nests[place].regions[-1].block
    inner = chain.nests[place + 1] if place + 1 < len(chain.nests) else None
    names = dict.fromkeys(
        op.NAME
        for op in block.operations
        if op is not inner and not op.TERMINATOR and not is_computation(op)
    )
    name = chain.structure.levels[chain.starts[place + 1] - 1].name
    return f"{', '.join(names)} in {name}" if names else f"the body of {name}"


# What a function remembers ----------------------------------------------------------------------


def applied_remap(
    remap: ExecRemap, observers: Iterable[Observer], reanchors: Iterable[Reanchor] = ()
) -> AppliedRemap:
    """The record of a remap that was applied for these observers."""
    moved = {entry.observer: entry.cut.depth for entry in reanchors}
    names, whole = remap.symbols, remap.formula
    laws = {*remap.laws}
    depth = remap.new.depth, remap.old.depth
    return AppliedRemap(
        old=tuple(map(_level, remap.old.levels)),
        new=tuple(map(_level, remap.new.levels)),
        map=AffineMap(depth[0], len(names), remap.traced),
        active=_slacks(
            depth[0], len(names), (c for c in whole.domain.constraints if c not in laws)
        ),
        wanted=_slacks(
            depth[1], len(names), (c for c in remap.wanted.constraints if c not in laws)
        ),
        steps=remap.provenance,
        observers=tuple(
            RemapObserver(one.name, one.kind, one.cut.depth, one.is_repeatable, moved.get(one))
            for one in observers
        ),
        symbols=names,
        definitions=tuple(
            RemapSymbol(
                entry.name, AffineMap(0, len(entry.arguments), (entry.expression,)), entry.arguments
            )
            for entry in remap.new.definitions
        ),
    )


def _level(level: ExecLevel) -> RemapLevel:
    return RemapLevel(
        level.identity,
        level.name,
        level.kind,
        level.extent,
        level.scope,
        level.nest,
        level.policy,
    )


def _slacks(rank: int, n_symbols: int, constraints: Iterable[Constraint]) -> AffineMap:
    """Constraints as formulas that are at least 0."""
    found: list[IndexExpr] = []
    for constraint in constraints:
        found.append(constraint.expression)
        if constraint.is_equality:
            found.append(constraint.expression * -1)
    return AffineMap(rank, n_symbols, tuple(found))


def remap_of_record(
    applied: AppliedRemap,
) -> tuple[ExecRemap, tuple[Observer, ...], tuple[Reanchor, ...]]:
    """The remap that a record says was applied, for whom, and who was moved. Raises a `TileError`
    where the record is none of a remap."""
    definitions = tuple(map(_definition, applied.definitions))
    old = ExecStructure(tuple(map(level_of_record, applied.old)))
    new = ExecStructure(tuple(map(level_of_record, applied.new)), definitions)
    names = applied.symbols
    remap = ExecRemap(
        old,
        new,
        Expressions(new.space, old.space, applied.map.results, names),
        _set(new.space, applied.active, names),
        _set(old.space, applied.wanted, names),
        applied.steps,
    )
    observers = tuple(
        Observer(one.name, one.kind, PrefixCut(one.depth), one.repeatable)  # type: ignore[arg-type]  # `check` refuses other kinds
        for one in applied.observers
    )
    moved = tuple(
        Reanchor(observer, PrefixCut(one.moved))
        for observer, one in zip(observers, applied.observers, strict=True)
        if one.moved is not None
    )
    return remap, observers, moved


def _definition(entry: RemapSymbol) -> Definition:
    meaning = entry.meaning
    if (meaning.n_dims, meaning.n_syms, len(meaning.results)) != (0, len(entry.arguments), 1):
        raise VerifyError(
            f"{entry.name} is said to be {meaning} of {', '.join(entry.arguments) or 'nothing'}",
            remedy="give one formula over the names that it is made of",
        )
    return Definition(entry.name, meaning.results[0], entry.arguments)


def level_of_record(level: RemapLevel) -> ExecLevel:
    """A level as a record says it is."""
    return ExecLevel(
        level.identity,
        level.name,
        level.kind,  # type: ignore[arg-type]  # refused by the level where it is none
        level.extent,
        level.scope,
        level.nest,
        level.policy,
    )


def _set(space: Space, slacks: AffineMap, names: tuple[str, ...]) -> IndexSet:
    return IndexSet(space, tuple(map(Constraint, slacks.results)), names)


@lru_cache(maxsize=_MOST_JUDGED)
def proofs_of_record(applied: AppliedRemap) -> tuple[RemapProof, ...]:
    """The proofs of a remap that a record says was applied. Raises a `TileError` where a law is not
    proven, or the record is none of a remap; what is proven is proven once."""
    return check(*remap_of_record(applied))


def remaps_of(function: Function) -> tuple[AppliedRemap, ...]:
    """The remaps that were applied to a function, in order."""
    found = function.attributes.get("remaps", ())
    listed = found if isinstance(found, tuple) else ()
    return tuple(one for one in listed if isinstance(one, AppliedRemap))
