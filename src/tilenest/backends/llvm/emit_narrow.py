"""Masked accesses of lanes for which the processor has no masks.

In: a pointer, a mask, what the other lanes are. Out: blocks and loads or stores that touch the
admitted lanes only. A mask of a fixed number of leading lanes becomes one access per power of two
in that number; any other is tested for "all lanes" first, and else its set bits are visited one by
one through a stack slot. LLVM itself would write a branch for every lane.
"""

from collections.abc import Callable, Iterator

from tilenest.backends.llvm.emit_frame import Frame
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import I1, Value, constant, llvm_type


def load_narrow(
    frame: Frame, pointer: Value, mask: Value, otherwise: Value, *, align: int, prefix: int | None
) -> Value:
    """The admitted lanes from memory, the others from `otherwise`; `prefix` is the number of
    leading lanes that `mask` admits, where it is fixed."""
    if prefix is not None:
        return _load_prefix(frame.text, pointer, otherwise, prefix, align)
    f, kind = frame.text, otherwise.type
    bits = _bits_of(f, mask)
    whole, partial, done = f.block("whole"), f.block("partial"), f.block("loaded")
    slot = frame.slot(kind)
    f.branch_if(f.icmp("eq", bits, -1), whole, partial)
    f.begin(whole)
    from_whole = f.load(kind, pointer, align=align)
    f.branch(done)
    f.begin(partial)
    f.store(otherwise, slot)
    _copy_lanes(f, bits, pointer, slot, kind.element)
    from_partial, filled = f.load(kind, slot), f.current
    f.branch(done)
    f.begin(done)
    return f.phi(kind, (from_whole, whole), (from_partial, filled)).value


def store_narrow(
    frame: Frame, value: Value, pointer: Value, mask: Value, *, align: int, prefix: int | None
) -> None:
    """Write the admitted lanes only."""
    f, kind = frame.text, value.type
    if prefix is not None:
        for start, size in _powers(prefix, kind.lanes):
            piece = f.shuffle(value, None, range(start, start + size))
            f.store(piece, f.getelementptr(kind.element, pointer, start), align=align)
        return
    bits = _bits_of(f, mask)
    whole, partial, done = f.block("whole"), f.block("partial"), f.block("stored")
    slot = frame.slot(kind)
    f.branch_if(f.icmp("eq", bits, -1), whole, partial)
    f.begin(whole)
    f.store(value, pointer, align=align)
    f.branch(done)
    f.begin(partial)
    f.store(value, slot)
    _copy_lanes(f, bits, slot, pointer, kind.element)
    f.branch(done)
    f.begin(done)


def _load_prefix(
    f: FunctionText, pointer: Value, otherwise: Value, count: int, align: int
) -> Value:
    result, kind = otherwise, otherwise.type
    lanes = range(kind.lanes)
    for start, size in _powers(count, kind.lanes):
        place = f.getelementptr(kind.element, pointer, start)
        piece = f.load(kind.with_lanes(size), place, align=align)
        taken = range(start, start + size)
        moved = f.shuffle(piece, None, [i - start if i in taken else -1 for i in lanes])
        result = f.shuffle(result, moved, [kind.lanes + i if i in taken else i for i in lanes])
    return result


def _powers(count: int, lanes: int) -> Iterator[tuple[int, int]]:
    """(start, size) of the blocks that make up the first `count` lanes, largest first."""
    left, start = min(max(count, 0), lanes), 0
    while left:
        size = 1 << (left.bit_length() - 1)
        yield start, size
        start, left = start + size, left - size


def _bits_of(f: FunctionText, mask: Value) -> Value:
    return f.bitcast(mask, llvm_type(f"i{mask.type.lanes}"))


def _copy_lanes(f: FunctionText, bits: Value, source: Value, target: Value, element: str) -> None:
    def copy(lane: Value) -> None:
        scalar = llvm_type(element)
        loaded = f.load(scalar, f.getelementptr(element, source, lane))
        f.store(loaded, f.getelementptr(element, target, lane))

    _for_each_bit(f, bits, copy)


def _for_each_bit(f: FunctionText, bits: Value, visit: Callable[[Value], None]) -> None:
    """Visit the numbers of the set bits, upwards."""
    loop, done = f.block("bits"), f.block("bits.done")
    entry = f.current
    f.branch_if(f.icmp("ne", bits, 0), loop, done)
    f.begin(loop)
    left = f.phi(bits.type, (bits, entry))
    name = f"llvm.cttz.{bits.type.suffix}"
    lowest = f.intrinsic(name, bits.type, (left.value, constant(I1, 1)))
    visit(_widened(f, lowest))
    rest = f.and_(left.value, f.sub(left.value, 1))
    left.add(rest, f.current)
    f.branch_if(f.icmp("ne", rest, 0), loop, done)
    f.begin(done)


def _widened(f: FunctionText, lane: Value) -> Value:
    if lane.type.bits == 64:
        return lane
    return f.zext(lane, "i64") if lane.type.bits < 64 else f.trunc(lane, "i64")
