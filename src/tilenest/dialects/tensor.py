"""Whole-domain work: `tensor.map_reduce_post`, and the compiler's buffers.

The op stands on values before bufferization and on destinations after. It carries the domain, how
each operand is addressed and, once planned, the schedule of its loops; nests are built from it.
"""

from __future__ import annotations

from tilenest.dialects.contracts import MERGES, law_of
from tilenest.dialects.iterations import rank_of
from tilenest.dialects.schedule import Access, ResultSpec, Sched
from tilenest.dialects.stages import LIFTED, SCHEDULED
from tilenest.ir import (
    COMBINE,
    MOVE,
    AtomRequest,
    Block,
    BufType,
    Effect,
    EffectKind,
    Iteration,
    IterationDim,
    MapUse,
    Operation,
    OwnAccesses,
    OwnEffects,
    RegionUse,
    ScalarType,
    TileType,
    Touch,
    Type,
    Value,
    ViewType,
    attribute,
    element_dtype,
    open_attribute,
    operand,
    variadic,
)
from tilenest.layouts import AffineMap


class MapReducePost(Operation):
    """Computes results over one domain of loops: map, fold, then an epilogue per folded cell.

        domain   static `extents` of loop dims d0..dn; `upper` lets dim `clipped[i]` end at a
                 run-time bound: whether a point behind it is visited makes no difference
        inputs   views, bufs (tiles before bufferization) or scalars, read at
                 `input_access[i].map(d; symbols)`
        fold     region 0: (n indices, one element per input, one state per folded result)
                           -> one value per result, then one bool per masked result
        seeds    one per folded result, read at `seed_access`: its state before the first
                 contribution
        post     region 1+j for the j-th folded result:
                           (n indices, final state, its `posts` elements) -> stored value
        outputs  destinations, one per result, written at `output_access[j].map(d; symbols)`; none
                 on values, where the op has results instead (tile, or scalar when nothing is kept)

    A pointwise result's region value is stored directly. A folded result whose folded extents are 0
    is post(seed). Contributions of one cell are visited in lexicographic order of the folded dims;
    only a tree policy with a proven `merge` lets a schedule regroup them. Reads of a cell precede
    its write, so an output may be an input or a seed when both use the same map. Accesses of
    `symbols` are index values; all maps share one symbol list.
    """

    NAME = "tensor.map_reduce_post"
    FORMS = (LIFTED, SCHEDULED)
    REGION_USE = RegionUse.ELEMENTWISE
    IS_ISOLATED = True
    inputs = variadic()
    seeds = variadic()
    posts = variadic()
    outputs = variadic()
    symbols = variadic()
    upper = variadic()
    extents = attribute(tuple)
    clipped = attribute(tuple, default=())
    """loop dims that `upper` lets end, in order"""
    input_access = attribute(tuple)
    seed_access = attribute(tuple, default=())
    post_access = attribute(tuple, default=())
    output_access = attribute(tuple, default=())
    specs = attribute(tuple)
    """one ResultSpec per result"""
    sched = attribute(object, default=None)
    """Sched once planned"""
    place = open_attribute(object, default=None)
    """a Placement, or None"""
    repartition = attribute(object, default=None)
    """a `Repartition` where the work holds its input differently, or None"""

    def effects(self) -> OwnEffects:
        read = [value for value in (*self.inputs, *self.seeds, *self.posts) if _is_memory(value)]
        return (
            *(Effect(EffectKind.READ, value) for value in read),
            *(Effect(EffectKind.WRITE, value) for value in self.outputs),
        )

    def accesses(self) -> OwnAccesses:
        """Seeds, operands of epilogues and outputs belong to a result and are touched once for each
        cell of it: dims that the result folds stand at 0."""
        every = tuple(range(self.rank))
        folded = self.folded_results
        owners = [j for j in folded for _ in range(self.spec(j).posts)]
        groups = (
            ("input", self.inputs, [every] * len(self.inputs)),
            ("seed", self.seeds, [self.spec(j).dims for j in folded]),
            ("post", self.posts, [self.spec(j).dims for j in owners]),
            ("output", self.outputs, [self.spec(j).dims for j in range(len(self.outputs))]),
        )
        return tuple(
            self._touch(group, position, value, dims)
            for group, values, kept in groups
            for position, (value, dims) in enumerate(zip(values, kept, strict=True))
            if isinstance(value.type, ViewType | BufType | TileType)
        )

    def _touch(
        self, group: str, position: int, value: Value, dims: tuple[int, ...]
    ) -> Touch[Value]:
        access = self.access(group, position)
        clips = zip(self.clipped, self.upper, strict=True)
        is_output = group == "output"
        return Touch(
            group,
            position,
            value,
            EffectKind.WRITE if is_output else EffectKind.READ,
            access.map,
            access.bounds,
            tuple(extent if d in dims else 1 for d, extent in enumerate(self.extents)),
            tuple(self.symbols),
            tuple((d, end) for d, end in clips if d in dims),
            is_output and self.spec(position).is_masked,
        )

    def map_uses(self) -> tuple[MapUse, ...]:
        groups = (
            ("input", self.inputs),
            ("seed", self.seeds),
            ("post", self.posts),
            ("output", self.outputs),
        )
        return tuple(
            MapUse(f"{group} {place}", access.map, self.rank, len(self.symbols), rank)
            for group, values in groups
            for place, (value, access) in enumerate(
                zip(values, self.attributes[f"{group}_access"], strict=False)
            )
            if isinstance(access, Access) and (rank := _addressed(group, value.type)) is not None
        )

    def iteration(self) -> Iteration:
        """A dim that any result folds is reduced, in the order that the first such result asks."""
        dims = [IterationDim(extent, self._policy_over(d)) for d, extent in enumerate(self.extents)]
        operands: list[AffineMap | None] = []
        for (name, _), size in zip(self.SPEC.groups, self.segments, strict=True):
            accesses = self.attributes.get(f"{name.removesuffix('s')}_access", (None,) * size)
            operands += [None if access is None else access.map for access in accesses]
        kept = [AffineMap.projection(self.rank, spec.dims) for spec in self.specs]
        symbols = range(*self.SPEC.group_range(self.segments, "symbols"))
        results = tuple(kept) if self.results else ()
        return Iteration(tuple(dims), tuple(operands), results, tuple(symbols))

    def atom_requests(self) -> tuple[AtomRequest | None, ...]:
        """The elements are what the fold region yields for the result."""
        return tuple(map(self._atom_request, range(len(self.specs))))

    def _atom_request(self, result: int) -> AtomRequest | None:
        spec = self.spec(result)
        dtype = element_dtype(self.fold_block.terminator.operands[result].type)
        kept = AffineMap.projection(self.rank, spec.dims)
        if spec.policy is None:
            return AtomRequest(MOVE, dtype, None, "exact", kept)
        if spec.merge is None:
            return None
        # Where every order gives the same number, any will do.
        policy = "unordered_tree" if spec.law.is_exact else spec.policy
        is_exact = spec.merge in MERGES and law_of(spec.merge, dtype).is_exact
        return AtomRequest(COMBINE + spec.merge, dtype, policy, "each", kept, is_exact)

    def _policy_over(self, dim: int) -> str | None:
        return next((spec.policy for spec in self.specs if dim not in spec.dims), None)

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def folded_results(self) -> list[int]:
        """Indices of the results that have a state."""
        return [i for i, spec in enumerate(self.specs) if spec.policy is not None]

    @property
    def fold_block(self) -> Block:
        return self.regions[0].block

    def post_block(self, folded: int) -> Block:
        """Epilogue of the folded-th folded result."""
        return self.regions[1 + folded].block

    def spec(self, result: int) -> ResultSpec:
        spec: ResultSpec = self.specs[result]
        return spec

    def schedule(self) -> Sched:
        assert isinstance(self.sched, Sched), "not scheduled"
        return self.sched

    def access(self, group: str, position: int) -> Access:
        """Access of operand `position` of 'input', 'seed', 'post' or 'output'."""
        access: Access = self.attributes[f"{group}_access"][position]
        return access


