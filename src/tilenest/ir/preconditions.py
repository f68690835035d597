"""What the primitives of the rewriter and of its builders take for granted.

In: what a primitive was given. Out: nothing, or the block, module or index that it goes on with. A
misuse is a fault of our own, so an assertion; every one of a primitive comes before it changes
anything. What only a look at the whole module shows, such as visibility, is for the verifier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any

from tilenest.errors import SourceLocation
from tilenest.ir import movement
from tilenest.ir.contents import ModuleContents, module_of
from tilenest.ir.core import Block, Function, Operation, Region, Value
from tilenest.ir.kinds import fits, is_attribute_value
from tilenest.ir.types import ArrayType, BufType, TileType, Type

# Values and slots --------------------------------------------------------------------------------


def require_values(values: Iterable[Any]) -> None:
    for value in values:
        assert isinstance(value, Value), f"{value!r} is no value"


def require_same_type(old: Any, new: Any) -> None:
    """A value stands for another one where everything that uses it may stay as it is."""
    require_values((old, new))
    assert old.type is new.type, f"a {new.type} cannot replace a {old.type}"


def require_storage(old: Any, storage: Any) -> None:
    require_values((old, storage))
    assert old is not storage, "a buf for itself"
    held = old.type.element if isinstance(old.type, ArrayType) else old.type
    assert isinstance(storage.type, BufType), f"a {storage.type} is no storage"
    assert isinstance(held, TileType | BufType), f"a {old.type} has no elements to store"
    assert held.dtype is storage.type.dtype, f"a {storage.type} cannot hold a {old.type}"


def require_index(index: Any, items: Sized, what: str) -> None:
    assert isinstance(index, int), f"{index!r} is no number of a {what}"
    assert index in range(len(items)), f"there is no {what} {index}"


def refuse_used(values: Iterable[Value], what: str) -> None:
    for value in values:
        assert not value.has_uses, f"{what} {value.index} is still used"


def require_name(name: Any) -> None:
    assert name is None or isinstance(name, str), f"{name!r} is no name"


def require_declaration(type_: Any, name: Any) -> None:
    """Of a result or an argument."""
    assert isinstance(type_, Type), f"{type_!r} is no type"
    require_name(name)


# Operations --------------------------------------------------------------------------------------


def require_operation(operation: Any) -> None:
    assert isinstance(operation, Operation), f"{operation!r} is no operation"


def block_of(operation: Any) -> Block:
    """The block that an operation is linked in."""
    require_operation(operation)
    block: Block | None = operation.parent
    assert block is not None, f"the {operation.NAME} is detached"
    return block


def require_place(before: Any, block: Any) -> None:
    """The end of a block, or a place before an operation of it."""
    assert isinstance(block, Block), f"{block!r} is no block"
    if before is not None:
        assert block_of(before) is block, f"the {before.NAME} is in another block"


def require_free(operation: Any, block: Block, before: Any) -> None:
    """An operation may be linked at a place."""
    require_operation(operation)
    assert operation.parent is None, f"the {operation.NAME} is linked"
    require_place(before, block)
    if operation.regions:
        inside = block.parent_op
        while inside is not None:
            assert inside is not operation, "an insertion into its own region"
            inside = inside.parent_op


def require_replacement(operation: Any, values: Sequence[Any]) -> None:
    """Values of the types of the results, which do not go with the operation."""
    block_of(operation)
    require_values(values)
    types = [value.type for value in values]
    expected = [result.type for result in operation.results]
    assert types == expected, f"{operation.NAME}: {types} cannot replace {expected}"
    for value in values:
        assert value not in operation.results, f"{operation.NAME} replaced by its own result"
        if operation.regions:
            _refuse_below(value, operation)


def _refuse_below(value: Value, operation: Operation) -> None:
    block = value.defining_block
    inside = None if block is None else block.parent_op
    is_below = inside is not None and operation.is_ancestor_of(inside)
    assert not is_below, f"{operation.NAME} replaced by a value in its own region"


def require_successor_of(old: Any, operation: Any) -> None:
    """An operation takes the place, the regions and the uses of another one."""
    require_free(operation, block_of(old), old.next)
    assert not operation.regions, "the new operation has regions of its own"
    types = [result.type for result in operation.results]
    expected = [result.type for result in old.results]
    assert types == expected, f"{operation.NAME}: {types} cannot replace {expected}"


def require_group(operation: Any, group: str, values: Any) -> None:
    require_operation(operation)
    arities = dict(operation.SPEC.groups)
    assert group in arities, f"{operation.NAME} declares no operands {group!r}"
    assert isinstance(values, Sequence), f"{values!r} are no operands"
    require_values(values)
    fewest, most = {"one": (1, 1), "optional": (0, 1)}.get(arities[group], (0, len(values)))
    assert fewest <= len(values) <= most, f"{operation.NAME}: {len(values)} operands {group!r}"


def successor_index(operation: Any, group: str, block: Any) -> int:
    require_operation(operation)
    names: tuple[str, ...] = operation.SPEC.successors
    assert group in names, f"{operation.NAME} declares no successor {group!r}"
    assert isinstance(block, Block), f"{block!r} is no block"
    return names.index(group)


def require_attribute(operation: Any, name: str, value: Any) -> None:
    require_operation(operation)
    kinds = {field.name: field.kind for field in operation.SPEC.attributes}
    assert name in kinds, f"{operation.NAME} declares no attribute {name}"
    assert fits(value, kinds[name]), f"{value!r} is no value of `{name}`"


def known_places(places: Iterable[Any]) -> list[SourceLocation | None]:
    """The same, looked at."""
    assert isinstance(places, Iterable), f"{places!r} are no places"
    found = list(places)
    for place in found:
        assert place is None or isinstance(place, SourceLocation), f"{place!r} is no place"
    return found


# Blocks ------------------------------------------------------------------------------------------


def _require_region(region: Any, before: Any) -> None:
    assert isinstance(region, Region), f"{region!r} is no region"
    if before is not None:
        assert isinstance(before, Block), f"{before!r} is no block"
        assert before.parent is region, "the block to stand before is in another region"


def require_free_block(block: Any, region: Any, before: Any) -> None:
    assert isinstance(block, Block), f"{block!r} is no block"
    assert block.parent is None, "the block is linked"
    _require_region(region, before)
    assert not movement.is_inside(region, block), "an insertion into its own region"


def require_movable(block: Any, region: Any, before: Any) -> None:
    assert isinstance(block, Block), f"{block!r} is no block"
    assert block.parent is not None, "the block is detached"
    _require_region(region, before)
    assert before is not block, "a move before what moves"
    assert not movement.is_inside(region, block), "a move into its own region"


def blocks_to_inline(region: Any, block: Any) -> tuple[Region, list[Block]]:
    """The region that blocks go to, and those that go."""
    assert isinstance(block, Block), f"{block!r} is no block"
    target = block.parent
    assert target is not None, "the block is detached"
    assert target is not region, "a region inlined into itself"
    _require_region(region, None)
    moving = list(region.blocks)
    for moved in moving:
        require_movable(moved, target, block)
    return target, moving


# Functions and modules ---------------------------------------------------------------------------


def module_around(function: Any) -> ModuleContents:
    """The module that a function is in."""
    assert isinstance(function, Function), f"{function!r} is no function"
    module = module_of(function)
    assert module is not None, f"@{function.name} is in no module"
    return module


def require_room(function: Function, module: Any, before: Any) -> None:
    """A function may stand before another one of a module, or last."""
    assert isinstance(module, ModuleContents), f"{module!r} is no module"
    assert before is not function, f"@{function.name} before itself"
    if before is not None:
        assert module_around(before) is module, f"@{before.name} is in another module"
    taken = {other.name for other in module.functions if other is not function}
    assert function.name not in taken, f"there is a @{function.name} already"


def require_extra(function: Any, name: Any, value: Any) -> None:
    """An attribute that no class declares: its name and its value can be written and read back."""
    assert isinstance(function, Function), f"{function!r} is no function"
    assert isinstance(name, str) and name.isidentifier(), f"{name!r} is no name of an attribute"
    assert is_attribute_value(value), f"{value!r} is no attribute value"


def require_form(module: Any, form: Any) -> None:
    """A form is what operations say that they may stand in."""
    assert isinstance(module, ModuleContents), f"{module!r} is no module"
    is_known = not module.functions or any(form in op.FORMS for op in module.walk())
    assert isinstance(form, str) and is_known, f"{form!r} is no form of an operation"


def require_order(block: Block, arguments: Sequence[Any]) -> None:
    """All arguments of a block, each once."""
    require_values(arguments)
    assert len(arguments) == len(block.arguments), "an order of some of the arguments"
    assert set(arguments) == set(block.arguments), "an order of other values than the arguments"
