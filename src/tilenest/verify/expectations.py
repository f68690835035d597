"""What rules about ops have in common: wrapping, types, regions.

In: an operation and what it should look like. Out: findings, each the failed fact and a remedy. The
rules of the `ir` room hold already when these are asked, so an op has its declared operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tilenest.dialects import Yield
from tilenest.errors import ShapeError
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    DType,
    Fault,
    Operation,
    Region,
    Rule,
    ScalarType,
    Subject,
    TileType,
    Type,
    Value,
    VectorType,
    describe_type,
)
from tilenest.layouts import Dim, dims_compatible_by_position, join_dims

OpT = TypeVar("OpT", bound=Operation)
Finding = tuple[str, str]
Findings = Iterator[Finding]


def op_rule(id_: str, title: str, cls: type[OpT], check: Callable[[OpT], Findings]) -> Rule:
    """A rule about every operation of a class."""
    return place_rule(id_, title, cls, lambda op, _: check(op))


def place_rule(
    id_: str, title: str, cls: type[OpT], check: Callable[[OpT, Subject], Findings]
) -> Rule:
    """A rule about every operation of a class, which depends on its target or asks analyses."""

    def faults(subject: Subject) -> Iterator[Fault]:
        for op in subject.of(cls):
            try:
                for message, remedy in check(op, subject):
                    yield Fault(op, message, remedy)
            except ShapeError as error:
                remedy = error.remedy or "use smaller numbers"
                yield Fault(op, f"the rule has no answer: {error.message}", remedy)

    return Rule(id_, title, faults)


def describe_types(types: Sequence[Type]) -> str:
    return f"({', '.join(map(describe_type, types))})"


def types_of(values: Sequence[Value]) -> list[Type]:
    return [value.type for value in values]


def expect_types(what: str, actual: Sequence[Type], expected: Sequence[Type]) -> Findings:
    if list(actual) != list(expected):
        found, wanted = describe_types(actual), describe_types(expected)
        yield f"{what} have types {found} instead of {wanted}", f"make them {wanted}"


def expect_index(what: str, values: Sequence[Value]) -> Findings:
    """All values are scalars of type index."""
    for place, value in enumerate(values):
        if value.type is not INDEX:
            kind = describe_type(value.type)
            yield f"{what} {place} is a {kind}", "cast it to index"


def expect_choice(what: str, value: str, choices: Sequence[str]) -> Findings:
    if value not in choices:
        yield f"{what} is {value!r}", f"use one of {', '.join(choices)}"


def expect_regions(op: Operation, count: int) -> Findings:
    """The number of regions, and one block in each."""
    if len(op.regions) != count:
        yield f"has {len(op.regions)} regions instead of {count}", f"give it {count}"
    for place, region in enumerate(op.regions):
        if len(region.blocks) != 1:
            yield f"region {place} has {len(region.blocks)} blocks", "give every region one block"


def expect_bodies(op: Operation, count: int) -> Findings:
    """The number of regions, each of blocks that branches reach, and each with a way out."""
    if len(op.regions) != count:
        yield f"has {len(op.regions)} regions instead of {count}", f"give it {count}"
    for place, region in enumerate(op.regions):
        yield from expect_reached(f"region {place}", region)


def expect_reached(what: str, region: Region) -> Findings:
    """Blocks, every one but the first reached by a branch, and one at least that leaves."""
    blocks = list(region.blocks)
    lonely = [block for block in blocks[1:] if not block.incoming]
    if lonely:
        yield (
            f"{what} has {len(lonely)} blocks that no branch goes to",
            "give every region one block, or branch to the others",
        )
    if not exits(region):
        yield f"{what} has no block that leaves it", "end a block with a terminator of the op"


def exits(region: Region) -> list[Operation]:
    """The terminators that leave a region."""
    ends = [block.terminator for block in region.blocks]
    return [end for end in ends if not end.edges]


def expect_region(
    op: Operation,
    place: int,
    arguments: Sequence[Type],
    yields: Sequence[Type] | None,
    terminator: type[Operation] = Yield,
) -> Findings:
    """Argument and yielded types of a region; `yields` None lets it hand out anything."""
    region = op.regions[place]
    first = region.blocks.first
    assert first is not None
    yield from expect_types(f"arguments of region {place}", types_of(first.arguments), arguments)
    for last in exits(region):
        if not isinstance(last, terminator):
            yield f"region {place} ends with {last.NAME}", f"end it with {terminator.NAME}"
        elif yields is not None:
            yield from expect_types(
                f"values handed out by region {place}", types_of(last.operands), yields
            )


def expect_scalar_block(block: Block) -> Findings:
    """Only scalar operations inside: no effect, no nest."""
    for inner in block.operations:
        if not inner.IS_ELEMENTWISE and not isinstance(inner, Yield):
            yield f"its scalar region holds {inner.NAME}", "compute scalars only in the region"


def is_bool(type_: Type) -> bool:
    return type_is_over(type_, BOOL.dtype)


def type_is_over(type_: Type, dtype: DType) -> bool:
    return getattr(type_, "dtype", None) is dtype


def lanes_of(type_: Type) -> int | None:
    """The lanes of a vector, 0 for a scalar, None for anything else."""
    if isinstance(type_, VectorType):
        return type_.lanes
    return 0 if isinstance(type_, ScalarType) else None


def element_type(type_: Type) -> Type | None:
    """The scalar type of one element."""
    dtype = getattr(type_, "dtype", None)
    return ScalarType(dtype) if isinstance(dtype, DType) else None


def dims_of(type_: Type) -> tuple[Dim, ...] | None:
    """The dims of a tile, none for a scalar, None for anything else."""
    if isinstance(type_, TileType):
        return type_.dims
    return () if isinstance(type_, ScalarType) else None


def is_storable(type_: Type, dims: tuple[Dim, ...]) -> bool:
    """Whether a tile or scalar can be stored to a region of these dims."""
    own = dims_of(type_)
    if own is None:
        return False
    try:
        dims_compatible_by_position(own, dims)
    except ShapeError:
        return False
    return True


def broadcasts_to(type_: Type, dims: tuple[Dim, ...]) -> bool:
    """True when a tile or scalar can be read at every coordinate of `dims`."""
    own = dims_of(type_)
    if own is None:
        return False
    try:
        joined = join_dims(dims, own)
    except ShapeError:
        return False
    return len(joined) == len(dims) and set(joined) == set(dims)
