"""Times the edits of a rewriter on modules of different size.

Run `python tools/edit_times.py [OPERATIONS ...]`. In: sizes, by default 1,000 and 100,000. Out: a
line for every kind of edit with its median time at each size and the ratio of the last to the
first. An edit should cost what it touches and nothing of the rest: exits with 1 when all edits
together take more than 1.5 times as long in the largest module as in the smallest.
"""

import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence

from tilenest.dialects import Apply, If, Return, Yield
from tilenest.ir import BOOL, INDEX, Block, Function, Module, Operation, Region, Rewriter, Value

IN_A_NEST = 50
EDITS = 2000
MOST = 1.5


class Subject:
    """A module of nests, a rewriter, and operations picked by chance."""

    def __init__(self, size: int) -> None:
        self.chance = random.Random(1)
        self.module = Module()
        self.rewriter = Rewriter()
        function = self.module.add(Function("f", [INDEX, INDEX, BOOL]))
        self.arguments: list[Value] = list(function.arguments)
        self.operations: list[Operation] = []
        while len(self.operations) < size:
            function.body.append(self.nest())
        function.body.append(Return())

    def nest(self) -> Operation:
        """A conditional around a straight line of work."""
        block = Block()
        recent = self.arguments[:2]
        for _ in range(IN_A_NEST):
            operands = self.chance.choices(recent[-4:], k=2)
            op = block.append(Apply(function="any", arguments=operands, result_types=[INDEX]))
            self.operations.append(op)
            recent = [*recent[-3:], op.results[0]]
        block.append(Yield())
        return If(condition=self.arguments[2], regions=[Region([block])])

    def any(self) -> Operation:
        return self.chance.choice(self.operations)


def insertion(subject: Subject) -> Callable[[], object]:
    anchor = subject.any()
    op = Apply(function="any", arguments=anchor.operands, result_types=[INDEX])
    return lambda: subject.rewriter.insert_before(op, anchor)


def erasure(subject: Subject) -> Callable[[], object]:
    op = subject.rewriter.clone_before(subject.any(), subject.any(), {})
    return lambda: subject.rewriter.erase(op)


def move(subject: Subject) -> Callable[[], object]:
    op, anchor = subject.any(), subject.any()
    while op is anchor:
        anchor = subject.any()
    return lambda: subject.rewriter.move_before(op, anchor)


def move_of_a_nest(subject: Subject) -> Callable[[], object]:
    nest, anchor = subject.any().parent_op, subject.any().parent_op
    while anchor is nest:
        anchor = subject.any().parent_op
    assert nest is not None and anchor is not None
    return lambda: subject.rewriter.move_before(nest, anchor)


def operand(subject: Subject) -> Callable[[], object]:
    op, value = subject.any(), subject.any().results[0]
    return lambda: subject.rewriter.set_operand(op, 0, value)


def operands(subject: Subject) -> Callable[[], object]:
    op, values = subject.any(), subject.any().results * 3
    return lambda: subject.rewriter.set_operands(op, "arguments", values)


def replacement(subject: Subject) -> Callable[[], object]:
    old = subject.any()
    new = subject.rewriter.clone_before(old, old, {})
    subject.rewriter.set_operand(subject.any(), 0, new.results[0])
    return lambda: subject.rewriter.replace_all_uses(new.results[0], old.results[0])


def attribute(subject: Subject) -> Callable[[], object]:
    op = subject.any()
    return lambda: subject.rewriter.set_attribute(op, "function", "neg")


def undone(subject: Subject) -> Callable[[], object]:
    op, anchor, value = subject.any(), subject.any(), subject.any().results[0]

    def edit() -> None:
        with subject.rewriter.transaction() as opened:
            subject.rewriter.insert_before(Apply(function="any", arguments=[value]), anchor)
            subject.rewriter.set_operand(op, 0, value)
            opened.rollback()

    return edit


KINDS = (
    insertion,
    erasure,
    move,
    move_of_a_nest,
    operand,
    operands,
    replacement,
    attribute,
    undone,
)


def median_times(sizes: Sequence[int], edits: int = EDITS) -> list[dict[str, float]]:
    """Seconds of the median edit of each kind at each size, kinds and sizes taken in turns."""
    subjects = list(map(Subject, sizes))
    times = [{kind.__name__: list[float]() for kind in KINDS} for _ in sizes]
    gc.collect()
    gc.disable()
    for _ in range(edits):
        for kind in KINDS:
            for subject, found in zip(subjects, times, strict=True):
                edit = kind(subject)
                start = time.perf_counter()
                edit()
                found[kind.__name__].append(time.perf_counter() - start)
    gc.enable()
    return [{name: statistics.median(found) for name, found in table.items()} for table in times]


def main(sizes: list[int]) -> int:
    tables = median_times(sizes)
    print(f"{'edit':16}" + "".join(f"{size:>12,}" for size in sizes) + "   ratio")
    totals = [sum(table.values()) for table in tables]
    rows = [(kind.__name__, [table[kind.__name__] for table in tables]) for kind in KINDS]
    for name, found in [*rows, ("all", totals)]:
        cells = "".join(f"{seconds * 1e6:9.2f} us" for seconds in found)
        print(f"{name.replace('_', ' '):16}{cells}   {found[-1] / found[0]:5.2f}")
    return int(totals[-1] > MOST * totals[0])


if __name__ == "__main__":
    sys.exit(main([int(size) for size in sys.argv[1:]] or [1000, 100_000]))