class Alloc(Operation):
    """A temporary of the compiler (a BufType), uninitialised, alive in the block that holds it.

    In a stage of a pipeline there is one for each iteration, and they take turns in a ring of as
    many `versions`; what is handed to later stages lives until the last of them has run.
    """

    NAME = "buf.alloc"
    FORMS = (LIFTED, SCHEDULED)
    resource = open_attribute(str, default="auto")
    """the class of memory it is in, or asks for; `auto` leaves it to the plan"""
    base = attribute(object, default=None)
    """the byte it starts at, in what the code that runs it has of this class; None where that is
    not decided"""
    versions = attribute(int, default=1)
    spread = open_attribute(object, default=None)
    """a `Spread` where it is not simply the value, row-major; or None"""

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.ALLOCATE, self.result),)

    def accesses(self) -> OwnAccesses:
        type_ = self.result.type
        assert isinstance(type_, BufType)
        everything = AffineMap.identity(len(type_.shape))
        kind = EffectKind.ALLOCATE
        return (Touch("result", 0, self.result, kind, everything, "proven", type_.shape),)


class Read(Operation):
    """The only element of a rank-0 buf, as a scalar for control flow and index arithmetic."""

    NAME = "buf.read"
    FORMS = (SCHEDULED,)
    buffer = operand()

    def effects(self) -> OwnEffects:
        return (Effect(EffectKind.READ, self.buffer),)

    def accesses(self) -> OwnAccesses:
        element = AffineMap(0, 0, ())
        return (Touch("buffer", 0, self.buffer, EffectKind.READ, element, "proven"),)


def _addressed(group: str, type_: Type) -> int | None:
    """How many coordinates an element of an operand has; None where there is nothing to address."""
    is_written_value = group == "output" and isinstance(type_, ScalarType)
    return None if is_written_value else rank_of(type_)


def _is_memory(value: Value) -> bool:
    return isinstance(value.type, ViewType | BufType)
