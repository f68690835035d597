"""Rules `OP17` to `OP23`: map_reduce_post with its accesses, results, regions and schedule; bufs.

In: operations of the tensor dialect. Out: findings. Later rules about one op hold back where an
earlier one already failed, so that one mistake is one diagnostic.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.dialects import (
    LOOP_POLICIES,
    REDUCTION_POLICIES,
    Access,
    Alloc,
    Loop,
    MapReducePost,
    Read,
    ResultSpec,
    Sched,
    rank_of,
)
from tilenest.ir import (
    BOOL,
    INDEX,
    BufType,
    TileType,
    Type,
    Value,
    ViewType,
    describe_attribute,
    describe_type,
)
from tilenest.verify.expectations import (
    Finding,
    Findings,
    describe_types,
    element_type,
    expect_choice,
    expect_index,
    expect_region,
    expect_regions,
    expect_scalar_block,
    expect_types,
    op_rule,
    types_of,
)

ACCESS_BOUNDS = ("proven", "zero", "assume")


def _domain(op: MapReducePost) -> Findings:
    extents = op.extents
    if not all(type(extent) is int and extent >= 0 for extent in extents):
        yield f"`extents` is {extents}", "give one static extent per loop dim"
    clipped = op.clipped
    is_ordered = all(type(dim) is int and 0 <= dim < op.rank for dim in clipped)
    if not is_ordered or sorted(set(clipped)) != list(clipped):
        yield f"`clipped` is {clipped}", "list distinct loop dims in order"
    if len(op.upper) != len(clipped):
        yield f"{len(op.upper)} bounds clip {len(clipped)} dims", "give one bound per clipped dim"
    yield from expect_index("`upper`", op.upper)
    yield from expect_index("symbol", op.symbols)


def _accesses(op: MapReducePost) -> Findings:
    groups = (("input", op.inputs), ("seed", op.seeds), ("post", op.posts), ("output", op.outputs))
    for name, values in groups:
        accesses = op.attributes[f"{name}_access"]
        if len(accesses) != len(values):
            yield f"{len(values)} {name}s have {len(accesses)} accesses", "give one access each"
            continue
        for place, (value, access) in enumerate(zip(values, accesses, strict=True)):
            yield from _access(f"{name} {place}", value, access)
    for place, value in enumerate(op.outputs):
        if not isinstance(value.type, ViewType | BufType):
            yield f"output {place} is a {describe_type(value.type)}", "write to a view or buf"
        for name, values in groups[:3]:
            for other, read in enumerate(values):
                if read is value and 0 not in op.extents and not _is_alike(op, name, other, place):
                    yield (
                        f"{name} {other} reads other cells of what output {place} writes",
                        "use one map for both, or read a copy",
                    )


def _is_alike(op: MapReducePost, group: str, place: int, output: int) -> bool:
    """Whether an operand and an output are addressed by the same map."""
    accesses = op.attributes[f"{group}_access"]
    if place >= len(accesses) or output >= len(op.output_access):
        return True
    maps = [getattr(access, "map", None) for access in (accesses[place], op.output_access[output])]
    return maps[0] == maps[1]


def _access(what: str, value: Value, access: object) -> Findings:
    if not isinstance(access, Access):
        yield f"the access of {what} is {describe_attribute(access)}", "use an Access"
        return
    yield from expect_choice(f"the bounds of {what}", access.bounds, ACCESS_BOUNDS)
    if rank_of(value.type) is None:
        yield f"{what} is a {describe_type(value.type)}", "use a view, buf, tile or scalar"


def _results(op: MapReducePost) -> Findings:
    if not all(isinstance(spec, ResultSpec) for spec in op.specs):
        yield "`specs` holds something else", "use ResultSpec records"
        return
    wrong = [finding for place in range(len(op.specs)) for finding in _result(op, place)]
    yield from wrong
    if wrong:
        return
    count = len(op.outputs) or len(op.results)
    if count != len(op.specs) or (op.outputs and op.results):
        yield (
            f"{len(op.specs)} specs, {len(op.outputs)} outputs and {len(op.results)} results",
            "give one output per spec, or one result per spec before bufferization",
        )
        return
    if len(op.seeds) != len(op.folded_results):
        yield (
            f"{len(op.seeds)} seeds for {len(op.folded_results)} folded results",
            "give every folded result its seed",
        )
    posts = sum(spec.posts for spec in op.specs)
    if posts != len(op.posts):
        yield f"the specs count {posts} posts of {len(op.posts)}", "count every post once"
    if _first(_accesses(op)) is None:
        yield from _kept_only(op)
    for place, result in enumerate(op.results):
        shape = result.type.shape if isinstance(result.type, TileType) else ()
        kept = tuple(op.extents[dim] for dim in op.spec(place).dims)
        if shape != kept:
            yield (
                f"result {place} is a {describe_type(result.type)}",
                f"its extents are those of the kept dims, {kept}",
            )


def _result(op: MapReducePost, place: int) -> Findings:
    spec = op.spec(place)
    is_valid = all(0 <= dim < op.rank for dim in spec.dims)
    if not is_valid or len(set(spec.dims)) != len(spec.dims):
        yield f"result {place} keeps the dims {spec.dims}", "name distinct loop dims"
    if spec.policy is None:
        if len(spec.dims) != op.rank:
            yield f"result {place} is pointwise over {spec.dims}", "keep every dim, or fold"
        if spec.posts:
            yield f"result {place} is pointwise and has posts", "give it a contract"
        return
    yield from expect_choice(f"the policy of result {place}", spec.policy, REDUCTION_POLICIES)
    if spec.is_masked:
        yield f"result {place} is folded and masked", "mask pointwise results only"


def _kept_only(op: MapReducePost) -> Findings:
    """Posts and outputs of a folded result move with the dims it keeps only."""
    post = 0
    for place in op.folded_results:
        spec = op.spec(place)
        addressed = [("output", place)] if op.outputs and place < len(op.output_access) else []
        stop = min(post + spec.posts, len(op.post_access))
        addressed += [("post", i) for i in range(post, stop)]
        post += spec.posts
        for group, i in addressed:
            used = set[int]().union(*(e.used_dims() for e in op.access(group, i).map.results))
            if not used <= set(spec.dims):
                yield f"{group} {i} moves with a folded dim", f"use the kept dims {spec.dims} only"


def _stored_types(op: MapReducePost) -> list[Type]:
    return [element_type(value.type) or value.type for value in op.outputs or op.results]


def _regions(op: MapReducePost) -> Findings:
    if _first(_domain(op), _accesses(op), _results(op)) is not None:
        return
    wrong = list(expect_regions(op, 1 + len(op.folded_results)))
    yield from wrong
    if wrong:
        return
    indices: list[Type] = [INDEX] * op.rank
    stored = _stored_types(op)
    states = dict(zip(op.folded_results, _elements(op.seeds), strict=True))
    masks: list[Type] = [BOOL for spec in op.specs if spec.is_masked]
    handed = [states.get(place, stored[place]) for place in range(len(op.specs))] + masks
    arguments = indices + _elements(op.inputs) + list(states.values())
    yield from expect_region(op, 0, arguments, handed)
    posts = _elements(op.posts)
    for folded, (place, state) in enumerate(states.items(), start=1):
        own, posts = posts[: op.spec(place).posts], posts[op.spec(place).posts :]
        yield from expect_region(op, folded, [*indices, state, *own], [stored[place]])
    for region in op.regions:
        yield from expect_scalar_block(region.block)


def _elements(values: Sequence[Value]) -> list[Type]:
    return [element_type(value.type) or value.type for value in values]


def _first(*findings: Findings) -> Finding | None:
    return next((finding for group in findings for finding in group), None)


def _coverage(op: MapReducePost) -> Findings:
    sched = op.sched
    if sched is None or _first(_domain(op), _accesses(op), _results(op)) is not None:
        return
    if not isinstance(sched, Sched):
        yield f"`sched` is {describe_attribute(sched)}", "use a Sched"
        return
    last: dict[int, Loop] = {}
    for loop in sched.loops:
        yield from _loop(op, loop, last.get(loop.dim))
        last[loop.dim] = loop
    for dim, extent in enumerate(op.extents):
        end = last.get(dim)
        if end is None:
            if extent != 1:
                yield f"no loop covers dim {dim} of extent {extent}", "loop over every dim"
        elif end.policy != "vector" and end.step != 1:
            yield (
                f"the last loop over dim {dim} leaves {end.step} points an iteration",
                "end with step 1, or with a vector loop",
            )


def _loop(op: MapReducePost, loop: Loop, outer: Loop | None) -> Findings:
    yield from expect_choice("the policy of a loop", loop.policy, LOOP_POLICIES)
    if not 0 <= loop.dim < op.rank:
        yield f"a loop runs over dim {loop.dim} of {op.rank}", "loop over the op's dims"
    if loop.step < 1:
        yield f"a loop over dim {loop.dim} has step {loop.step}", "use a step of at least 1"
    if outer is not None and (outer.policy == "vector" or loop.step > outer.step):
        yield (
            f"a loop over dim {loop.dim} with step {loop.step} runs inside one of step "
            f"{outer.step}",
            "order the loops of a dim by falling step, a vector loop last",
        )


def _alloc(op: Alloc) -> Findings:
    types = types_of(op.results)
    if len(types) != 1 or not isinstance(types[0], BufType):
        yield f"gives {describe_types(types)}", "allocate one buf"


def _read(op: Read) -> Findings:
    type_ = op.buffer.type
    if not isinstance(type_, BufType) or type_.shape:
        yield f"reads a {describe_type(type_)}", "read a buf without extents"
        return
    yield from expect_types("results", types_of(op.results), _elements([op.buffer]))


TENSOR_RULES = (
    op_rule("OP17", "map_reduce_post has a domain", MapReducePost, _domain),
    op_rule("OP18", "operands are addressed from the domain", MapReducePost, _accesses),
    op_rule("OP19", "results say what they keep and fold", MapReducePost, _results),
    op_rule("OP20", "regions fold elements and finish states", MapReducePost, _regions),
    op_rule("OP21", "a schedule covers the domain", MapReducePost, _coverage),
    op_rule("OP22", "allocations are bufs", Alloc, _alloc),
    op_rule("OP23", "a buf of one element is read", Read, _read),
)
