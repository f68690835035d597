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
    ObserverKind,
    PrefixCut,
    Reanchor,
    RemapProof,
    check,
)
from tilenest.ir import Block, EffectKind, Function, Operation, ScalarType, Value
from tilenest.layouts import AffineMap, Constraint, Expressions, IndexExpr, IndexSet, Space
from tilenest.records import record

_MOST_JUDGED = 256
_SHARED_EFFECTS = frozenset(
    {EffectKind.WRITE, EffectKind.ATOMIC, EffectKind.SYNCHRONIZE, EffectKind.CALL}
)
"""What others than the instance see, where memory is not its own."""
_CALLER = "what the caller sees"


# Who looks -------------------------------------------------------------------------------------


@record
class Look:
    """Somebody who looks at the levels above a depth, which counts all levels around."""

    kind: ObserverKind
    depth: int
    name: str


def looks_of(op: Operation) -> Iterator[Look]:
    """Who looks at the levels around an operation because of what it does: the owners of memory
    that it makes, or that others see, the group that waits at it, and where it says that it
    runs. That it stands in a nest is not said here."""
    for effect in op.effects():
        if effect.kind is EffectKind.ALLOCATE:
            yield Look("owner", _owner_depth(op), _memory_name(effect.resource))
        elif effect.kind in _SHARED_EFFECTS:
            holder = _holder_of(effect.resource)
            depth = 0 if holder is None else _owner_depth(holder)
            yield Look("owner", depth, _memory_name(effect.resource) if depth else _CALLER)
    if isinstance(op, Synchronize):
        nest = nearest_parallel(op)
        if nest is not None:
            yield Look("convergence", _levels_around(nest), "who waits")
    yield from stated_looks(op)


def stated_looks(op: Operation) -> Iterator[Look]:
    """An operation that says where it runs, and how deep it is spread."""
    stated = op.attributes.get("place")
    if isinstance(stated, Placement):
        yield Look("anchor", stated.anchor, op.NAME)
        yield Look("frontier", stated.frontier, op.NAME)


def _holder_of(memory: Value | None) -> Operation | None:
    """What a memory is made in, or comes into; the caller is None."""
    block = None if memory is None else base_of(memory).defining_block
    return None if block is None else block.parent_op


def _memory_name(memory: Value | None) -> str:
    return (memory is not None and base_of(memory).name) or "memory"


def _levels_around(op: Operation) -> int:
    return sum(nest.rank for nest in enclosing_nests(op))


def _owner_depth(op: Operation) -> int:
    """How deep the owner stands of what belongs to an operation, or to an instance of a nest."""
    owner = op if isinstance(op, Parallel) else nearest_parallel(op)
    return 0 if owner is None else _levels_around(owner) + owner.rank


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
        inner = only_work(block)
        if isinstance(inner, If):
            if not is_guard(inner, states):
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


def only_work(block: Block) -> Operation | None:
    """The one operation of a block that is no computation, if its results are what the block hands
    on, and nobody else sees them."""
    work = [op for op in block.operations if not op.TERMINATOR and not is_computation(op)]
    if len(work) != 1 or list(block.terminator.operands) != list(work[0].results):
        return None
    users = (user for result in work[0].results for user in result.users)
    return work[0] if all(user is block.terminator for user in users) else None


def is_guard(condition: If, states: Sequence[Value]) -> bool:
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
        found.update(dict.fromkeys(_observers_in(chain, op)))
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
        for look in stated_looks(self.operation):
            cut = self.cut_of(look.depth)
            if cut is not None:
                yield Observer(self.name, look.kind, cut)


def placed_in(chain: ExecChain) -> tuple[Placed, ...]:
    """The operations of a chain that say where they run, in order."""
    outside = _levels_around(chain.nests[0])
    found: list[Placed] = []
    for op in chain.nests[0].walk():
        stated = op.attributes.get("place")
        if isinstance(stated, Placement):
            inside = _chain_levels_around(chain, op)
            found.append(Placed(op, stated, f"{op.NAME} {len(found)}", outside, inside))
    return tuple(found)


def _observers_in(chain: ExecChain, op: Operation) -> Iterator[Observer]:
    """Who looks at a chain because of what an operation below its first nest does. Whoever looks
    from above the chain is the caller; from below, it sees the levels as a whole."""
    outside, inside = _levels_around(chain.nests[0]), _chain_levels_around(chain, op)
    for look in looks_of(op):
        depth = look.depth - outside
        if look.kind == "owner":
            name = look.name if depth > 0 else _CALLER
            yield Observer(name, "owner", _owner_cut(chain, max(min(depth, inside), 0)))
        elif look.kind == "convergence" and 0 <= depth < chain.structure.depth:
            yield Observer(look.name, "convergence", PrefixCut(depth))


def _chain_levels_around(chain: ExecChain, op: Operation) -> int:
    around = [nest for nest in chain.nests if nest is not op and nest.is_ancestor_of(op)]
    return chain.starts[len(around)]


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
    depth = remap.new.depth
    return AppliedRemap(
        old=tuple(map(_level, remap.old.levels)),
        new=tuple(map(_level, remap.new.levels)),
        map=AffineMap(depth, len(names), remap.traced),
        active=_slacks(depth, len(names), (c for c in whole.domain.constraints if c not in laws)),
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
