"""The structural rules `IR01` to `IR12`: links, identity, uses, visibility, arity, branches.

In: a module. Out: faults. Nothing here trusts what it checks: lists are followed link by link, and
both directions of every use are compared. `IR01` is the foundation of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tilenest.ir.core import Block, Function, Operation, Region, Use, Value
from tilenest.ir.dominators import block_dominators
from tilenest.ir.fields import OpSpec
from tilenest.ir.kinds import fits, is_attribute_value, refusal
from tilenest.ir.rules import Fault, Rule, Subject, parameter_of
from tilenest.ir.spelling import describe_type, describe_types
from tilenest.ir.types import (
    MOST_LANES,
    ArrayType,
    BufType,
    MemoryType,
    PointerType,
    ScalarType,
    StateType,
    TileType,
    TokenType,
    TupleType,
    Type,
    VectorType,
    ViewType,
)

_MUTATE = "change the module through the rewriter or the builder only"
_KNOWN_TYPES = (
    ScalarType,
    TileType,
    ViewType,
    BufType,
    VectorType,
    PointerType,
    TupleType,
    ArrayType,
    TokenType,
    MemoryType,
    StateType,
)


def _links(subject: Subject) -> Iterator[Fault]:
    module = subject.module
    fault = module.functions.fault()
    if fault is not None or module.functions.owner is not module:
        yield Fault(None, f"the list of functions has {fault or 'another owner'}", _MUTATE)
        return
    for function in module.functions:
        yield from _region_links(function.region, function, None)


def _region_links(
    region: Region, owner: Operation | Function, op: Operation | None
) -> Iterator[Fault]:
    if region.parent is not owner:
        yield Fault(op, "a region says it has another owner", _MUTATE)
    fault = region.blocks.fault()
    if fault is not None or region.blocks.owner is not region:
        yield Fault(op, f"the list of blocks has {fault or 'another owner'}", _MUTATE)
        return
    for block in region.blocks:
        fault = block.operations.fault()
        if fault is not None or block.operations.owner is not block:
            yield Fault(op, f"the operations of a block have {fault or 'another owner'}", _MUTATE)
            continue
        for inner in block.operations:
            for nested in inner.regions:
                yield from _region_links(nested, inner, inner)


def _identities(subject: Subject) -> Iterator[Fault]:
    seen: set[int] = set()

    def repeated(identity: int) -> bool:
        is_known = identity in seen
        seen.add(identity)
        return is_known

    for function in subject.module.functions:
        if repeated(function.id):
            message = f"function @{function.name} has the id of something else"
            yield Fault(None, message, _MUTATE, function)
    for holder, _, block in subject.blocks:
        if repeated(block.id):
            yield Fault(holder, "a block has the id of something else", _MUTATE)
    for op in subject.operations:
        if repeated(op.id):
            yield Fault(op, "has the id of something else", _MUTATE)
    for place, value in subject.values:
        if repeated(value.id):
            yield Fault(place, f"value {value.index} has the id of something else", _MUTATE)


def _function_names(subject: Subject) -> Iterator[Fault]:
    seen: set[str] = set()
    for function in subject.module.functions:
        if not function.name:
            yield Fault(None, "a function has no name", "name it", function)
        elif function.name in seen:
            message = f"two functions are named @{function.name}"
            yield Fault(None, message, "rename one of them", function)
        seen.add(function.name)


def _visibility(subject: Subject) -> Iterator[Fault]:
    for function in subject.module.functions:
        yield from _region_visibility(function.region, set())


def _region_visibility(region: Region, visible: set[Value]) -> Iterator[Fault]:
    """Every block sees what its dominators define; an unreachable one, where nothing runs, what
    any other block of the region does."""
    first = region.blocks.first
    if first is not None and first is region.blocks.last:
        yield from _block_visibility(first, visible)
        visible.difference_update(_defined_in(first))
        return
    dominance = block_dominators(region)
    for block, is_entered in dominance.walk():
        if is_entered:
            yield from _block_visibility(block, visible)
        else:
            visible.difference_update(_defined_in(block))
    unreachable = [block for block in region.blocks if not dominance.is_reachable(block)]
    if not unreachable:
        return
    everything = [value for block in region.blocks for value in _defined_in(block)]
    for block in unreachable:
        visible.update(everything)
        visible.difference_update(_defined_in(block))
        yield from _block_visibility(block, visible)
    visible.difference_update(everything)


def _block_visibility(block: Block, visible: set[Value]) -> Iterator[Fault]:
    """Faults of one block; what it defines stays visible."""
    visible.update(block.arguments)
    for op in block.operations:
        for use in op.operand_uses:
            if use.value not in visible:
                yield _invisible(op, use)
        for nested in op.regions:
            yield from _region_visibility(nested, set() if op.IS_ISOLATED else visible)
        visible.update(op.results)


def _defined_in(block: Block) -> Iterator[Value]:
    """The arguments of a block and the results of its operations."""
    yield from block.arguments
    for op in block.operations:
        yield from op.results


def _invisible(op: Operation, use: Use) -> Fault:
    block = use.value.defining_block
    if block is None or not block.is_attached:
        why = "its definition is not in the module"
    elif block is op.parent:
        why = "it is defined later in the same block"
    elif (isolated := _isolating(op, block)) is not None:
        return Fault(
            op,
            f"operand {use.index} is not visible here: it is defined outside of {isolated.NAME}, "
            "whose regions see nothing around them",
            f"make it an operand of {isolated.NAME}, and use the argument of its region",
        )
    else:
        why = "it is defined in a block that neither encloses nor dominates this one, or later"
    return Fault(
        op,
        f"operand {use.index} is not visible here: {why}",
        "use values defined earlier in the same block, in a block that every way here passes, or "
        "in an enclosing one; hand others on by a branch's operands or a region's yield",
    )


def _isolating(op: Operation, definition: Block) -> Operation | None:
    """The operation between a use and a definition whose regions see nothing around them."""
    around = op.parent_op
    while around is not None and around is not definition.parent_op:
        if around.IS_ISOLATED:
            return around
        around = around.parent_op
    return None


def _operand_slots(subject: Subject) -> Iterator[Fault]:
    for op in subject.operations:
        for place, use in enumerate(op.operand_uses):
            if use.operation is not op or use.index != place:
                yield Fault(op, f"operand slot {place} holds the use of another slot", _MUTATE)
            elif (holder := use.holder) is None:
                yield Fault(op, f"operand {place} is missing from its value's uses", _MUTATE)
            elif holder is not use.value:
                yield Fault(op, f"operand {place} sits among the uses of another value", _MUTATE)


def _use_lists(subject: Subject) -> Iterator[Fault]:
    inside = set(subject.operations)
    for place, value in subject.values:
        name = f"value {value.index} ({value.name})" if value.name else f"value {value.index}"
        fault = value.uses.fault()
        if fault is not None or value.uses.owner is not value:
            yield Fault(place, f"the uses of {name} have {fault or 'another owner'}", _MUTATE)
            continue
        for use in value.uses:
            user = use.operation
            if user not in inside:
                yield Fault(place, f"{name} is used by a detached {user.NAME}", _MUTATE)
            elif not _holds(user, use):
                yield Fault(place, f"{name} has a use that no slot of {user.NAME} holds", _MUTATE)


def _holds(user: Operation, use: Use) -> bool:
    """Whether a use is in some slot, most likely the one it says."""
    slots = user.operand_uses
    if 0 <= use.index < len(slots) and slots[use.index] is use:
        return True
    return any(slot is use for slot in slots)


def _successors(subject: Subject) -> Iterator[Fault]:
    for op in subject.operations:
        if len(op.edges) != len(op.SPEC.successors):
            yield Fault(op, f"{len(op.edges)} successors are not those it declares", _MUTATE)
            continue
        for name, edge in zip(op.SPEC.successors, op.edges, strict=True):
            if edge.operation is not op:
                yield Fault(op, f"successor `{name}` is an edge of another operation", _MUTATE)
            elif edge.holder is not edge.block:
                yield Fault(op, f"successor `{name}` does not know its predecessor", _MUTATE)
            else:
                yield from _successor(op, name, edge.block)
    inside = set(subject.operations)
    for holder, _, block in subject.blocks:
        fault = block.incoming.fault()
        if fault is not None or block.incoming.owner is not block:
            yield Fault(holder, f"the edges to a block have {fault or 'another owner'}", _MUTATE)
            continue
        for edge in block.incoming:
            user = edge.operation
            if user not in inside or not any(own is edge for own in user.edges):
                yield Fault(holder, f"a block has an edge that no {user.NAME} holds", _MUTATE)


def _successor(op: Operation, name: str, target: Block) -> Iterator[Fault]:
    """Whether a terminator may go on with a block, and hands it what it takes."""
    assert op.parent is not None
    region = op.parent.parent
    if region is None or target.parent is not region:
        yield Fault(
            op, f"successor `{name}` is a block of another region", "stay within the region"
        )
    elif target is region.blocks.first:
        remedy = "put a block before it, from which control comes here"
        yield Fault(op, f"successor `{name}` is the first block of the region", remedy)
    else:
        start, stop = op.SPEC.group_range(op.segments, name)
        given = [use.value.type for use in op.operand_uses[start:stop]]
        taken = [argument.type for argument in target.arguments]
        if given != taken:
            found, wanted = describe_types(given), describe_types(taken)
            yield Fault(
                op,
                f"successor `{name}` takes {wanted} and gets {found}",
                "give one operand of the same type for every argument of the block",
            )


def _terminators(subject: Subject) -> Iterator[Fault]:
    remedy = "end every block with exactly one terminator"
    for holder, function, block in subject.blocks:
        last = block.operations.last
        if last is None or not last.TERMINATOR:
            where = f"of @{function.name} " if holder is None else ""
            message = f"a block {where}does not end with a terminator"
            yield Fault(last or holder, message, remedy, function)
        for op in block.operations:
            if op.TERMINATOR and op is not last:
                yield Fault(op, "a terminator stands before the end of its block", remedy)


def _definitions(subject: Subject) -> Iterator[Fault]:
    for holder, _, block in subject.blocks:
        for place, argument in enumerate(block.arguments):
            if argument.block is not block or argument.index != place:
                yield Fault(holder, f"block argument {place} belongs to another place", _MUTATE)
    for op in subject.operations:
        for place, result in enumerate(op.results):
            if result.owner is not op or result.index != place:
                yield Fault(op, f"result {place} belongs to another place", _MUTATE)


def _operand_groups(subject: Subject) -> Iterator[Fault]:
    sizes = {"one": (1,), "optional": (0, 1)}
    for op in subject.operations:
        groups = op.SPEC.groups
        if len(op.segments) != len(groups) or sum(op.segments) != len(op.operand_uses):
            yield Fault(
                op,
                f"{len(op.operand_uses)} operands are cut into groups of {list(op.segments)}",
                _MUTATE,
            )
            continue
        for (name, arity), size in zip(groups, op.segments, strict=True):
            if arity in sizes and size not in sizes[arity]:
                yield Fault(
                    op,
                    f"`{name}` has {size} operands",
                    f"give `{name}` {'exactly' if arity == 'one' else 'at most'} one operand",
                )


def _attributes(subject: Subject) -> Iterator[Fault]:
    named = [("the module", subject.module.attributes)]
    named += [(f"@{item.name}", item.attributes) for item in subject.module.functions]
    for owner, attributes in named:
        for name, value in attributes.items():
            if not is_attribute_value(value):
                yield Fault(None, f"`{name}` of {owner} is no attribute value", "use plain values")
    kinds_of: dict[type[Operation], dict[str, Any]] = {}
    for op in subject.operations:
        declared = kinds_of.get(type(op))
        if declared is None:
            declared = kinds_of[type(op)] = _declared_kinds(op.SPEC)
        given = op.attributes
        unequal = declared.keys() ^ given.keys() if declared.keys() != given.keys() else ()
        for name in sorted(unequal):
            state = "missing" if name in declared else "not declared"
            yield Fault(op, f"the attribute `{name}` is {state}", "give what the op declares")
        for name, kind in declared.items():
            if name in op.attributes and not fits(op.attributes[name], kind):
                yield Fault(op, *refusal(f"`{name}`", op.attributes[name], kind))


def _declared_kinds(spec: OpSpec) -> dict[str, Any]:
    """The kind of each attribute, by name."""
    fields = sorted(spec.attributes, key=lambda field: field.name)
    return {field.name: field.kind for field in fields}


def _types(subject: Subject) -> Iterator[Fault]:
    sound: set[int] = set()
    """identities of types that are known to be right"""
    for place, value in subject.values:
        if id(value.type) not in sound:
            faults = list(_type_faults(place, [value.type], parameter_of(value)))
            yield from faults
            if not faults:
                sound.add(id(value.type))
    for function in subject.module.functions:
        yield from _type_faults(None, function.result_types, function)


def _type_faults(
    place: Operation | None, types: Sequence[Type], function: Function | None = None
) -> Iterator[Fault]:
    for type_ in types:
        wrong = _wrong_with(type_)
        if wrong is not None:
            is_known = type(type_) in _KNOWN_TYPES
            name = describe_type(type_) if is_known else type(type_).__name__
            message = f"the type {name} {wrong}"
            yield Fault(place, message, "use the types of the ir, well formed", function)


def _wrong_with(type_: Type) -> str | None:
    if type(type_) not in _KNOWN_TYPES:
        return "is none of the known classes"
    extents: Iterable[int | None] = ()
    if isinstance(type_, TileType):
        if not type_.dims:
            return "has no dim"
        if len(set(type_.dims)) != len(type_.dims):
            return "has one dim twice"
    elif isinstance(type_, ViewType):
        if len(type_.shape) != len(type_.strides):
            return "has extents without strides"
        extents = type_.shape
    elif isinstance(type_, BufType | ArrayType):
        extents = type_.shape
    elif isinstance(type_, VectorType) and not 1 <= type_.lanes <= MOST_LANES:
        return f"has other than 1 to {MOST_LANES} lanes"
    is_negative = any(extent is not None and extent < 0 for extent in extents)
    return "has a negative extent" if is_negative else None


STRUCTURE_RULES = (
    Rule("IR01", "lists and parents agree", _links, is_foundation=True),
    Rule("IR02", "identities are unique", _identities),
    Rule("IR03", "functions have names of their own", _function_names),
    Rule("IR04", "operands are visible where they are used", _visibility),
    Rule("IR05", "operand slots sit among the uses of their values", _operand_slots),
    Rule("IR06", "use lists hold the slots of linked operations", _use_lists),
    Rule("IR07", "blocks end with their only terminator", _terminators),
    Rule("IR08", "results and arguments know their owner and place", _definitions),
    Rule("IR09", "operand groups have their declared size", _operand_groups),
    Rule("IR10", "attributes are those declared, of their kind", _attributes),
    Rule("IR11", "types are known and well formed", _types),
    Rule("IR12", "branches stay in their region and hand on what the block takes", _successors),
)
