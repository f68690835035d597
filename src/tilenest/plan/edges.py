"""Which values live only inside their consumers: fuse, recompute or materialize, edge by edge.

In: a function of lifted work on values. Out: the producers to inline into every op that reads
them, with a decision each. Consumers are decided first, so that a producer is judged at its sites:
the loop coordinates at which ops that stay (roots) would evaluate it.

A producer is inlined when each site reads it inside its domain, nothing it reads can have changed
by then, and inlining computes no element twice, unless it is cheap: a constant, a plain load (also
read again by a broadcast or a loop), or a little arithmetic without expensive functions (computed
once a root).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from tilenest.analysis import (
    MemoryEffects,
    coincide,
    enclosing,
    formula_of,
    is_same_place,
    may_overlap,
)
from tilenest.decisions import Decision
from tilenest.dialects import (
    SCALAR_FUNCTIONS,
    Access,
    Apply,
    Cast,
    Constant,
    MapReducePost,
)
from tilenest.ir import (
    Asker,
    BufType,
    Function,
    Operation,
    OpResult,
    RegionUse,
    TileType,
    Use,
    Value,
    ViewType,
)
from tilenest.layouts import DimRef, FloorDiv, IndexExpr, Mod, Sym
from tilenest.records import record

_MOST_RECOMPUTED_OPS = 16


@record
class EdgePlan:
    """The producers to inline, and why each producer is or is not."""

    inlined: frozenset[Operation]
    decisions: tuple[Decision, ...]


@record
class _Site:
    """One place that would evaluate a producer: loop dims of the producer over those of `root`."""

    root: MapReducePost
    dims: tuple[IndexExpr, ...]


@dataclass(slots=True)
class _Judge:
    """What is known while the producers are judged, last one first."""

    memory: MemoryEffects
    symbols: dict[Value, Sym] = field(default_factory=dict)
    sites: dict[Operation, list[_Site]] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)

    def symbol(self, value: Value) -> IndexExpr:
        return formula_of(value, lambda leaf: self.symbols.setdefault(leaf, Sym(len(self.symbols))))


def plan_edges(function: Function, ask: Asker) -> EdgePlan:
    """Judge every pointwise producer of a tile."""
    judge = _Judge(ask.get(MemoryEffects, function))
    producers = [op for op in function.walk() if isinstance(op, MapReducePost) and op.results]
    for producer in reversed(producers):
        _judge(producer, judge)
    return EdgePlan(frozenset(judge.sites), tuple(reversed(judge.decisions)))


def _judge(producer: MapReducePost, judge: _Judge) -> None:
    sites: list[_Site] = []
    obstacle = _obstacle_of(producer)
    for result in producer.results:
        for use in result.uses:
            obstacle = obstacle or _obstacle_at(use)
            if obstacle is None:
                sites += _sites_of(producer, result.index, use, judge)
    sites = list(dict.fromkeys(sites))
    obstacle = obstacle or _obstacle_of_sites(producer, sites, judge)
    name = producer.results[0].name
    subject = f"value %{name}" if name else f"value of {producer.NAME}"
    if obstacle is None:
        judge.sites[producer] = sites
        copies = len({site.root for site in sites})
        if not copies:
            return
        choice, other = ("fuse", "materialize") if copies == 1 else ("recompute", "materialize")
        reason = f"{_kind(producer)}, evaluated in {copies} consumer(s)"
    else:
        choice, other, reason = "materialize", "fuse", obstacle
    judge.decisions.append(Decision(subject, choice, other, reason, producer.location))


def _obstacle_of(producer: MapReducePost) -> str | None:
    if producer.folded_results:
        return "it is folded"
    return None


def _obstacle_at(use: Use) -> str | None:
    """Why this use cannot take the producer's region in."""
    user = use.operation
    if not isinstance(user, MapReducePost):
        return f"{user.NAME} needs it whole"
    position = _input_position(use)
    if position is None:
        return "a fold starts from it or an epilogue reads it"
    access = user.access("input", position)
    if access.bounds != "proven":
        return "a consumer reads around it"
    if user.sched is not None and any(isinstance(r, FloorDiv | Mod) for r in access.map.results):
        return "a product reads it as panels"
    return None


def _input_position(use: Use) -> int | None:
    start, stop = use.operation.SPEC.group_range(use.operation.segments, "inputs")
    return use.index - start if start <= use.index < stop else None


