"""Lane operations: splats, lane numbers, masks of leading lanes.

In: the `vector.*` operations. Out: shuffles and compares. A mask compares the count with the lane
numbers in lanes of 32 bits (8 where there are many), since lanes of 64 cost several registers.
"""

from tilenest.backends.llvm.emit_frame import Frame, known_index
from tilenest.backends.llvm.registers import lane_numbers, register_type
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import Value, vector_constant
from tilenest.dialects import LaneMask, Lanes, Splat
from tilenest.ir import VectorType

_MOST_WORD_LANES = 16
_MOST_BYTE_LANES = 127


def emit_splat(frame: Frame, op: Splat) -> None:
    f, value = frame.text, frame.value(op.value)
    lanes = register_type(op.result.type).lanes
    if value.type.element == "i1" and lanes > 1 and not frame.machine.has("avx512f"):
        # Lanes of one bit have no register there: spread them as words.
        spread = f.splat(f.sext(value, "i32"), lanes)
        frame.bind(op.results, [f.icmp("ne", spread, 0)])
        return
    frame.bind(op.results, [f.splat(value, lanes)])


def emit_lanes(frame: Frame, op: Lanes) -> None:
    kind = op.result.type
    assert isinstance(kind, VectorType)
    frame.bind(op.results, [lane_numbers(kind.dtype, range(kind.lanes))])


def emit_lane_mask(frame: Frame, op: LaneMask) -> None:
    lanes = register_type(op.result.type).lanes
    known = known_index(op.count)
    if known is not None:
        mask = vector_constant("i1", [int(lane < known) for lane in range(lanes)])
    else:
        mask = _leading_lanes(frame.text, frame.value(op.count), lanes)
    frame.bind(op.results, [mask])


def _leading_lanes(f: FunctionText, count: Value, lanes: int) -> Value:
    if lanes == 1:
        return f.icmp("sgt", count, 0)
    clamped = f.smin(f.smax(count, 0), lanes)
    element = "i8" if _MOST_WORD_LANES < lanes <= _MOST_BYTE_LANES else "i32"
    spread = f.splat(f.trunc(clamped, element), lanes)
    return f.icmp("sgt", spread, vector_constant(element, range(lanes)))
