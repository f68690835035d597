"""The mutable spine: Module > Function > Region > Block > Operation, Values and their Uses.

Ordered parents own intrusive lists; a Value owns the list of its linked Uses. A detached operation
keeps its Use objects but they sit in no use list: it takes part in no liveness or count until it is
reinserted. Passes change a module through the rewriter and add to it through builders, never by
the mutating methods here. Capture and the language, which make a module, use these directly.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, cast

from tilenest.errors import SourceLocation
from tilenest.ir.fields import OpSpec, spec_of
from tilenest.ir.interfaces import Effect, Interfaces, Touch
from tilenest.ir.lists import Link, LinkedList, Node
from tilenest.ir.types import Type
from tilenest.ir.walks import walk

_ids = itertools.count(1)


class Use(Link):
    """One operand slot of an operation; its identity survives detaching and `set_operand`."""

    __slots__ = ("index", "operation", "value")

    def __init__(self, operation: Operation, index: int, value: Value) -> None:
        super().__init__()
        self.operation = operation
        self.index = index
        self.value = value

    @property
    def holder(self) -> Value | None:
        """The value whose use list physically holds this use."""
        return None if self._list is None else self._list.owner

    def _link(self) -> None:
        self.value.uses.append(self)


class Edge(Link):
    """One successor of a terminator: a member of that block's `incoming` while the terminator is
    linked below a function, as a `Use` is of its value's uses."""

    __slots__ = ("block", "operation")

    def __init__(self, operation: Operation, block: Block) -> None:
        super().__init__()
        self.operation = operation
        self.block = block

    @property
    def holder(self) -> Block | None:
        """The block whose incoming edges physically hold this one."""
        return None if self._list is None else self._list.owner

    def _link(self) -> None:
        self.block.incoming.append(self)


class Value:
    """An SSA value: the result of an operation or an argument of a block."""

    __slots__ = ("id", "index", "name", "type", "uses")

    def __init__(self, type_: Type, index: int, name: str | None = None) -> None:
        self.id = next(_ids)
        self.type = type_
        self.index = index
        self.name = name
        self.uses: LinkedList[Use] = LinkedList(self)

    @property
    def users(self) -> Iterator[Operation]:
        return (use.operation for use in self.uses)

    @property
    def has_uses(self) -> bool:
        return bool(self.uses)

    def replace_all_uses_with(self, other: Value) -> None:
        """Move every linked use to `other`, walking only this value's list."""
        if other is self:
            return
        for use in self.uses:
            use._unlink()
            use.value = other
            use._link()

    @property
    def defining_block(self) -> Block | None:
        raise AssertionError("abstract")


OwnEffects: TypeAlias = tuple[Effect[Value], ...]
"""What `Operation.effects` gives."""
OwnAccesses: TypeAlias = tuple[Touch[Value], ...]
"""What `Operation.accesses` gives."""


class OpResult(Value):
    """Result `index` of `owner`."""

    __slots__ = ("owner",)

    def __init__(self, owner: Operation, type_: Type, index: int, name: str | None = None) -> None:
        super().__init__(type_, index, name)
        self.owner = owner

    @property
    def defining_block(self) -> Block | None:
        return self.owner.parent


class BlockArgument(Value):
    """Argument `index` of `block`."""

    __slots__ = ("block",)

    def __init__(self, block: Block, type_: Type, index: int, name: str | None = None) -> None:
        super().__init__(type_, index, name)
        self.block = block

    @property
    def defining_block(self) -> Block | None:
        return self.block


