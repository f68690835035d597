"""Who writes straight into a buf that exists already: the update in place of a carried tile.

In: a value to be computed, the buf it should land in, and the old state that lives there. Out: the
producers that may write the buf directly. That is right when nothing reads the old state after the
producer starts writing, and the producer itself reads it only in the cell it then writes.
"""

from __future__ import annotations

from tilenest.analysis import ancestor_in, is_same_place
from tilenest.dialects import If, MapReducePost, Serial
from tilenest.ir import Block, Operation, OpResult, Value
from tilenest.layouts import DimRef


class Claims:
    """Destinations promised to values that are not converted yet."""

    def __init__(self) -> None:
        self._bufs: dict[Value, Value] = {}

    def taken(self, value: Value) -> Value | None:
        """The buf that `value` must be written to."""
        return self._bufs.get(value)

    def claim(self, value: Value, buf: Value, old: Value | None, block: Block) -> None:
        """Let the producer of `value`, directly in `block`, write `buf` if that is right."""
        if not isinstance(value, OpResult) or value.owner.parent is not block:
            return
        producer = value.owner
        if value in self._bufs or not isinstance(producer, MapReducePost | Serial | If):
            return
        if isinstance(producer, MapReducePost) and producer.outputs:
            return
        if old is not None and not _old_is_dead(producer, value.index, old, block):
            return
        self._bufs[value] = buf
        if isinstance(producer, MapReducePost):
            self._claim_source(producer, value.index, buf, old, block)
        elif isinstance(producer, Serial):
            self._claim_initial(producer, value.index, buf, old, block)
        elif isinstance(producer, If):
            for region in producer.regions:
                branch = region.block
                self.claim(branch.terminator.operands[value.index], buf, old, branch)

    def _claim_source(
        self, work: MapReducePost, result: int, buf: Value, old: Value | None, block: Block
    ) -> None:
        """One operand that the work reads for the last time, cell by cell, may live there too."""
        for use in work.operand_uses:
            source = use.value
            if source.type is not work.results[result].type or self.taken(source) is not None:
                continue
            if not _reads_own_cell(work, result, use.index) or not _is_last_use(source, work):
                continue
            self.claim(source, buf, old, block)
            if self.taken(source) is buf:
                return

    def _claim_initial(
        self, loop: Serial, position: int, buf: Value, old: Value | None, block: Block
    ) -> None:
        """The loop's state starts in the buf when its initial value is made for it alone."""
        initial = loop.initial[position]
        if sum(1 for _ in initial.uses) == 1:
            self.claim(initial, buf, old, block)


def _is_last_use(value: Value, work: MapReducePost) -> bool:
    """Whether nothing but one slot of `work` reads the value when `work` runs, or later."""
    assert work.parent is not None
    slots = 0
    for use in value.uses:
        holder = ancestor_in(work.parent, use.operation)
        if holder is work:
            slots += 1
        elif holder is None or not _comes_before(holder, work):
            return False
    return slots == 1


def _old_is_dead(producer: Operation, result: int, old: Value, block: Block) -> bool:
    for use in old.uses:
        holder = ancestor_in(block, use.operation)
        if holder is None or _comes_before(holder, producer):
            continue
        if holder is not producer:
            return False
        if isinstance(producer, If):
            # The branches are judged one by one; their other reads come before the last write.
            continue
        if use.operation is not producer or not _reads_own_cell(producer, result, use.index):
            return False
    return True


def _reads_own_cell(producer: Operation, result: int, operand: int) -> bool:
    """Whether an operand slot is read only where the result is then written."""
    if isinstance(producer, Serial):
        start, _ = producer.SPEC.group_range(producer.segments, "initial")
        return operand == start + result
    assert isinstance(producer, MapReducePost)
    wanted = tuple(DimRef(d) for d in producer.spec(result).dims)
    for group in ("input", "seed", "post"):
        start, stop = producer.SPEC.group_range(producer.segments, f"{group}s")
        if start <= operand < stop:
            access = producer.access(group, operand - start)
            return is_same_place(access.map.results, wanted, producer.extents)
    return False


def _comes_before(first: Operation, last: Operation) -> bool:
    op = last.previous
    while op is not None:
        if op is first:
            return True
        op = op.previous
    return False
