"""Moving runs of operations and whole blocks between parents, and when that is refused.

In: linked operations or blocks and where they shall stand. Out: the same objects, there. Where both
places hang below a function no use and no edge is touched; else they join or leave their lists.
"""

from __future__ import annotations

from tilenest.ir.core import Block, Operation, Region


def run_of(first: Operation, last: Operation) -> list[Operation]:
    """The operations of a block from one to another."""
    run = [first]
    while run[-1] is not last:
        following = run[-1].next
        assert following is not None, f"the {last.NAME} does not follow the {first.NAME}"
        run.append(following)
    return run


def refuse_own_region(run: list[Operation], block: Block) -> None:
    """Nothing may go below itself."""
    source, inside = run[0].parent, block.parent_op
    while inside is not None:
        assert inside.parent is not source or inside not in run, "a move into its own region"
        inside = inside.parent_op


def refuse_needed(block: Block) -> None:
    """A block may go when nothing outside of it needs it."""
    assert isinstance(block, Block), f"{block!r} is no block"
    assert block.parent is not None, "already detached"
    for edge in block.incoming:
        assert edge.operation.parent is block, "another block goes on with this one"
    values = [*block.arguments, *(value for op in block.operations for value in op.results)]
    for value in values:
        for user in value.users:
            assert _is_below(user, block), "a value of the block is used outside of it"


def _is_below(op: Operation, block: Block) -> bool:
    current: Operation | None = op
    while current is not None and current.parent is not block:
        current = current.parent_op
    return current is not None


def detach_block(block: Block) -> Block:
    """Take a block out of its region; uses and edges of its operations leave their lists."""
    assert block.parent is not None, "already detached"
    for op in block.operations:
        op._unlink_uses()
    block.parent.blocks.remove(block)
    return block


def move_block(block: Block, region: Region, before: Block | None = None) -> None:
    """Link a block elsewhere, with all it holds."""
    source = block.parent
    assert source is not None and before is not block
    assert not is_inside(region, block), "a move into its own region"
    if source is region or source.is_attached == region.is_attached:
        source.blocks.remove(block)
        region.blocks.insert_before(before, block)
    else:
        detach_block(block)
        region.insert(block, before)


def is_inside(region: Region, block: Block) -> bool:
    """Whether a region hangs below a block."""
    owner = region.parent
    while isinstance(owner, Operation):
        if owner.parent is block:
            return True
        owner = owner.parent_op
    return False
