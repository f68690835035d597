"""Handing a range of work to the pool.

In: `loop.launch`. Out: the captured values in a record on the stack, a call of the pool, and a
small function that unpacks the record and runs the callee on one chunk. The pool decides who runs
which chunk; a chunk is large enough to be worth handing over, and there are enough of them that a
late worker costs little. Neither changes results: every item is computed the same way. The first
word of the record is 0 until some chunk fails.
"""

import math
import re
from collections.abc import Sequence

from tilenest.analysis import ALONE_NS, CHUNK_NS, MOST_CHUNKS
from tilenest.backends.llvm.emit_frame import Frame
from tilenest.backends.llvm.pool_names import RUN
from tilenest.backends.llvm.registers import from_memory, memory_type, to_memory
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import I8, I32, I64, POINTER, LlvmType, Value, constant
from tilenest.dialects import Launch

_FIELD_BYTES = 8
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_.]")


def machine_symbol(name: str) -> str:
    """The LLVM name of a Machine function, apart from every C name; other characters than LLVM
    takes unquoted are spelled as their numbers."""
    return "machine." + _NOT_PLAIN.sub(lambda found: f"${ord(found[0]):x}$", name)


def emit_launch(frame: Frame, op: Launch) -> None:
    f = frame.text
    captured = [frame.value(value) for value in op.captured]
    if frame.fault is not None:
        captured.append(frame.fault)
    kinds = [value.type for value in captured]
    offsets, size = _layout(kinds)
    record = frame.slot(I8, size, align=_FIELD_BYTES)
    f.store(constant(I32, 0), record, align=_FIELD_BYTES)
    for value, offset in zip(captured, offsets, strict=True):
        place = f.getelementptr("i8", record, offset)
        f.store(to_memory(f, value), place, align=_FIELD_BYTES)
    chunk = _chunk_function(frame, op.callee, kinds, offsets)
    total = frame.value(op.total)
    grain = _grain(f, total, op.cost_ns)
    scratch = constant(I64, op.scratch_bytes)
    started = f.call(RUN, I32, (chunk, record, total, grain, scratch))
    finished = f.load(I32, record, align=_FIELD_BYTES)
    frame.return_unless_zero(f.or_(started, finished))


def _layout(kinds: Sequence[LlvmType]) -> tuple[list[int], int]:
    """Byte offset of every captured value, behind the status, and of the end."""
    offsets, end = [], _FIELD_BYTES
    for kind in kinds:
        offsets.append(end)
        size = memory_type(kind).bits // 8 * kind.lanes
        end += -(-size // _FIELD_BYTES) * _FIELD_BYTES
    return offsets, end


def _chunk_function(
    frame: Frame, callee: str, kinds: Sequence[LlvmType], offsets: Sequence[int]
) -> Value:
    """void(record, begin, end, scratch): the callee with the captured values read back."""
    name = frame.unique_symbol(machine_symbol(f"chunk.{callee}"))
    parameters = ((POINTER, ""), (I64, ""), (I64, ""), (POINTER, ""))
    f = frame.text.module.function(
        name, None, parameters, linkage="internal", attributes=frame.machine.function_attributes
    )
    record, begin, end, scratch = f.parameters
    captured = []
    for kind, offset in zip(kinds, offsets, strict=True):
        place = f.getelementptr("i8", record, offset)
        loaded = f.load(memory_type(kind), place, align=_FIELD_BYTES)
        captured.append(from_memory(f, loaded, kind))
    status = f.call(machine_symbol(callee), I32, (begin, end, scratch, *captured))
    failed, done = f.block("failed"), f.block("done")
    f.branch_if(f.icmp("eq", status, 0), done, failed)
    f.begin(failed)
    f.atomic_store(status, record, "monotonic", align=_FIELD_BYTES)
    f.branch(done)
    f.begin(done)
    f.ret()
    return Value(POINTER, f"@{name}")


def _grain(f: FunctionText, total: Value, cost_ns: float) -> Value:
    """Items a chunk: all of them when that is little work, else at least 20 us worth."""
    cost = max(cost_ns, 1e-3)
    least = math.ceil(CHUNK_NS / cost)
    alone = math.ceil(ALONE_NS / cost)
    share = f.lshr(f.add(total, MOST_CHUNKS - 1), MOST_CHUNKS.bit_length() - 1)
    grain = f.smax(share, least)
    return f.select(f.icmp("slt", total, alone), f.smax(total, 1), grain)
