"""Rules `OP87` to `OP92`: tile arrays cover their parent, stay where they are, and are filled once.

In: operations on arrays, and the values of every type that is used once. Out: findings about
shapes, slots and uses. That every slot is set exactly once is seen when the program runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import Overuse, constant_of, overuse_of
from tilenest.dialects import ArrayAssemble, ArrayGet, ArrayMake, ArraySet, Partition
from tilenest.ir import (
    ArrayType,
    BlockArgument,
    Fault,
    Rule,
    Subject,
    TileType,
    Type,
    Value,
    ViewType,
    describe_type,
)
from tilenest.verify.expectations import (
    Findings,
    describe_types,
    expect_index,
    expect_types,
    op_rule,
    types_of,
)


def _partition(op: Partition) -> Findings:
    yield from expect_index("origin", op.origins)
    array = op.results[0].type if len(op.results) == 1 else None
    if not isinstance(array, ArrayType) or array.filled:
        yield f"gives {describe_types(types_of(op.results))}", "give one borrowed array"
        return
    whole = op.whole.type
    if isinstance(whole, ViewType):
        wanted, ranks = whole.rank, (whole.rank,)
    elif isinstance(whole, TileType):
        wanted, ranks = 0, (len(whole.dims),)
        yield from _cover(array, whole.shape)
    else:
        yield f"borrows a {describe_type(whole)}", "borrow a tile or a view"
        return
    if len(op.origins) != wanted:
        yield f"has {len(op.origins)} origins", f"give {wanted}: a tile is borrowed whole"
    yield from _slots(array, ranks[0])
    if array.element.dtype is not whole.dtype:
        yield f"shows {whole.dtype.text} as {array.element.dtype.text}", "cast the tiles"


def _slots(array: ArrayType, rank: int) -> Findings:
    if not len(array.shape) == len(array.element.dims) == rank:
        yield (
            f"{len(array.shape)} axes of slots of {len(array.element.dims)} dims meet rank {rank}",
            "give slots and tiles one axis for each of the parent's",
        )


def _cover(array: ArrayType, whole: tuple[int, ...]) -> Findings:
    covered = tuple(
        slots * extent for slots, extent in zip(array.shape, array.element.shape, strict=False)
    )
    if covered != whole:
        yield f"slots cover {covered} of a parent of {whole}", "cover the parent exactly"


def _index(array: Value, indices: list[Value], filled: bool) -> Findings:
    """A slot of an array of the right kind."""
    yield from expect_index("index", indices)
    type_ = array.type
    if not isinstance(type_, ArrayType) or type_.filled != filled:
        wanted = "an array to be filled" if filled else "a borrowed array"
        yield f"takes a {describe_type(type_)}", f"take {wanted}"
    elif len(indices) != len(type_.shape):
        yield f"has {len(indices)} indices for {len(type_.shape)} axes", "give one for each axis"
    else:
        for at, extent in zip(indices, type_.shape, strict=True):
            known = constant_of(at)
            if isinstance(known, int) and not 0 <= known < extent:
                yield f"names slot {known} of {extent}", "name a slot from 0 on"


def _element(type_: Type) -> list[Type]:
    return [type_.element] if isinstance(type_, ArrayType) else []


def _get(op: ArrayGet) -> Findings:
    yield from _index(op.array, op.indices, False)
    if isinstance(op.array.type, ArrayType):
        yield from expect_types("results", types_of(op.results), _element(op.array.type))
    if op.partition is None:
        yield "the array is not borrowed in sight", "borrow it again where it is used"


def _make(op: ArrayMake) -> Findings:
    types = types_of(op.results)
    array = types[0] if len(types) == 1 else None
    if not isinstance(array, ArrayType) or not array.filled:
        yield f"gives {describe_types(types)}", "give one array to be filled"
    else:
        yield from _slots(array, len(array.element.dims))


def _set(op: ArraySet) -> Findings:
    yield from _index(op.array, op.indices, True)
    yield from expect_types("results", types_of(op.results), [op.array.type])
    if isinstance(op.array.type, ArrayType):
        yield from expect_types("values", [op.value.type], _element(op.array.type))


def _assemble(op: ArrayAssemble) -> Findings:
    type_ = op.array.type
    if not isinstance(type_, ArrayType) or not type_.filled:
        yield f"takes a {describe_type(type_)}", "take an array that was filled"
        return
    whole = op.results[0].type if len(op.results) == 1 else None
    if not isinstance(whole, TileType) or whole.dtype is not type_.element.dtype:
        yield f"gives {describe_types(types_of(op.results))}", "give one tile of its elements"
    else:
        yield from _cover(type_, whole.shape)


def _set_or_assembled(subject: Subject) -> Iterator[Fault]:
    for op in subject.of(ArrayAssemble):
        for message, remedy in _assemble(op):
            yield Fault(op, message, remedy)
    for make in subject.of(ArrayMake):
        for message, remedy in _make(make):
            yield Fault(make, message, remedy)


def _used_once(subject: Subject) -> Iterator[Fault]:
    for _, value in subject.values:
        if value.type.is_used_once:
            overuse = overuse_of(value)
            if overuse is not None:
                yield _fault(value, overuse)


def _fault(value: Value, overuse: Overuse) -> Fault:
    name = f"%{value.name}" if value.name else f"a {describe_type(value.type)}"
    return Fault(overuse.operation, f"{name} {overuse.fact}", overuse.remedy)


def _borrowed(subject: Subject) -> Iterator[Fault]:
    for _, value in subject.values:
        if isinstance(value.type, ArrayType) and not value.type.filled:
            is_handed = isinstance(value, BlockArgument)
            users = [user for user in value.users if not isinstance(user, ArrayGet)]
            if is_handed or users:
                yield Fault(
                    users[0] if users else None,
                    "a borrowed array leaves the place where it was borrowed",
                    "hand on its parent, and borrow it again there",
                )


ARRAY_RULES = (
    op_rule("OP87", "borrowed arrays cover their parent", Partition, _partition),
    op_rule("OP88", "slots are read from borrowed arrays", ArrayGet, _get),
    op_rule("OP89", "slots are set to tiles of their type", ArraySet, _set),
    Rule("OP90", "filled arrays begin empty and cover the whole", _set_or_assembled),
    Rule("OP91", "states are used once", _used_once),
    Rule("OP92", "borrowed arrays stay where they are borrowed", _borrowed),
)