class Operation(Node, Interfaces["Value"]):
    """Base of every op class. A subclass sets NAME and declares its fields (see `fields.py`)."""

    NAME = ""
    SPEC: OpSpec
    TERMINATOR = False
    """True for ops that end a block."""

    __slots__ = (
        "attributes",
        "edges",
        "id",
        "location",
        "operand_uses",
        "regions",
        "results",
        "segments",
    )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.SPEC = spec_of(cls)
        names = [name for name, _ in cls.SPEC.groups] + [f.name for f in cls.SPEC.attributes]
        hidden = [name for name in names if hasattr(Operation, name)]
        assert not hidden, f"{cls.__name__}: {hidden} would hide members that every op has"
        assert cls.TERMINATOR or not cls.SPEC.successors, f"{cls.__name__}: not a terminator"

    def __init__(
        self,
        *,
        result_types: Sequence[Type] = (),
        regions: Sequence[Region] | int = 0,
        location: SourceLocation | None = None,
        **fields: Any,
    ) -> None:
        super().__init__()
        self.id = next(_ids)
        self.location = location
        self.edges = [Edge(self, block) for block in self.SPEC.take_successors(fields)]
        operands, self.segments, self.attributes = self.SPEC.bind(fields)
        self.operand_uses = [Use(self, i, value) for i, value in enumerate(operands)]
        self.results = [OpResult(self, type_, i) for i, type_ in enumerate(result_types)]
        made = [Region() for _ in range(regions)] if isinstance(regions, int) else list(regions)
        self.regions: list[Region] = made
        for region in made:
            assert region.parent is None, "a region has one owner"
            region.parent = self

    # Structure -----------------------------------------------------------------------------

    @property
    def parent(self) -> Block | None:
        return None if self._list is None else self._list.owner

    @property
    def parent_op(self) -> Operation | None:
        """The operation whose region holds this one (None directly in a function)."""
        block = self.parent
        return None if block is None else block.parent_op

    @property
    def parent_function(self) -> Function | None:
        owner: Any = self
        while isinstance(owner, Operation):
            block = owner.parent
            region = None if block is None else block.parent
            owner = None if region is None else region.parent
        return owner if isinstance(owner, Function) else None

    @property
    def next(self) -> Operation | None:
        return cast("Operation | None", self._next)

    @property
    def previous(self) -> Operation | None:
        return cast("Operation | None", self._previous)

    @property
    def operands(self) -> list[Value]:
        return [use.value for use in self.operand_uses]

    @property
    def successors(self) -> list[Block]:
        """Where this terminator may go on, in the order of its successor groups."""
        return [edge.block for edge in self.edges]

    @property
    def result(self) -> OpResult:
        """The only result."""
        (result,) = self.results
        return result

    @property
    def body(self) -> Block:
        """The only block of the first region."""
        block = self.regions[0].blocks.first
        assert block is not None
        return block

    def walk(self) -> Iterator[Operation]:
        """This operation, then all nested ones, in order; tolerates erasing what was yielded."""
        return walk(iter((self,)))

    def links(self) -> Iterator[Use | Edge]:
        """The uses and edges of this operation and of all nested ones."""
        for op in self.walk():
            yield from op.operand_uses
            yield from op.edges

    def is_ancestor_of(self, other: Operation) -> bool:
        """True when `other` is this operation or lies in one of its regions."""
        current: Operation | None = other
        while current is not None and current is not self:
            current = current.parent_op
        return current is self

    # Mutation (used by the builder and the rewriter) -----------------------------------------

    def set_operand(self, index: int, value: Value) -> None:
        """Point slot `index` at `value`; constant time, the Use keeps its identity."""
        use = self.operand_uses[index]
        linked = use.is_linked
        use._unlink()
        use.value = value
        if linked:
            use._link()

    def set_successor(self, index: int, block: Block) -> None:
        """Point successor `index` at another block; its operands stay."""
        edge = self.edges[index]
        linked = edge.is_linked
        edge._unlink()
        edge.block = block
        if linked:
            edge._link()

    def set_group(self, name: str, values: Sequence[Value]) -> None:
        """Replace the operands of one declared group, adjusting the segments."""
        start, stop = self.SPEC.group_range(self.segments, name)
        block = self.parent
        attached = block is not None and block.is_attached
        for use in self.operand_uses[start:stop]:
            use._unlink()
        fresh = [Use(self, 0, value) for value in values]
        self.operand_uses[start:stop] = fresh
        for i, use in enumerate(self.operand_uses):
            use.index = i
        if attached:
            for use in fresh:
                use._link()
        self.segments = self.SPEC.resize(self.segments, name, len(values))

    def add_result(self, type_: Type, name: str | None = None) -> OpResult:
        """Append a result, for an operation whose region decides what it yields."""
        result = OpResult(self, type_, len(self.results), name)
        self.results.append(result)
        return result

    def add_region(self, region: Region) -> None:
        """Append a region without owner; below a function its operations' uses join the lists."""
        assert region.parent is None, "a region has one owner"
        region.parent = self
        self.regions.append(region)
        if region.is_attached:
            for op in region.operations():
                op._link_uses()

    def _link_uses(self) -> None:
        for link in self.links():
            link._link()

    def _unlink_uses(self) -> None:
        for link in self.links():
            link._unlink()

    def detach(self) -> Operation:
        """Remove from the parent; operand uses leave their values' lists, identities stay."""
        assert self._list is not None, "already detached"
        self._unlink_uses()
        self._list.remove(self)
        return self

    def move(self, block: Block, before: Operation | None = None) -> None:
        """Link elsewhere; inside a function no use is touched, whatever hangs below."""
        source = self.parent
        assert source is not None and before is not self
        owner = block.parent_op
        assert owner is None or not self.is_ancestor_of(owner), "a move into its own region"
        if source is block or source.is_attached == block.is_attached:
            source.operations.remove(self)
            block.operations.insert_before(before, self)
        else:
            self.detach()
            block.insert(self, before)

    def erase(self) -> None:
        """Detach for good. No result may have a linked use."""
        for result in self.results:
            assert not result.has_uses, f"{self.NAME}: result {result.index} is still used"
        self.detach()


