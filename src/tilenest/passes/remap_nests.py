"""Nests rebuilt after their levels were rearranged.

In: a chain of nests, a remap of its levels that is proven, and the depths at which what stands
between the nests goes. Out: the module with new nests in place of the old ones. Between two kept
places, the old nests of a stretch are replaced by the new levels of the stretch; states are handed
through all of them. Old coordinates are computed where a stretch ends, from the new ones; a
predicate becomes a condition right inside the last level that it reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, groupby, pairwise
from math import prod
from typing import Any

from tilenest.analysis import (
    ExecChain,
    constant_of,
    initial_of,
    is_computation,
    is_defined_above,
    nearest_parallel,
    range_of,
)
from tilenest.dialects import (
    If,
    Nest,
    Parallel,
    Pipeline,
    PipelineSchedule,
    Synchronize,
    Yield,
)
from tilenest.errors import RemapError
from tilenest.execution import MOST_INSTANCES, Definition, ExecLevel, ExecRemap
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    BlockArgument,
    Builder,
    Operation,
    OpResult,
    Region,
    Rewriter,
    Value,
    clone_operation,
)
from tilenest.layouts import Const, Constraint, DimRef, IndexExpr, Mul, Sym
from tilenest.passes.index_ops import apply_scalar, emit_index, index_number
from tilenest.passes.loop_counts import emit_count
from tilenest.passes.remap_attributes import Sources, class_of, show_laws
from tilenest.records import record, replace


@record
class Stretch:
    """The old nests from `first` to `last`, and the new levels from `start` to `end`."""

    first: int
    last: int
    start: int
    end: int
    runs: tuple[tuple[ExecLevel, ...], ...]
    """the new levels, one entry a nest"""
    is_unchanged: bool
    attributes: tuple[Mapping[str, Any], ...] = ()
    """of the new nests, where they are to be built"""


def stretches_of(
    chain: ExecChain, remap: ExecRemap, depths: Mapping[int, int]
) -> tuple[Stretch, ...]:
    """The parts of a remap; `depths` says for each kept nest how deep its inside is now."""
    found = []
    first = start = 0
    for last, end in sorted(depths.items()):
        if end < start:
            raise RemapError(
                f"the remap ({remap}) turns nests inside out",
                remedy="keep the levels around each operation outermost",
            )
        runs = _runs(remap.new.levels[start:end])
        is_unchanged = first == last and _is_unchanged(chain, remap, first, start, end)
        found.append(Stretch(first, last, start, end, runs, is_unchanged))
        first, start = last + 1, end
    for part in found:
        _check(chain, remap, part)
    return tuple(
        part if part.is_unchanged else replace(part, attributes=_attributes(chain, remap, part))
        for part in found
    )


def _attributes(chain: ExecChain, remap: ExecRemap, part: Stretch) -> tuple[Mapping[str, Any], ...]:
    """What the new nests of a stretch are said to be."""
    sources = Sources(chain, remap, part.first, part.last, part.end)
    starts = accumulate(map(len, part.runs), initial=part.start)
    return tuple(
        sources.attributes(start, run) for start, run in zip(starts, part.runs, strict=False)
    )


def _runs(levels: Sequence[ExecLevel]) -> tuple[tuple[ExecLevel, ...], ...]:
    """Levels of one nest that follow each other."""

    def nest(level: ExecLevel) -> tuple[object, ...]:
        return level.nest, "" if level.nest else level.identity, level.family

    return tuple(tuple(run) for _, run in groupby(levels, key=nest))


def _is_unchanged(chain: ExecChain, remap: ExecRemap, nest: int, start: int, end: int) -> bool:
    """Whether new levels are those of an old nest, and nothing else asks for their coordinates."""
    first, last = chain.starts[nest : nest + 2]
    if remap.new.levels[start:end] != chain.structure.levels[first:last]:
        return False
    if list(remap.traced[first:last]) != [DimRef(place) for place in range(start, end)]:
        return False
    results = remap.formula.results
    others = [*results[:first], *results[last:], *(c.expression for c in remap.active.constraints)]
    own = frozenset(range(start, end))
    return not any(own & expression.used_dims() for expression in others)


def _check(chain: ExecChain, remap: ExecRemap, part: Stretch) -> None:
    """Refuse a stretch that cannot be built."""
    if part.is_unchanged:
        return
    old = chain.nests[part.first : part.last + 1]
    is_whole = len(old) == len(part.runs) == 1 and not predicates_of(remap, part.start, part.end)
    is_parallel = any(run[0].kind == "parallel" for run in part.runs)
    for nest in old:
        if _is_staged(nest):
            raise RemapError(
                "the levels of a pipeline with stages cannot be rearranged: the dependences of "
                "its stages count iterations",
                remedy="rearrange the levels around it, or use a serial nest",
                location=nest.location,
            )
        if len(nest.regions) > 1:
            raise RemapError(
                "the levels of a reduction with a lift cannot be rearranged: both of its bodies "
                "have its levels",
                remedy="rearrange the levels around it, or write the lift into its update",
                location=nest.location,
            )
        if isinstance(nest, Parallel) and nest.initial and not is_whole:
            raise RemapError(
                f"the parallel that updates {nest.results[0].name or 'a tile'} has to stay one "
                "nest of its own, without a tail",
                remedy="use factors that divide the extents, and fuse it with nothing else",
            )
    waiting = _waiting(chain)
    if waiting and not (is_whole and old[0] in waiting) and (is_parallel or waiting & {*old}):
        raise RemapError(
            f"the remap ({remap}) changes which instances wait for each other at exec.sync",
            remedy="keep the parallel nest around it whole, and put no other one inside",
        )
    is_serial = initial_of(old[0]) and not isinstance(old[0], Parallel)
    if is_serial and is_parallel:
        raise RemapError(
            f"the remap ({remap}) puts a parallel level where states are handed on",
            remedy="move the parallel level out of the nest that carries states",
        )


def _is_staged(nest: Nest) -> bool:
    """Whether something counts the iterations of a pipeline, or of what was one."""
    if any(isinstance(value, PipelineSchedule) for value in nest.attributes.values()):
        return True
    return isinstance(nest, Pipeline) and (nest.dependences is not None or len(nest.regions) > 1)


def _waiting(chain: ExecChain) -> set[Nest | None]:
    """The nests whose instances wait for each other in the chain: those of the chain, or what is
    around it; None is the function."""
    nests = [nearest_parallel(op) for op in chain.nests[0].walk() if isinstance(op, Synchronize)]
    return {
        nest
        for nest in nests
        if nest is None or nest in chain.nests or not chain.nests[0].is_ancestor_of(nest)
    }


def predicates_of(remap: ExecRemap, start: int, end: int) -> list[Constraint]:
    """The predicates whose last coordinate is that of a level from `start` on, before `end`."""
    return [
        constraint
        for constraint in remap.active.constraints
        if start < max(constraint.expression.dim_mask.bit_length(), 1) <= end
    ]


class ChainBuilder:
    """Builds the new nests of one chain."""

    def __init__(
        self,
        chain: ExecChain,
        remap: ExecRemap,
        definitions: Iterable[Definition],
        rewriter: Rewriter,
    ) -> None:
        self.chain = chain
        self.remap = remap
        self.rewriter = rewriter
        self.names = remap.symbols
        self.results = remap.formula.results
        self.before = rewriter.builder_before(chain.nests[0])
        self.definitions = {entry.name: entry for entry in definitions}
        self.extents: dict[str, Value] = {}
        self.hoisted: dict[Value, Value] = {}
        self.counters: list[Value] = []
        """of the new levels, from the outside in"""
        self.made: list[Nest] = []

    def build(self, parts: Sequence[Stretch]) -> None:
        """Put new nests in the place of the old ones."""
        nests = self.chain.nests
        domains = [v for nest in nests for v in (*nest.lower, *nest.upper, *nest.step)]
        # What stands in front of the outermost nest has to be there before anything moves.
        self._prepare(parts)
        for part in parts:
            if part.is_unchanged:
                self.counters += nests[part.first].body.arguments[: part.end - part.start]
            else:
                self._stretch(part)
        for value in dict.fromkeys((*domains, *self.extents.values(), *self.hoisted.values())):
            self._drop(value)
        for nest in self.made:
            show_laws(nest, self.remap, self.rewriter)

    def _prepare(self, parts: Sequence[Stretch]) -> None:
        for name in self.names:
            if name in self.definitions or name in self.chain.counted:
                self._extent(name)
        for part in parts:
            if not part.is_unchanged:
                for nest in self.chain.nests[part.first : part.last + 1]:
                    for value in (*nest.lower, *nest.step):
                        self._hoist(value)

    # Stretches -------------------------------------------------------------------------------

    def _stretch(self, part: Stretch) -> None:
        outer = self.chain.nests[part.first]
        states = initial_of(outer)
        builder = self.rewriter.builder_before(outer)
        holders: list[Operation] = []
        block: Block | None = None
        start = part.start
        for run, attributes in zip(part.runs, part.attributes, strict=True):
            nest = self._nest(builder, run, attributes, part, states)
            holders.append(nest)
            block = nest.body
            self.counters += block.arguments[: len(run)]
            states = list(block.arguments[len(run) :])
            builder = self.rewriter.builder_at_end(block)
            guard = self._guard(builder, start, start + len(run), states)
            if guard is not None:
                holders.append(guard)
                block = guard.body
                builder = self.rewriter.builder_at_end(block)
            start += len(run)
        if block is None:
            self._dissolve(part, states)
            return
        self._move_in(part, builder, states)
        self._splice(self.chain.nests[part.last].body, block, None)
        for holder, inner in pairwise(holders):
            self.rewriter.builder_at_end(holder.body).insert(Yield(values=list(inner.results)))
        self.rewriter.replace_op(outer, list(holders[0].results))
        self.made += [holder for holder in holders if isinstance(holder, Nest)]

    def _nest(
        self,
        builder: Builder,
        run: Sequence[ExecLevel],
        attributes: Mapping[str, Any],
        part: Stretch,
        states: Sequence[Value],
    ) -> Nest:
        """A new nest, with an empty body."""
        old = self.chain.nests[part.first : part.last + 1]
        fields = {"initial": states, **attributes} if states else attributes
        block = _body(run, _states(old[-1]))
        zero, one = index_number(builder, 0), index_number(builder, 1)
        nest = class_of(run[0])(
            lower=[zero] * len(run),
            upper=[self._count(builder, level.extent) for level in run],
            step=[one] * len(run),
            result_types=[state.type for state in states],
            regions=[Region([block])],
            **fields,
        )
        for made, named in zip(nest.results, old[0].results, strict=False):
            made.name = named.name
        return builder.insert(nest)

    def _guard(self, builder: Builder, start: int, end: int, states: Sequence[Value]) -> If | None:
        """The condition under which the levels from `start` to `end` have an instance here."""
        whole: Value | None = None
        for constraint in predicates_of(self.remap, start, end):
            expression = constraint.expression
            names = self.remap.active.symbols
            value = self._index(builder, expression, names)
            function = "eq" if constraint.is_equality else "ge"
            condition = apply_scalar(
                builder, function, value, index_number(builder, 0), result_type=BOOL
            )
            if whole is not None:
                condition = apply_scalar(builder, "and", whole, condition, result_type=BOOL)
            whole = condition
        if whole is None:
            return None
        blocks = Block(), Block()
        guard = If(
            condition=whole,
            result_types=[state.type for state in states],
            regions=[Region([block]) for block in blocks],
        )
        Builder(blocks[1]).insert(Yield(values=list(states)))
        return builder.insert(guard)

    def _dissolve(self, part: Stretch, states: Sequence[Value]) -> None:
        """Put the only instance of a stretch without levels where its nest stood."""
        outer, last = self.chain.nests[part.first], self.chain.nests[part.last]
        block = outer.parent
        assert block is not None
        self._move_in(part, self.rewriter.builder_before(outer), states)
        handed = last.body.terminator.operands
        self.rewriter.erase(last.body.terminator)
        self._splice(last.body, block, outer)
        self.rewriter.replace_op(outer, handed)

    def _move_in(self, part: Stretch, builder: Builder, states: Sequence[Value]) -> None:
        """Move what stands between the nests of a stretch to the builder, and let new values stand
        for the arguments of all of them."""
        assert builder.block is not None
        for place in range(part.first, part.last + 1):
            nest = self.chain.nests[place]
            first = self.chain.starts[place]
            for axis, argument in enumerate(nest.body.arguments[: nest.rank]):
                if argument.has_uses:
                    value = self._coordinate(builder, first + axis, part.end)
                    self._take_name(value, argument)
                    self.rewriter.replace_all_uses(argument, value)
            for argument, state in zip(_states(nest), states, strict=True):
                self.rewriter.replace_all_uses(argument, state)
            if place < part.last:
                following = self.chain.nests[place + 1]
                for op in list(nest.body.operations):
                    if op is not following and not op.TERMINATOR:
                        self.rewriter.splice(op, op, builder.block, builder.before)

    def _splice(self, source: Block, target: Block, before: Operation | None) -> None:
        first, last = source.operations.first, source.operations.last
        if first is not None and last is not None:
            self.rewriter.splice(first, last, target, before)

    def _take_name(self, value: Value, old: Value) -> None:
        if value.name is None and old.name is not None:
            self.rewriter.set_name(value, old.name)

    # Values ----------------------------------------------------------------------------------

    def _coordinate(self, builder: Builder, level: int, depth: int) -> Value:
        """An old index, from the new coordinates above a depth."""
        bounds = self.chain.induction(self.chain.axes[level])
        rank = self.remap.new.depth
        dims = [DimRef(place) if place < depth else Const(0) for place in range(rank)]
        symbols = [Sym(place) for place in range(len(self.names))]
        counter = self._index(builder, self.results[level].substitute(dims, symbols), self.names)
        lower, step = constant_of(bounds.lower), constant_of(bounds.step)
        if step != 1:
            counter = apply_scalar(builder, "mul", counter, self._hoist(bounds.step))
        if lower != 0:
            counter = apply_scalar(builder, "add", counter, self._hoist(bounds.lower))
        return counter

    def _index(self, builder: Builder, expression: IndexExpr, names: Sequence[str]) -> Value:
        """The value of a formula over new coordinates and names of extents."""
        used = sorted(expression.used_dims())
        symbols = sorted(expression.used_syms())
        values = [self.counters[dim] for dim in used]
        values += [self._extent(names[place]) for place in symbols]
        dims: list[IndexExpr] = [
            Sym(used.index(d)) if d in used else Const(0) for d in range(self.remap.new.depth)
        ]
        places: list[IndexExpr] = [
            Sym(len(used) + symbols.index(s)) if s in symbols else Const(0)
            for s in range(len(names))
        ]
        return emit_index(builder, expression.substitute(dims, places), values)

    def _count(self, builder: Builder, extent: int | str) -> Value:
        return index_number(builder, extent) if isinstance(extent, int) else self._extent(extent)

    def _extent(self, name: str) -> Value:
        """The value of a name of an extent, in front of the outermost nest."""
        if name not in self.extents:
            entry = self.definitions.get(name)
            if entry is None:
                self.extents[name] = self._trips(name)
            else:
                arguments = [self._extent(argument) for argument in entry.arguments]
                self.extents[name] = self._defined(entry.expression, arguments)
        return self.extents[name]

    def _defined(self, expression: IndexExpr, arguments: Sequence[Value]) -> Value:
        """The value of a formula of extents; a product of them is bounded."""
        if not isinstance(expression, Mul):
            return emit_index(self.before, expression, arguments)
        left = self._defined(expression.left, arguments)
        right = self._defined(expression.right, arguments)
        ends = [known[1] for known in map(range_of, (left, right)) if known is not None]
        if len(ends) < 2 or prod(ends) > MOST_INSTANCES:
            most = index_number(self.before, MOST_INSTANCES)
            room = apply_scalar(self.before, "floordiv", most, right)
            left = apply_scalar(self.before, "minimum", left, room)
        return apply_scalar(self.before, "mul", left, right)

    def _trips(self, name: str) -> Value:
        """How many instances an axis has."""
        bounds = self.chain.induction(self.chain.counted[name])
        step = constant_of(bounds.step)
        if not isinstance(step, int) or step == 0:
            raise RemapError(
                f"the step of the levels with {name} instances is known at run time only",
                remedy="use a step that is a number",
            )
        lower, upper = self._hoist(bounds.lower), self._hoist(bounds.upper)
        return emit_count(self.before, lower, upper, self._hoist(bounds.step))

    def _hoist(self, value: Value) -> Value:
        """A steady value, available in front of the outermost nest."""
        if is_defined_above(value, self.chain.nests[0]):
            return value
        if value not in self.hoisted:
            assert isinstance(value, OpResult)
            values = {operand: self._hoist(operand) for operand in value.owner.operands}
            copy = self.before.insert(clone_operation(value.owner, dict(values)))
            self.hoisted[value] = copy.results[value.index]
        return self.hoisted[value]

    def _drop(self, value: Value) -> None:
        """Erase what computed the domains of the old nests, where nothing else needs it."""
        if not isinstance(value, OpResult) or value.owner.parent is None:
            return
        op = value.owner
        if is_computation(op) and not any(result.has_uses for result in op.results):
            operands = op.operands
            self.rewriter.erase(op)
            for operand in operands:
                self._drop(operand)


def _body(levels: Sequence[ExecLevel], states: Sequence[Value]) -> Block:
    """An empty body: an index a level, then states as they are named in another one."""
    builder = Builder(Block())
    for level in levels:
        builder.add_argument(INDEX, level.name)
    for state in states:
        builder.add_argument(state.type, state.name)
    return builder.block


def _states(nest: Nest) -> list[BlockArgument]:
    return nest.body.arguments[nest.rank :]
