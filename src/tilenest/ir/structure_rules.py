"""The structural rules `IR01` to `IR11`: links, identity, uses, visibility, arity, types.

In: a module. Out: faults. Nothing here trusts what it checks: lists are followed link by link, and
both directions of every use are compared. `IR01` is the foundation of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tilenest.ir.core import Block, Function, Operation, Region, Use, Value
from tilenest.ir.kinds import fits, is_attribute_value, kind_text
from tilenest.ir.rules import Fault, Rule, Subject
from tilenest.ir.types import (
    BufType,
    PointerType,
    ScalarType,
    TileType,
    Type,
    VectorType,
    ViewType,
)

_MUTATE = "change the module through the rewriter or the builder only"
_KNOWN_TYPES = (ScalarType, TileType, ViewType, BufType, VectorType, PointerType)


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


def _blocks(subject: Subject) -> Iterator[tuple[Operation | None, Function, Block]]:
    """Every block, with the operation that holds it (None in a function) and the function."""
    for function in subject.module.functions:
        for block in function.region.blocks:
            yield None, function, block
        for op in function.walk():
            for region in op.regions:
                for block in region.blocks:
                    yield op, function, block


def _values(subject: Subject) -> Iterator[tuple[Operation | None, Value]]:
    """Every value, with the operation to blame."""
    for holder, _, block in _blocks(subject):
        for argument in block.arguments:
            yield holder, argument
    for op in subject.operations:
        for result in op.results:
            yield op, result


def _identities(subject: Subject) -> Iterator[Fault]:
    seen: set[int] = set()

    def repeated(identity: int) -> bool:
        is_known = identity in seen
        seen.add(identity)
        return is_known

    for function in subject.module.functions:
        if repeated(function.id):
            yield Fault(None, f"function @{function.name} has the id of something else", _MUTATE)
    for holder, _, block in _blocks(subject):
        if repeated(block.id):
            yield Fault(holder, "a block has the id of something else", _MUTATE)
    for op in subject.operations:
        if repeated(op.id):
            yield Fault(op, "has the id of something else", _MUTATE)
    for place, value in _values(subject):
        if repeated(value.id):
            yield Fault(place, f"value {value.index} has the id of something else", _MUTATE)


def _function_names(subject: Subject) -> Iterator[Fault]:
    seen: set[str] = set()
    for function in subject.module.functions:
        if not function.name:
            yield Fault(None, "a function has no name", "name it")
        elif function.name in seen:
            yield Fault(None, f"two functions are named @{function.name}", "rename one of them")
        seen.add(function.name)


def _visibility(subject: Subject) -> Iterator[Fault]:
    for function in subject.module.functions:
        yield from _region_visibility(function.region, set())


def _region_visibility(region: Region, visible: set[Value]) -> Iterator[Fault]:
    for block in region.blocks:
        defined: list[Value] = list(block.arguments)
        visible.update(defined)
        for op in block.operations:
            for use in op.operand_uses:
                if use.value not in visible:
                    yield _invisible(op, use)
            for nested in op.regions:
                yield from _region_visibility(nested, visible)
            visible.update(op.results)
            defined.extend(op.results)
        visible.difference_update(defined)


def _invisible(op: Operation, use: Use) -> Fault:
    block = use.value.defining_block
    if block is None or not block.is_attached:
        why = "its definition is not in the module"
    elif block is op.parent:
        why = "it is defined later in the same block"
    else:
        why = "it is defined in a block that does not enclose this one, or later"
    return Fault(
        op,
        f"operand {use.index} is not visible here: {why}",
        "use values defined earlier in the same block or in an enclosing one; hand others out "
        "of a region by its yield",
    )


def _operand_slots(subject: Subject) -> Iterator[Fault]:
    for op in subject.operations:
        for place, use in enumerate(op.operand_uses):
            if use.operation is not op or use.index != place:
                yield Fault(op, f"operand slot {place} holds the use of another slot", _MUTATE)
            elif use.holder is None:
                yield Fault(op, f"operand {place} is missing from its value's uses", _MUTATE)
            elif use.holder is not use.value:
                yield Fault(op, f"operand {place} sits among the uses of another value", _MUTATE)


def _use_lists(subject: Subject) -> Iterator[Fault]:
    inside = set(subject.operations)
    for place, value in _values(subject):
        name = f"value {value.index} ({value.name})" if value.name else f"value {value.index}"
        fault = value.uses.fault()
        if fault is not None or value.uses.owner is not value:
            yield Fault(place, f"the uses of {name} have {fault or 'another owner'}", _MUTATE)
            continue
        for use in value.uses:
            user = use.operation
            if user not in inside:
                yield Fault(place, f"{name} is used by a detached {user.NAME}", _MUTATE)
            elif not any(slot is use for slot in user.operand_uses):
                yield Fault(place, f"{name} has a use that no slot of {user.NAME} holds", _MUTATE)


def _terminators(subject: Subject) -> Iterator[Fault]:
    remedy = "end every block with exactly one terminator"
    for holder, function, block in _blocks(subject):
        last = block.operations.last
        if last is None or not last.TERMINATOR:
            where = f"of @{function.name} " if holder is None else ""
            yield Fault(last or holder, f"a block {where}does not end with a terminator", remedy)
        for op in block.operations:
            if op.TERMINATOR and op is not last:
                yield Fault(op, "a terminator stands before the end of its block", remedy)


def _definitions(subject: Subject) -> Iterator[Fault]:
    for holder, _, block in _blocks(subject):
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
    for op in subject.operations:
        declared = {field.name: field for field in op.SPEC.attributes}
        for name in sorted(declared.keys() ^ op.attributes.keys()):
            state = "missing" if name in declared else "not declared"
            yield Fault(op, f"the attribute `{name}` is {state}", "give what the op declares")
        for name in sorted(declared.keys() & op.attributes.keys()):
            kind: Any = declared[name].kind
            if not fits(op.attributes[name], kind):
                found = type(op.attributes[name]).__name__
                yield Fault(
                    op, f"`{name}` is a {found}", f"give `{name}` a value of kind {kind_text(kind)}"
                )


def _types(subject: Subject) -> Iterator[Fault]:
    for place, value in _values(subject):
        yield from _type_faults(place, [value.type])
    for function in subject.module.functions:
        yield from _type_faults(None, function.result_types)


def _type_faults(place: Operation | None, types: Sequence[Type]) -> Iterator[Fault]:
    for type_ in types:
        wrong = _wrong_with(type_)
        if wrong is not None:
            yield Fault(
                place, f"the type {type_!r} {wrong}", "use the types of the ir, well formed"
            )


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
    elif isinstance(type_, BufType):
        extents = type_.shape
    elif isinstance(type_, VectorType) and type_.lanes < 1:
        return "has no lane"
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
)