class Block(Node):
    """A straight line of operations with typed arguments; `incoming` holds the edges to it."""

    __slots__ = ("arguments", "id", "incoming", "operations")

    def __init__(self, argument_types: Sequence[Type] = ()) -> None:
        super().__init__()
        self.id = next(_ids)
        self.operations: LinkedList[Operation] = LinkedList(self)
        self.incoming: LinkedList[Edge] = LinkedList(self)
        self.arguments: list[BlockArgument] = []
        for type_ in argument_types:
            self.add_argument(type_)

    @property
    def parent(self) -> Region | None:
        return None if self._list is None else self._list.owner

    @property
    def next(self) -> Block | None:
        return cast("Block | None", self._next)

    @property
    def parent_op(self) -> Operation | None:
        region = self.parent
        owner = None if region is None else region.parent
        return owner if isinstance(owner, Operation) else None

    def add_argument(self, type_: Type, name: str | None = None) -> BlockArgument:
        argument = BlockArgument(self, type_, len(self.arguments), name)
        self.arguments.append(argument)
        return argument

    def remove_argument(self, index: int) -> None:
        assert not self.arguments[index].has_uses
        del self.arguments[index]
        for i, argument in enumerate(self.arguments):
            argument.index = i

    def order_arguments(self, arguments: Sequence[Value]) -> None:
        """Put the arguments in this order."""
        place = {argument: i for i, argument in enumerate(arguments)}
        assert len(place) == len(self.arguments)
        self.arguments.sort(key=lambda argument: place[argument])
        for i, argument in enumerate(self.arguments):
            argument.index = i

    @property
    def is_attached(self) -> bool:
        """True when the block hangs below a function (its operations' uses are linked)."""
        return self.parent is not None and self.parent.is_attached

    def insert(self, operation: Operation, before: Operation | None = None) -> Operation:
        """Link a detached operation (and its nested ones) here; below a function their uses join
        the lists."""
        self.operations.insert_before(before, operation)
        if self.is_attached:
            operation._link_uses()
        return operation

    def append(self, operation: Operation) -> Operation:
        return self.insert(operation)

    @property
    def predecessors(self) -> Iterator[Block]:
        """The blocks whose terminators may go on here, one for each edge."""
        for edge in self.incoming:
            block = edge.operation.parent
            assert block is not None, "only linked terminators have edges"
            yield block

    @property
    def terminator(self) -> Operation:
        last = self.operations.last
        assert last is not None and last.TERMINATOR, "the block has no terminator"
        return last

    def walk(self) -> Iterator[Operation]:
        return walk(iter(self.operations))


class Region:
    """Blocks with one structural owner (an operation or a function)."""

    __slots__ = ("blocks", "parent")

    def __init__(self, blocks: Sequence[Block] = ()) -> None:
        self.parent: Operation | Function | None = None
        self.blocks: LinkedList[Block] = LinkedList(self)
        for block in blocks:
            self.blocks.append(block)

    def append(self, block: Block) -> Block:
        return self.insert(block)

    def insert(self, block: Block, before: Block | None = None) -> Block:
        """Link a detached block; below a function its operations' uses join the lists."""
        self.blocks.insert_before(before, block)
        if block.is_attached:
            for op in block.operations:
                op._link_uses()
        return block

    def operations(self) -> Iterator[Operation]:
        """Those directly in the blocks."""
        for block in self.blocks:
            yield from block.operations

    @property
    def is_attached(self) -> bool:
        """True when the region hangs below a function."""
        owner = self.parent
        if isinstance(owner, Operation):
            return owner.parent_function is not None
        return owner is not None

    @property
    def block(self) -> Block:
        """The only block."""
        block = self.blocks.first
        assert block is not None and len(self.blocks) == 1
        return block

    def walk(self) -> Iterator[Operation]:
        return walk(self.operations())


class Function(Node):
    """A named function; its arguments are those of the entry block."""

    __slots__ = ("attributes", "id", "location", "name", "region", "result_types")

    def __init__(
        self,
        name: str,
        argument_types: Sequence[Type] = (),
        result_types: Sequence[Type] = (),
        attributes: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.id = next(_ids)
        self.location: SourceLocation | None = None
        self.name = name
        self.region = Region([Block(argument_types)])
        self.region.parent = self
        self.result_types = tuple(result_types)
        self.attributes: dict[str, Any] = dict(attributes or {})

    @property
    def siblings(self) -> LinkedList[Function] | None:
        """The functions of the module that this one is in."""
        return self._list

    @property
    def body(self) -> Block:
        block = self.region.blocks.first
        assert block is not None
        return block

    @property
    def arguments(self) -> list[BlockArgument]:
        return self.body.arguments

    def walk(self) -> Iterator[Operation]:
        return self.region.walk()
