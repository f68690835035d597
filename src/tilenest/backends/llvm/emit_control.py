"""Loops and branches as blocks and phis.

In: `loop.for` and `loop.if`. Out: rotated loops (a guard in front, the test at the end), which is
the shape LLVM's induction variables are strength-reduced in; carried values are phis, never memory.
"""

from tilenest.backends.llvm.emit_frame import Frame, known_index
from tilenest.backends.llvm.registers import register_type
from tilenest.backends.llvm.text import Block
from tilenest.backends.llvm.values import I64, Value
from tilenest.dialects import For, LoopIf


def emit_for(frame: Frame, op: For) -> None:
    if _runs_once(op):
        _emit_single(frame, op)
        return
    f = frame.text
    lower, upper, step = (frame.value(value) for value in (op.lower, op.upper, op.step))
    initial = [frame.value(value) for value in op.initial]
    body, done = f.block("loop"), f.block("done")
    skipping: Block | None = None
    if _surely_runs(op):
        f.branch(body)
    else:
        skipping = f.current
        f.branch_if(f.icmp("slt", lower, upper), body, done)
    entry = f.current
    f.begin(body)
    counter = f.phi(I64, (lower, entry))
    states = [f.phi(value.type, (value, entry)) for value in initial]
    frame.bind(op.body.arguments, [counter.value, *(state.value for state in states)])
    carried = frame.emit_block(op.body)
    following = f.add(counter.value, step, "nsw")
    latch = f.current
    counter.add(following, latch)
    for state, value in zip(states, carried, strict=True):
        state.add(value, latch)
    f.branch_if(f.icmp("slt", following, upper), body, done)
    f.begin(done)
    frame.bind(op.results, [_leaving(frame, value, latch) for value in carried])
    if skipping is not None:
        for phi, value in zip(f.current.phis, initial, strict=True):
            phi.add(value, skipping)


def _leaving(frame: Frame, value: Value, latch: Block) -> Value:
    return frame.text.phi(value.type, (value, latch)).value


def _emit_single(frame: Frame, op: For) -> None:
    frame.bind(op.body.arguments, [frame.value(value) for value in (op.lower, *op.initial)])
    frame.bind(op.results, frame.emit_block(op.body))


def _surely_runs(op: For) -> bool:
    lower, upper = known_index(op.lower), known_index(op.upper)
    return lower is not None and upper is not None and lower < upper


def _runs_once(op: For) -> bool:
    lower, upper, step = known_index(op.lower), known_index(op.upper), known_index(op.step)
    if lower is None or upper is None or step is None:
        return False
    return lower < upper <= lower + step


def emit_branch(frame: Frame, op: LoopIf) -> None:
    f = frame.text
    then, otherwise, merge = f.block("then"), f.block("else"), f.block("merge")
    f.branch_if(frame.value(op.condition), then, otherwise)
    incoming = []
    for block, region in zip((then, otherwise), op.regions, strict=True):
        f.begin(block)
        incoming.append((frame.emit_block(region.block), f.current))
        f.branch(merge)
    f.begin(merge)
    merged = [f.phi(register_type(result.type)) for result in op.results]
    for values, block in incoming:
        for phi, value in zip(merged, values, strict=True):
            phi.add(value, block)
    frame.bind(op.results, [phi.value for phi in merged])