def _sites_of(producer: MapReducePost, result: int, use: Use, judge: _Judge) -> Iterator[_Site]:
    user = use.operation
    assert isinstance(user, MapReducePost)
    position = _input_position(use)
    assert position is not None
    access: Access = user.access("input", position)
    axes = producer.spec(result).dims
    symbols = [judge.symbol(value) for value in user.symbols]
    if user in judge.sites:
        outer = judge.sites[user]
    else:
        here = _identity(user.rank)
        outer = [_Site(user, here)]
    for site in outer:
        places = [result.substitute(site.dims, symbols) for result in access.map.results]
        dims = tuple(places[axes.index(d)] for d in range(producer.rank))
        yield _Site(site.root, dims)


def _identity(rank: int) -> tuple[IndexExpr, ...]:
    return tuple(DimRef(d) for d in range(rank))


# Judging sites ---------------------------------------------------------------------------------


def _obstacle_of_sites(producer: MapReducePost, sites: list[_Site], judge: _Judge) -> str | None:
    kind = _kind(producer)
    for site in sites:
        changed = _changed_memory(producer, site, judge)
        if changed is not None:
            return f"view %{changed.name} may be written before the consumer runs"
        if kind in ("constant", "load"):
            continue
        if _repeats(site) > 1:
            return "a consumer would compute each element several times"
        if _is_in_deeper_loop(producer, site.root):
            return "a loop would compute it again"
    if len({(site.root, site.dims) for site in sites}) > 1:
        if kind == "expensive":
            return "several consumers would evaluate an expensive function"
        if _weight(producer) > _MOST_RECOMPUTED_OPS:
            return "several consumers would repeat much arithmetic"
    return None


def _kind(producer: MapReducePost) -> str:
    """'constant', 'load', 'cheap' or 'expensive'."""
    ops = [op for op in producer.fold_block.operations if not op.TERMINATOR]
    if any(isinstance(op, Apply) and SCALAR_FUNCTIONS[op.function].is_expensive for op in ops):
        return "expensive"
    if len(producer.inputs) <= 1 and all(isinstance(op, Constant | Cast) for op in ops):
        return "load" if producer.inputs else "constant"
    if not any(isinstance(value.type, TileType | ViewType) for value in producer.inputs):
        return "constant" if len(ops) <= 4 else "cheap"
    return "cheap"


def _weight(producer: MapReducePost) -> int:
    """Region ops of the producer and of the pointwise producers behind it."""
    seen = {producer}
    pending = [producer]
    total = 0
    while pending:
        work = pending.pop()
        total += sum(not isinstance(op, Constant) for op in work.fold_block.operations) - 1
        for value in work.inputs:
            owner = value.owner if isinstance(value, OpResult) else None
            is_pointwise = isinstance(owner, MapReducePost) and not owner.folded_results
            if isinstance(owner, MapReducePost) and is_pointwise and owner not in seen:
                seen.add(owner)
                pending.append(owner)
    return total


def _repeats(site: _Site) -> int:
    """How often the root's loops visit one element of the producer."""
    used = frozenset[int]().union(*(expr.used_dims() for expr in site.dims))
    repeats = 1
    for dim, extent in enumerate(site.root.extents):
        if dim not in used:
            repeats *= max(1, extent)
    return repeats


def _is_in_deeper_loop(producer: Operation, root: Operation) -> bool:
    """Whether a loop that does not hold the producer repeats the root."""
    deeper = takewhile(lambda owner: not owner.is_ancestor_of(producer), enclosing(root))
    return any(owner.REGION_USE is RegionUse.REPEATED for owner in deeper)


def _changed_memory(producer: MapReducePost, site: _Site, judge: _Judge) -> Value | None:
    """What the producer reads that may hold other elements when the site's root reads it."""
    symbols = [judge.symbol(value) for value in producer.symbols]
    for i, view in enumerate(producer.inputs):
        if not isinstance(view.type, ViewType | BufType):
            continue
        if judge.memory.is_written_between(view, producer, site.root):
            return view
        map_ = producer.access("input", i).map
        place = tuple(result.substitute(site.dims, symbols) for result in map_.results)
        if _overwrites(site.root, view, place, judge):
            return view
    return None


def _overwrites(
    root: MapReducePost, view: Value, place: tuple[IndexExpr, ...], judge: _Judge
) -> bool:
    """Whether the root may write an element of the view before another of its points reads it.

    One view read and written at the same coordinates is safe: each point reads before it writes.
    """
    symbols = [judge.symbol(value) for value in root.symbols]
    for j, output in enumerate(root.outputs):
        if not may_overlap(view, output):
            continue
        results = root.access("output", j).map.results
        written = tuple(r.substitute(_identity(root.rank), symbols) for r in results)
        is_same = coincide(view, output) and is_same_place(written, place, root.extents)
        if not is_same or root.spec(j).policy is not None:
            return True
    return False
