"""Scratch memory for the threads of the pool, as LLVM text.

In: the pool's module. Out: two exported functions, `ptr tilenest_pool_acquire(i64 bytes)` and
`void tilenest_pool_release(ptr arena)`, for the pool and for code that runs outside a job.
Free arenas wait in an array of slots; taking and returning one is an atomic exchange, so any number
of threads may do it at once and none waits. An arena that proves too small is replaced by a larger
one: after the first calls nothing is allocated. Arenas begin at 64-byte boundaries; the line before
the first byte holds the capacity.
"""

from tilenest.backends.llvm.pool_names import ACQUIRE, RELEASE
from tilenest.backends.llvm.text import Block, FunctionText, ModuleText
from tilenest.backends.llvm.values import I64, POINTER, Value, constant, zero

_LINE = 64
_PAGE = 4096
_SLOTS = 128
_NULL = zero(POINTER)


def write_arenas(module: ModuleText) -> None:
    """Define the slots and both functions."""
    slots = module.global_variable("tilenest_pool_slots", f"[{_SLOTS} x ptr]", align=_LINE)
    _write_acquire(module, slots)
    _write_release(module, slots)


def _write_acquire(module: ModuleText, slots: Value) -> None:
    """Null for 0 bytes, and when the system has no memory."""
    f = module.function(ACQUIRE, POINTER, [(I64, "")])
    (size,) = f.parameters
    nothing, start = f.block("nothing"), f.block("start")
    f.branch_if(f.icmp("eq", size, 0), nothing, start)
    f.begin(nothing)
    f.ret(_NULL)
    f.begin(start)
    loop, taken, following, allocate = map(f.block, ("scan", "taken", "following", "allocate"))
    f.branch(loop)

    f.begin(loop)
    index = f.phi(I64, (0, start))
    slot = f.getelementptr("ptr", slots, index.value)
    arena = _take(f, slot, following)
    f.branch_if(f.icmp("eq", arena, _NULL), following, taken)

    f.begin(taken)
    fits = f.icmp("uge", f.load(I64, _header(f, arena), align=8), size)
    found, too_small = f.block("found"), f.block("too_small")
    f.branch_if(fits, found, too_small)
    f.begin(found)
    f.ret(arena)
    f.begin(too_small)
    f.call("free", None, [_header(f, arena)])
    f.branch(following)

    f.begin(following)
    next_index = f.add(index.value, 1)
    index.add(next_index, following)
    f.branch_if(f.icmp("ult", next_index, _SLOTS), loop, allocate)
    f.begin(allocate)
    _allocate(f, size)


def _take(f: FunctionText, slot: Value, if_empty: Block) -> Value:
    """What the slot holds, leaving it empty; an empty slot is only read."""
    exchange = f.block("exchange")
    seen = f.atomic_load(POINTER, slot, "monotonic", align=8)
    f.branch_if(f.icmp("eq", seen, _NULL), if_empty, exchange)
    f.begin(exchange)
    return f.atomicrmw("xchg", slot, _NULL, "acq_rel")


def _allocate(f: FunctionText, size: Value) -> None:
    """Return a new arena of whole pages, or null."""
    whole = f.and_(f.add(size, _LINE + _PAGE - 1), -_PAGE)
    header = f.call("aligned_alloc", POINTER, [constant(I64, _LINE), whole])
    failed, made = f.block("failed"), f.block("made")
    f.branch_if(f.icmp("eq", header, _NULL), failed, made)
    f.begin(failed)
    f.ret(_NULL)
    f.begin(made)
    f.store(f.sub(whole, _LINE), header, align=8)
    f.ret(f.getelementptr("i8", header, _LINE))


def _write_release(module: ModuleText, slots: Value) -> None:
    f = module.function(RELEASE, None, [(POINTER, "")])
    (arena,) = f.parameters
    start, loop, following = f.current, f.block("scan"), f.block("following")
    full, done = f.block("full"), f.block("done")
    f.branch_if(f.icmp("eq", arena, _NULL), done, loop)
    f.begin(loop)
    index = f.phi(I64, (0, start))
    slot = f.getelementptr("ptr", slots, index.value)
    _, stored = f.cmpxchg(slot, _NULL, arena, "acq_rel", "monotonic")
    f.branch_if(stored, done, following)
    f.begin(following)
    next_index = f.add(index.value, 1)
    index.add(next_index, following)
    f.branch_if(f.icmp("ult", next_index, _SLOTS), loop, full)
    f.begin(full)
    f.call("free", None, [_header(f, arena)])
    f.branch(done)
    f.begin(done)
    f.ret()


def _header(f: FunctionText, arena: Value) -> Value:
    return f.getelementptr("i8", arena, -_LINE)
