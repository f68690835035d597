"""Work for the pool's tests, as native code: no interpreter lock between the threads.

Out: addresses of bodies `void(context, begin, end, scratch)`. Every context is an array that a body
writes one element an item (or a chunk) into.
"""

from collections.abc import Callable
from functools import cache

from tilenest.backends.llvm.native_pool import NativePool, compile_pool, load_pool
from tilenest.backends.llvm.object import (
    LoadedObject,
    compile_object,
    host_machine,
    load_object,
    process_symbols,
)
from tilenest.backends.llvm.pool_names import RUN
from tilenest.backends.llvm.text import FunctionText, ModuleText
from tilenest.backends.llvm.values import I8, I32, I64, POINTER, Value, constant

SCRATCH_BYTES = 5000
INNER_ITEMS = 10
_BODY = [(POINTER, ""), (I64, ""), (I64, ""), (POINTER, "")]

Item = Callable[[FunctionText, Value, Value, Value], None]


@cache
def native_pool() -> NativePool:
    """One pool for all tests, as for all kernels of a process."""
    return load_pool(compile_pool())


@cache
def bodies() -> LoadedObject:
    """`count`, `tally`, `record_chunk`, `record_thread`, `record_control`, `record_scratch`,
    `fill_scratch` and `nest`; `set_control(word)` and `get_control()` for the calling thread."""
    machine = host_machine()
    module = ModuleText(triple=machine.triple, data_layout=machine.data_layout)
    _each_item(module, "count", _count)
    _each_item(module, "tally", _tally)
    _each_item(module, "record_thread", _record_thread)
    _each_item(module, "record_control", _record_control)
    _each_item(module, "record_scratch", _record_scratch)
    _each_item(module, "fill_scratch", _fill_scratch)
    _each_item(module, "nest", _nest)
    _record_chunk(module)
    _control_functions(module)
    symbols = dict(native_pool().symbols) | process_symbols(["pthread_self"])
    return load_object(compile_object(module.render()), symbols)


def _each_item(module: ModuleText, name: str, item: Item) -> None:
    f = module.function(name, None, _BODY)
    context, begin, end, scratch = f.parameters
    entry, body, done = f.current, f.block("body"), f.block("done")
    f.branch(body)
    f.begin(body)
    index = f.phi(I64, (begin, entry))
    item(f, context, index.value, scratch)
    following = f.add(index.value, 1)
    index.add(following, f.current)
    f.branch_if(f.icmp("slt", following, end), body, done)
    f.begin(done)
    f.ret()


def _count(f: FunctionText, context: Value, index: Value, _: Value) -> None:
    _tally(f, context, index, _)
    _dawdle(f, 200)


def _tally(f: FunctionText, context: Value, index: Value, _: Value) -> None:
    f.atomicrmw("add", f.getelementptr("i64", context, index), constant(I64, 1), "monotonic")


def _dawdle(f: FunctionText, turns: int) -> None:
    before, wait, after = f.current, f.block("wait"), f.block("after")
    f.branch(wait)
    f.begin(wait)
    turn = f.phi(I64, (0, before))
    f.atomicrmw("add", f.alloca(I32, align=4), constant(I32, 1), "monotonic")
    turn.add(f.add(turn.value, 1), wait)
    f.branch_if(f.icmp("slt", turn.value, turns), wait, after)
    f.begin(after)


def _record_thread(f: FunctionText, context: Value, index: Value, _: Value) -> None:
    identity = f.call("pthread_self", I64, [])
    f.store(identity, f.getelementptr("i64", context, index), align=8)
    _dawdle(f, 2000)


def _record_control(f: FunctionText, context: Value, index: Value, _: Value) -> None:
    f.store(_control(f), f.getelementptr("i64", context, index), align=8)
    _dawdle(f, 500)


def _control(f: FunctionText) -> Value:
    place = f.alloca(I32, align=4)
    f.intrinsic("llvm.x86.sse.stmxcsr", None, [place])
    return f.zext(f.load(I32, place, align=4), "i64")


def _record_scratch(f: FunctionText, context: Value, index: Value, scratch: Value) -> None:
    f.store(f.ptrtoint(scratch), f.getelementptr("i64", context, index), align=8)


def _fill_scratch(f: FunctionText, context: Value, index: Value, scratch: Value) -> None:
    """Fill it with the item's number, wait, and count the bytes another thread changed."""
    mark = f.trunc(index, "i8")

    def marked(place: Value, total: Value) -> Value:
        f.store(mark, place, align=1)
        return total

    _each_byte(f, scratch, marked)
    _dawdle(f, 300)

    def changed(place: Value, total: Value) -> Value:
        is_other = f.icmp("ne", f.load(I8, place, align=1), mark)
        return f.add(total, f.zext(is_other, "i64"))

    total = _each_byte(f, scratch, changed)
    f.store(total, f.getelementptr("i64", context, index), align=8)


def _each_byte(f: FunctionText, start: Value, step: Callable[[Value, Value], Value]) -> Value:
    before, loop, after = f.current, f.block("byte"), f.block("bytes_done")
    f.branch(loop)
    f.begin(loop)
    offset, total = f.phi(I64, (0, before)), f.phi(I64, (0, before))
    result = step(f.getelementptr("i8", start, offset.value), total.value)
    following = f.add(offset.value, 1)
    offset.add(following, loop)
    total.add(result, loop)
    f.branch_if(f.icmp("slt", following, SCRATCH_BYTES), loop, after)
    f.begin(after)
    return result


def _nest(f: FunctionText, context: Value, index: Value, _: Value) -> None:
    """Run `count` over INNER_ITEMS elements of its own."""
    row = f.getelementptr("i64", context, f.mul(index, INNER_ITEMS))
    arguments = [Value(POINTER, "@count"), row, *(constant(I64, n) for n in (INNER_ITEMS, 3, 0))]
    f.call(RUN, I32, arguments)


def _record_chunk(module: ModuleText) -> None:
    f = module.function("record_chunk", None, _BODY)
    context, begin, end, _ = f.parameters
    f.store(end, f.getelementptr("i64", context, begin), align=8)
    f.ret()


def _control_functions(module: ModuleText) -> None:
    f = module.function("set_control", None, [(I32, "")])
    place = f.alloca(I32, align=4)
    f.store(f.parameters[0], place, align=4)
    f.intrinsic("llvm.x86.sse.ldmxcsr", None, [place])
    f.ret()
    f = module.function("get_control", I64, [])
    f.ret(_control(f))
