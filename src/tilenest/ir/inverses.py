"""How to undo each primitive change, exactly.

In: what a primitive is about to change. Out: an `Undo` that makes it what it was, whether the
primitive got to its end or not, when everything changed since has been undone: then neighbours in
a list are again those noted here. What a change unlinks is unlinked here already, link by link, so
that every link is noted beside what it stood beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tilenest.ir.contents import ModuleContents
from tilenest.ir.core import Block, Function, Operation, Region, Use, Value
from tilenest.ir.lists import Link, LinkedList, Node

Undo = Callable[[], None]
_Places = list[tuple[Link, LinkedList[Any], Link | None]]


def _unlink(links: Iterable[Link]) -> _Places:
    places: _Places = []
    for link in links:
        if link._list is not None:
            places.append((link, link._list, link._next))
            link._unlink()
    return places


def _relink(places: _Places) -> None:
    for link, list_, following in reversed(places):
        list_.insert_before(following, link)


def _links_in(block: Block) -> Iterator[Link]:
    for op in block.operations:
        yield from op.links()


def _back_to(node: Node) -> Undo:
    """Put a node of a list back where it is now."""
    list_, following = node._list, node._next

    def undo() -> None:
        if node._list is not None:
            node._list.remove(node)
        if list_ is not None:
            list_.insert_before(following, node)

    return undo


# Operations --------------------------------------------------------------------------------------


def of_insertion(operation: Operation) -> Undo:
    back, location, is_new = _back_to(operation), operation.location, operation.parent is None

    def undo() -> None:
        if is_new:
            operation._unlink_uses()
        back()
        operation.location = location

    return undo


def of_erasure(operation: Operation) -> Undo:
    back = _back_to(operation)
    places = _unlink(operation.links())

    def undo() -> None:
        back()
        _relink(places)

    return undo


def of_move(operation: Operation, target: Block) -> Undo:
    """Uses are touched only where the move crosses the border of what hangs below a function."""
    source = operation.parent
    assert source is not None
    back = _back_to(operation)
    if source is target or source.is_attached == target.is_attached:
        return back
    places = _unlink(operation.links())

    def undo() -> None:
        operation._unlink_uses()
        back()
        _relink(places)

    return undo


def of_operand(operation: Operation, index: int) -> Undo:
    use = operation.operand_uses[index]
    value, list_, following = use.value, use._list, use._next

    def undo() -> None:
        use._unlink()
        use.value = value
        if list_ is not None:
            list_.insert_before(following, use)

    return undo


def of_successor(operation: Operation, index: int) -> Undo:
    edge = operation.edges[index]
    block, list_, following = edge.block, edge._list, edge._next

    def undo() -> None:
        edge._unlink()
        edge.block = block
        if list_ is not None:
            list_.insert_before(following, edge)

    return undo


def of_group(operation: Operation, name: str) -> Undo:
    start, stop = operation.SPEC.group_range(operation.segments, name)
    segments, slots = operation.segments, list(operation.operand_uses)
    places = _unlink(slots[start:stop])

    def undo() -> None:
        _unlink(use for use in operation.operand_uses if use not in kept)
        operation.segments, operation.operand_uses[:] = segments, slots
        for place, use in enumerate(slots):
            use.index = place
        _relink(places)

    kept = set(slots)
    return undo


def of_replacement(old: Value) -> Undo:
    """All uses of a value move away: their order says how they come back."""
    uses: list[Use] = list(old.uses)

    def undo() -> None:
        for use in uses:
            use._unlink()
            use.value = old
            use._link()

    return undo


def of_results(operation: Operation) -> Undo:
    results = list(operation.results)

    def undo() -> None:
        operation.results[:] = results
        for place, result in enumerate(results):
            result.index = place

    return undo


def of_regions(*operations: Operation) -> Undo:
    """Regions of detached operations change owner."""
    owned = [(operation, list(operation.regions)) for operation in operations]

    def undo() -> None:
        for operation, regions in owned:
            operation.regions[:] = regions
            for region in regions:
                region.parent = operation

    return undo


def of_location(operation: Operation) -> Undo:
    location = operation.location

    def undo() -> None:
        operation.location = location

    return undo


def of_name(value: Value) -> Undo:
    name = value.name

    def undo() -> None:
        value.name = name

    return undo


# Blocks ------------------------------------------------------------------------------------------


def of_arguments(block: Block) -> Undo:
    arguments = list(block.arguments)

    def undo() -> None:
        block.arguments[:] = arguments
        for place, argument in enumerate(arguments):
            argument.index = place

    return undo


def of_run(operations: Sequence[Operation], target: Block) -> Undo:
    """A run of operations moves to another place."""
    undos = [of_move(operation, target) for operation in operations]

    def undo() -> None:
        for each in reversed(undos):
            each()

    return undo


def of_new_block(block: Block) -> Undo:
    back, is_new = _back_to(block), block.parent is None

    def undo() -> None:
        if is_new:
            _unlink(_links_in(block))
        back()

    return undo


def of_block_erasure(block: Block) -> Undo:
    back = _back_to(block)
    places = _unlink(_links_in(block))

    def undo() -> None:
        back()
        _relink(places)

    return undo


def of_block_move(block: Block, target: Region) -> Undo:
    back = _back_to(block)
    if block.is_attached == target.is_attached:
        return back
    places = _unlink(_links_in(block))

    def undo() -> None:
        _unlink(_links_in(block))
        back()
        _relink(places)

    return undo


# Functions and modules ---------------------------------------------------------------------------


def of_function_place(function: Function) -> Undo:
    return _back_to(function)


def of_attributes(owner: Operation | Function | ModuleContents) -> Undo:
    attributes = dict(owner.attributes)

    def undo() -> None:
        owner.attributes.clear()
        owner.attributes.update(attributes)

    return undo


def of_form(module: ModuleContents) -> Undo:
    form = module.form

    def undo() -> None:
        module.form = form

    return undo
