"""Addresses, loads and stores of scalars and lanes, gathers and scatters.

In: the `memory.*` operations. Out: LLVM loads and stores. Masks of 32 and 64 bit lanes are LLVM's
masked accesses; those of narrower lanes too where the processor has them, else `emit_narrow`. A
masked scalar access goes to a dummy place when it must not happen, so it needs no branch.
"""

from tilenest.backends.llvm.emit_frame import Frame, known_index
from tilenest.backends.llvm.emit_narrow import load_narrow, store_narrow
from tilenest.backends.llvm.registers import from_memory, memory_type, register_type, to_memory
from tilenest.backends.llvm.values import LlvmType, Value, constant, llvm_type, zero
from tilenest.dialects import (
    AddressLoad,
    AddressStore,
    Gather,
    LaneMask,
    Offset,
    Scatter,
)
from tilenest.ir import OpResult
from tilenest.ir import Value as IrValue


def emit_offset(frame: Frame, op: Offset) -> None:
    f, pointer = frame.text, frame.value(op.pointer)
    known = known_index(op.index)
    if known is not None:
        total = known * op.scale + op.constant
        place = f.getelementptr("i8", pointer, total) if total else pointer
    else:
        place = _indexed(frame, pointer, frame.value(op.index), op.scale)
        if op.constant:
            place = f.getelementptr("i8", place, op.constant)
    frame.bind(op.results, [place])


def _indexed(frame: Frame, pointer: Value, index: Value, scale: int) -> Value:
    """The processor multiplies by an element's size in the address itself."""
    f = frame.text
    if scale in (1, 2, 4, 8):
        return f.getelementptr(f"i{8 * scale}", pointer, index)
    return f.getelementptr("i8", pointer, f.mul(index, scale))


def emit_load(frame: Frame, op: AddressLoad) -> None:
    f, pointer = frame.text, frame.value(op.pointer)
    register = register_type(op.result.type)
    kind = memory_type(register)
    if op.mask is None:
        loaded = f.load(kind, pointer, align=op.align)
        frame.bind(op.results, [from_memory(f, loaded, register)])
        return
    mask = _mask_of(frame, op.mask, register.lanes)
    otherwise = zero(register) if op.otherwise is None else frame.value(op.otherwise)
    if register.lanes == 1:
        place = f.select(mask, pointer, frame.dummy())
        loaded = from_memory(f, f.load(kind, place, align=op.align), register)
        result = f.select(mask, loaded, otherwise)
    elif _has_masks(frame, kind, op.mask):
        filling = to_memory(f, otherwise)
        loaded = f.masked_load(kind, pointer, mask, filling, align=op.align)
        result = from_memory(f, loaded, register)
    else:
        filling = to_memory(f, otherwise)
        count = prefix_length(op.mask)
        loaded = load_narrow(frame, pointer, mask, filling, align=op.align, prefix=count)
        result = from_memory(f, loaded, register)
    frame.bind(op.results, [result])


def emit_store(frame: Frame, op: AddressStore) -> None:
    f, pointer = frame.text, frame.value(op.pointer)
    value = to_memory(f, frame.value(op.value))
    if op.mask is None:
        f.store(value, pointer, align=op.align)
        return
    mask = _mask_of(frame, op.mask, value.type.lanes)
    if value.type.lanes == 1:
        place = f.select(mask, pointer, frame.dummy())
        f.store(value, place, align=op.align)
    elif _has_masks(frame, value.type, op.mask):
        f.masked_store(value, pointer, mask, align=op.align)
    else:
        count = prefix_length(op.mask)
        store_narrow(frame, value, pointer, mask, align=op.align, prefix=count)


def _has_masks(frame: Frame, kind: LlvmType, mask: IrValue) -> bool:
    """Whether LLVM turns a mask on such lanes into instructions rather than branches.

    A constant mask on narrow lanes is no case for it: LLVM 22 writes 32 bits where one lane of 16
    is admitted (a truncated vector's masked store becomes a store of the untruncated lane)."""
    if kind.bits >= 32:
        return frame.machine.has("avx") or frame.machine.has("sve")
    if prefix_length(mask) is not None:
        return False
    return frame.machine.has("avx512bw") and frame.machine.has("avx512vl")


def _mask_of(frame: Frame, mask: IrValue, lanes: int) -> Value:
    value = frame.value(mask)
    return value if value.type.lanes == lanes else frame.text.splat(value, lanes)


def prefix_length(mask: IrValue) -> int | None:
    """How many leading lanes a mask admits, where that is a fixed number."""
    owner = mask.owner if isinstance(mask, OpResult) else None
    return known_index(owner.count) if isinstance(owner, LaneMask) else None


def emit_gather(frame: Frame, op: Gather) -> None:
    f = frame.text
    register = register_type(op.result.type)
    kind = memory_type(register)
    mask = None if op.mask is None else _mask_of(frame, op.mask, kind.lanes)
    filling = zero(kind) if op.otherwise is None else to_memory(f, frame.value(op.otherwise))
    base, offsets = frame.value(op.pointer), frame.value(op.offsets)
    if kind.lanes > 1 and kind.bits >= 32 and _has_gathers(frame):
        everywhere = constant(llvm_type("i1", kind.lanes), 1)
        loaded = f.masked_gather(
            kind,
            _indexed(frame, base, offsets, op.scale),
            everywhere if mask is None else mask,
            filling,
            align=kind.bits // 8,
        )
    else:
        loaded = _gather_lanes(frame, kind, base, op.scale, offsets, mask, filling)
    frame.bind(op.results, [from_memory(f, loaded, register)])


def _has_gathers(frame: Frame) -> bool:
    return frame.machine.has("avx2")


def _has_scatters(frame: Frame) -> bool:
    return frame.machine.has("avx512f")


def _gather_lanes(
    frame: Frame,
    kind: LlvmType,
    base: Value,
    scale: int,
    offsets: Value,
    mask: Value | None,
    otherwise: Value,
) -> Value:
    """Lane by lane: for narrow lanes, and for processors that have nothing better."""
    f, scalars = frame.text, []
    for lane in range(kind.lanes):
        place = _indexed(frame, base, f.extract_element(offsets, lane), scale)
        if mask is None:
            scalars.append(f.load(kind.with_lanes(1), place, align=kind.bits // 8))
            continue
        admitted = f.extract_element(mask, lane)
        place = f.select(admitted, place, frame.dummy())
        loaded = f.load(kind.with_lanes(1), place, align=kind.bits // 8)
        scalars.append(f.select(admitted, loaded, f.extract_element(otherwise, lane)))
    return f.from_lanes(scalars) if kind.lanes > 1 else scalars[0]


def emit_scatter(frame: Frame, op: Scatter) -> None:
    f = frame.text
    value = to_memory(f, frame.value(op.value))
    mask = None if op.mask is None else _mask_of(frame, op.mask, value.type.lanes)
    base, offsets = frame.value(op.pointer), frame.value(op.offsets)
    kind = value.type
    if kind.lanes > 1 and kind.bits >= 32 and _has_scatters(frame):
        everywhere = constant(llvm_type("i1", kind.lanes), 1)
        places = _indexed(frame, base, offsets, op.scale)
        f.masked_scatter(value, places, everywhere if mask is None else mask, align=kind.bits // 8)
        return
    for lane in range(kind.lanes):
        place = _indexed(frame, base, f.extract_element(offsets, lane), op.scale)
        if mask is not None:
            place = f.select(f.extract_element(mask, lane), place, frame.dummy())
        f.store(f.extract_element(value, lane), place, align=kind.bits // 8)
