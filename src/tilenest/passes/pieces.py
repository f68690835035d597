"""Small shared steps of the passes: insert a pointwise op, a fold, a store or a copy; clip a dim;
state what the code of a function needs.

In: a composer with its region's answers, and where to insert. Out: linked map_reduce_posts.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import needed_features
from tilenest.dialects import (
    Access,
    Capability,
    MapReducePost,
    Reduce,
    ReductionContract,
    ResultSpec,
    Yield,
    guards_of,
)
from tilenest.ir import (
    INDEX,
    Block,
    Builder,
    Function,
    Operation,
    Region,
    Rewriter,
    ScalarType,
    Type,
    Value,
    element_dtype,
)
from tilenest.layouts import DimRef
from tilenest.machine import Target
from tilenest.passes.compose import Composer
from tilenest.records import record, replace


def insert_pointwise(
    builder: Builder, composer: Composer, element: Value, result_type: Type
) -> MapReducePost:
    """One pointwise result over the composer's domain, its axes in loop order."""
    block = composer.finish([element])
    return builder.insert(
        MapReducePost(
            inputs=composer.inputs,
            symbols=composer.symbols,
            extents=composer.extents,
            input_access=composer.shared(composer.input_access),
            specs=(ResultSpec(tuple(range(composer.rank))),),
            result_types=[result_type],
            regions=[Region([block])],
        )
    )


@record
class FoldedResult:
    """One result of a fold: kept loop dims, contract, and its seed."""

    dims: tuple[int, ...]
    contract: ReductionContract
    seed: Value
    seed_access: Access


def insert_fold(
    builder: Builder,
    composer: Composer,
    nexts: Sequence[Value],
    results: Sequence[FoldedResult],
    result_types: Sequence[Type],
) -> MapReducePost:
    """A fold whose epilogues store the final states as they are."""
    block = composer.finish(nexts)
    return builder.insert(
        MapReducePost(
            inputs=composer.inputs,
            seeds=[result.seed for result in results],
            symbols=composer.symbols,
            extents=composer.extents,
            input_access=composer.shared(composer.input_access),
            seed_access=composer.shared([result.seed_access for result in results]),
            specs=tuple(ResultSpec(r.dims, r.contract) for r in results),
            result_types=list(result_types),
            regions=[
                Region([block]),
                *(identity_post(composer.rank, r.seed.type) for r in results),
            ],
        )
    )


def keep_laws(op: Operation, kept: Sequence[int], rewriter: Rewriter) -> None:
    """Let the contract of a reduction tell of these states, in this order, and no others."""
    if isinstance(op, Reduce) and op.contract.laws:
        laws = tuple(op.contract.laws[place] for place in kept)
        rewriter.set_attribute(op, "contract", replace(op.contract, laws=laws))


def identity_post(rank: int, state: Type) -> Region:
    """The epilogue that stores the final state."""
    block = Block([INDEX] * rank)
    builder = Builder(block)
    value = builder.add_argument(ScalarType(element_dtype(state)))
    builder.insert(Yield(values=[value]))
    return Region([block])


def insert_store(
    builder: Builder,
    composer: Composer,
    element: Value,
    destination: tuple[Value, Access],
    mask: Value | None = None,
) -> MapReducePost:
    """Write one element a point of the domain to `destination`, where `mask` is true."""
    memory, access = destination
    block = composer.finish([element] if mask is None else [element, mask])
    return builder.insert(
        MapReducePost(
            inputs=composer.inputs,
            symbols=composer.symbols,
            outputs=[memory],
            extents=composer.extents,
            input_access=composer.shared(composer.input_access),
            output_access=composer.shared([access]),
            specs=(ResultSpec(tuple(range(composer.rank)), is_masked=mask is not None),),
            regions=[Region([block])],
        )
    )


def insert_copy(
    builder: Builder, source: Value, destination: Value, extents: Sequence[int]
) -> MapReducePost:
    """Copy a tile or buf into a buf of the same shape."""
    composer = Composer(extents)
    identity = Access(composer.map([DimRef(d) for d in range(len(extents))]))
    element = composer.read(source, identity)
    return insert_store(builder, composer, element, (destination, identity))


def clip_dim(op: MapReducePost, dim: int, bound: Value, rewriter: Rewriter) -> None:
    """Let a loop dim end at a run-time bound."""
    bounds = dict(zip(op.clipped, op.upper, strict=True))
    bounds[dim] = bound
    ordered = sorted(bounds)
    rewriter.set_operands(op, "upper", [bounds[d] for d in ordered])
    rewriter.set_attribute(op, "clipped", tuple(ordered))


def state_capabilities(function: Function, target: Target, rewriter: Rewriter) -> None:
    """Let a function with guards state the features of the target that its code needs by now."""
    guards = guards_of(function)
    if guards is not None:
        needed = sorted(needed_features(function.walk(), target.atoms))
        stated = (*guards, *map(Capability, needed))
        rewriter.set_function_attribute(function, "guards", stated)


def is_identity(access: Access, rank: int) -> bool:
    """Whether an access reads or writes at the first `rank` loop dims, in order."""
    return access.map.results == tuple(DimRef(d) for d in range(rank))
