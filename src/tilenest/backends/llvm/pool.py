"""The fork-join thread pool, as LLVM text.

In: facts of the machine. Out: a module that exports `tilenest_pool_run`, `_set_threads` and
`_after_fork` (see their writers) and what `pool_arenas` exports. The caller and the workers claim
chunks by compare-exchange on one word, (job number << 32 | next chunk): a late worker can't take a
chunk of another job. The caller waits for claimed chunks, never for threads. The job lock is
tried, not waited for: a busy pool, a nested run, one thread or one chunk mean that the caller does
the work alone. Idle workers spin for some 60 us, then sleep, off the caller's processor. Every
participant runs with the default floating-point control word and gets its own back."""

from collections.abc import Sequence

from tilenest.backends.llvm import pool_arenas
from tilenest.backends.llvm.float_control import default_float_control, restore_float_control
from tilenest.backends.llvm.object import HostMachineInfo
from tilenest.backends.llvm.pool_names import (
    ACQUIRE,
    AFTER_FORK,
    RELEASE,
    RUN,
    SET_THREADS,
)
from tilenest.backends.llvm.text import FunctionText, ModuleText
from tilenest.backends.llvm.values import I32, I64, POINTER, LlvmType, Value, constant, zero
from tilenest.records import record

_CLAIM = "tilenest_pool_claim"
_SERIAL = "tilenest_pool_serial"
_START_WORKERS = "tilenest_pool_start_workers"
_WORKER = "tilenest_pool_worker"
_FUTEX_NUMBERS = {"x86_64": 202, "aarch64": 98}
_FUTEX_WAIT_PRIVATE, _FUTEX_WAKE_PRIVATE = 128, 129
_EVERYONE = 0x7FFF_FFFF
_SPIN_CYCLES = 200_000
_CYCLES_OF_A_YIELD = 2_000
_SPINS_BEFORE_YIELD = 500
_POLL_MICROSECONDS = 200
_AFFINITY_WORDS = 16
# More than any job has chunks: nothing is left to claim.
_EXHAUSTED = 0xFFFF_FFFF
_LOG_MOST_CHUNKS = 30
_JOB = {
    "body": POINTER,
    "context": POINTER,
    "total": I64,
    "grain": I64,
    "scratch_bytes": I64,
    "chunks": I32,
}
# `state` is (job number << 32 | next chunk); `wake` is the job number that sleepers watch.
# `caller` is the processor that the last job was given from.
_SHARED = {"state": I64, "done": I32, "lock": I32, "asleep": I32, "wake": I32, "caller": I32}
_SETTINGS = {"threads": I32, "started": I32}


def pool_text(machine: HostMachineInfo) -> str:
    """The module."""
    module = ModuleText(triple=machine.triple, data_layout=machine.data_layout)
    variables = {
        name: (kind, module.global_variable(f"tilenest_pool.{name}", kind.text, align=64))
        for name, kind in (_JOB | _SHARED | _SETTINGS).items()
    }
    pool_arenas.write_arenas(module)
    pool = _Pool(module, machine, variables)
    _write_claim(pool)
    _write_worker(pool)
    _write_start_workers(pool)
    _write_serial(pool)
    _write_run(pool)
    _write_set_threads(pool)
    _write_after_fork(pool)
    return module.render()


@record
class _Pool:
    """The module, its machine and its variables, each on a cache line of its own."""

    module: ModuleText
    machine: HostMachineInfo
    variables: dict[str, tuple[LlvmType, Value]]

    @property
    def is_x86(self) -> bool:
        return self.machine.triple.startswith("x86_64")

    def load(self, f: FunctionText, name: str, order: str = "monotonic") -> Value:
        kind, place = self.variables[name]
        return f.atomic_load(kind, place, order, align=kind.bits // 8)

    def store(
        self, f: FunctionText, name: str, value: Value | int, order: str = "monotonic"
    ) -> None:
        kind, place = self.variables[name]
        operand = value if isinstance(value, Value) else constant(kind, value)
        f.atomic_store(operand, place, order, align=kind.bits // 8)

    def change(self, f: FunctionText, name: str, operation: str, amount: int, order: str) -> None:
        kind, place = self.variables[name]
        f.atomicrmw(operation, place, constant(kind, amount), order)

    def pause(self, f: FunctionText) -> None:
        if self.is_x86:
            f.intrinsic("llvm.x86.sse2.pause", None, [])


def _futex_number(machine: HostMachineInfo) -> int | None:
    """None where sleepers poll instead."""
    architecture, *rest = machine.triple.split("-")
    return _FUTEX_NUMBERS.get(architecture) if "linux" in rest else None


def _write_claim(pool: _Pool) -> None:
    """claim(job, scratch): run chunks of that job until none is left.

    The job's fields are read before a chunk is claimed: if the claim succeeds the job was not
    finished, so they are its own.
    """
    f = pool.module.function(_CLAIM, None, [(I32, ""), (POINTER, "")], linkage="internal")
    job, scratch = f.parameters
    saved = default_float_control(f, pool.machine)
    body, context, total, grain, chunks = (
        pool.load(f, name) for name in ("body", "context", "total", "grain", "chunks")
    )
    again, claim, run, done = map(f.block, ("again", "claim", "run", "done"))
    f.branch(again)
    f.begin(again)
    state = pool.load(f, "state", "acquire")
    f.branch_if(_has_chunk(f, state, job, chunks), claim, done)
    f.begin(claim)
    place = pool.variables["state"][1]
    _, is_ours = f.cmpxchg(place, state, f.add(state, 1), "acq_rel", "acquire")
    f.branch_if(is_ours, run, again)
    f.begin(run)
    begin = f.mul(f.and_(state, _EXHAUSTED), grain)
    end = f.add(begin, f.umin(grain, f.sub(total, begin)))
    f.call_pointer(body, None, [context, begin, end, scratch])
    pool.change(f, "done", "add", 1, "release")
    f.branch(again)
    f.begin(done)
    restore_float_control(f, saved)
    f.ret()


def _has_chunk(f: FunctionText, state: Value, job: Value, chunks: Value) -> Value:
    is_same = f.icmp("eq", f.lshr(state, 32), f.zext(job, "i64"))
    return f.and_(is_same, f.icmp("ult", f.trunc(state, "i32"), chunks))


def _write_worker(pool: _Pool) -> None:
    """worker(number): for ever, take part in jobs; number 1 is the first beside the caller."""
    f = pool.module.function(_WORKER, POINTER, [(POINTER, "")], linkage="internal")
    number = f.trunc(f.ptrtoint(f.parameters[0]), "i32")
    allowed = _own_affinity(pool, f)
    start, outer, spin, idle = f.current, f.block("outer"), f.block("spin"), f.block("idle")
    sleep, arrived, join, work = map(f.block, ("sleep", "arrived", "join", "work"))
    f.branch(outer)
    f.begin(outer)
    last = f.phi(I32, (0, start))
    began = _clock(pool, f)
    f.branch(spin)

    f.begin(spin)
    turns = f.phi(I64, (0, outer))
    state = pool.load(f, "state", "acquire")
    job = f.trunc(f.lshr(state, 32), "i32")
    f.branch_if(f.icmp("ne", job, last.value), arrived, idle)
    f.begin(idle)
    pool.pause(f)
    elapsed = _elapsed(pool, f, began, turns.value)
    turns.add(f.add(turns.value, 1), idle)
    f.branch_if(f.icmp("ult", elapsed, _SPIN_CYCLES), spin, sleep)
    f.begin(sleep)
    _keep_off_the_caller(pool, f, allowed)
    _sleep_until_next(pool, f, last.value)
    last.add(last.value, f.current)
    f.branch(outer)

    f.begin(arrived)
    last.add(job, arrived)
    is_wanted = f.icmp("slt", number, pool.load(f, "threads"))
    has_chunk = _has_chunk(f, state, job, pool.load(f, "chunks"))
    f.branch_if(f.and_(is_wanted, has_chunk), join, outer)
    f.begin(join)
    size = pool.load(f, "scratch_bytes")
    scratch = f.call(ACQUIRE, POINTER, [size])
    last.add(job, join)
    f.branch_if(_is_missing(f, scratch, size), outer, work)
    f.begin(work)
    f.call(_CLAIM, None, [job, scratch])
    f.call(RELEASE, None, [scratch])
    last.add(job, work)
    f.branch(outer)


def _own_affinity(pool: _Pool, f: FunctionText) -> Sequence[Value]:
    """Where this thread may run, 64 processors a word; nothing where that cannot be asked."""
    if _futex_number(pool.machine) is None:
        return ()
    words = f.alloca(I64, _AFFINITY_WORDS)
    places = [f.getelementptr("i64", words, i) for i in range(_AFFINITY_WORDS)]
    for place in places:
        f.store(zero(I64), place, align=8)
    size = constant(I64, 8 * _AFFINITY_WORDS)
    f.call("sched_getaffinity", I32, [zero(I32), size, words])
    return [f.load(I64, place, align=8) for place in places]


def _keep_off_the_caller(pool: _Pool, f: FunctionText, allowed: Sequence[Value]) -> None:
    """Leave the processor of the last caller to it: woken there, this thread would wait for it to
    give way, which takes milliseconds, while others stand idle."""
    if not allowed:
        return
    caller = f.zext(pool.load(f, "caller"), "i64")
    word, bit = f.lshr(caller, 6), f.shl(constant(I64, 1), f.and_(caller, 63))
    others = f.xor(bit, -1)
    mask, left = f.alloca(I64, _AFFINITY_WORDS), zero(I64)
    for i, kept in enumerate(allowed):
        cleared = f.select(f.icmp("eq", word, i), f.and_(kept, others), kept)
        f.store(cleared, f.getelementptr("i64", mask, i), align=8)
        left = f.or_(left, cleared)
    move, stay = f.block("move"), f.block("stay")
    f.branch_if(f.icmp("ne", left, 0), move, stay)
    f.begin(move)
    size = constant(I64, 8 * _AFFINITY_WORDS)
    f.call("sched_setaffinity", I32, [zero(I32), size, mask])
    f.branch(stay)
    f.begin(stay)


def _sleep_until_next(pool: _Pool, f: FunctionText, last: Value) -> None:
    """Sleep unless `wake` already shows another job than `last`."""
    number = _futex_number(pool.machine)
    if number is None:
        f.call("usleep", I32, [constant(I32, _POLL_MICROSECONDS)])
        return
    pool.change(f, "asleep", "add", 1, "seq_cst")
    _futex(pool, f, number, [constant(I32, _FUTEX_WAIT_PRIVATE), last, zero(POINTER)])
    pool.change(f, "asleep", "sub", 1, "seq_cst")


def _futex(pool: _Pool, f: FunctionText, number: int, arguments: Sequence[Value]) -> None:
    place = pool.variables["wake"][1]
    f.call_variadic("syscall", I64, [I64], [constant(I64, number), place, *arguments])


def _write_start_workers(pool: _Pool) -> None:
    """start_workers(threads): the job lock is held. A thread the system refuses is done without."""
    f = pool.module.function(_START_WORKERS, None, [(I32, "")], linkage="internal")
    (threads,) = f.parameters
    handle = f.alloca(I64)
    again, create, created, done = map(f.block, ("again", "create", "created", "done"))
    f.branch(again)
    f.begin(again)
    number = f.add(pool.load(f, "started"), 1)
    f.branch_if(f.icmp("slt", number, threads), create, done)
    f.begin(create)
    argument = f.inttoptr(f.zext(number, "i64"))
    worker = Value(POINTER, f"@{_WORKER}")
    failed = f.call("pthread_create", I32, [handle, zero(POINTER), worker, argument])
    f.branch_if(f.icmp("eq", failed, 0), created, done)
    f.begin(created)
    f.call("pthread_detach", I32, [f.load(I64, handle, align=8)])
    pool.store(f, "started", number)
    f.branch(again)
    f.begin(done)
    f.ret()


def _write_serial(pool: _Pool) -> None:
    """serial(body, context, total, scratch_bytes): everything on the calling thread."""
    parameters = [(POINTER, ""), (POINTER, ""), (I64, ""), (I64, "")]
    f = pool.module.function(_SERIAL, I32, parameters, linkage="internal")
    body, context, total, size = f.parameters
    scratch = f.call(ACQUIRE, POINTER, [size])
    failed, ready = f.block("failed"), f.block("ready")
    f.branch_if(_is_missing(f, scratch, size), failed, ready)
    f.begin(failed)
    f.ret(constant(I32, -1))
    f.begin(ready)
    saved = default_float_control(f, pool.machine)
    f.call_pointer(body, None, [context, constant(I64, 0), total, scratch])
    restore_float_control(f, saved)
    f.call(RELEASE, None, [scratch])
    f.ret(constant(I32, 0))


def _write_run(pool: _Pool) -> None:
    """i32 run(ptr body, ptr context, i64 total, i64 grain, i64 scratch_bytes).

    `body` is void(ptr context, i64 begin, i64 end, ptr scratch); chunks have `grain` items. The
    result is 0, or -1 if there was no memory for scratch and nothing ran.
    """
    parameters = [(POINTER, ""), (POINTER, ""), (I64, ""), (I64, ""), (I64, "")]
    f = pool.module.function(RUN, I32, parameters)
    body, context, total, grain, size = f.parameters
    nothing, some, serial, many = map(f.block, ("nothing", "some", "serial", "many"))
    f.branch_if(f.icmp("slt", total, 1), nothing, some)
    f.begin(nothing)
    f.ret(constant(I32, 0))

    f.begin(some)
    least = f.add(f.lshr(total, _LOG_MOST_CHUNKS), 1)
    grain = f.smax(grain, least)
    chunks = f.add(f.trunc(f.udiv(f.sub(total, 1), grain), "i32"), 1)
    threads = pool.load(f, "threads")
    is_single = f.or_(f.icmp("eq", chunks, 1), f.icmp("slt", threads, 2))
    f.branch_if(is_single, serial, many)
    f.begin(many)
    locked, failed, ready = map(f.block, ("locked", "failed", "ready"))
    _, is_ours = f.cmpxchg(pool.variables["lock"][1], constant(I32, 0), 1, "acquire", "monotonic")
    f.branch_if(is_ours, locked, serial)
    f.begin(serial)
    f.ret(f.call(_SERIAL, I32, [body, context, total, size]))

    f.begin(locked)
    scratch = f.call(ACQUIRE, POINTER, [size])
    f.branch_if(_is_missing(f, scratch, size), failed, ready)
    f.begin(failed)
    pool.store(f, "lock", 0, "release")
    f.ret(constant(I32, -1))
    f.begin(ready)
    f.call(_START_WORKERS, None, [threads])
    job = _publish(pool, f, (body, context, total, grain, size, chunks))
    f.call(_CLAIM, None, [job, scratch])
    _wait_for_claimed(pool, f, chunks)
    _set_state(pool, f, job, _EXHAUSTED)
    f.call(RELEASE, None, [scratch])
    pool.store(f, "lock", 0, "release")
    f.ret(constant(I32, 0))


def _publish(pool: _Pool, f: FunctionText, fields: Sequence[Value]) -> Value:
    """Make the job visible, wake sleepers, and give its number."""
    for name, value in zip(_JOB, fields, strict=True):
        pool.store(f, name, value)
    pool.store(f, "done", 0)
    job = f.add(f.trunc(f.lshr(pool.load(f, "state"), 32), "i32"), 1)
    _set_state(pool, f, job, 0)
    pool.store(f, "wake", job, "seq_cst")
    number = _futex_number(pool.machine)
    if number is not None:
        pool.store(f, "caller", f.call("sched_getcpu", I32, []))
        wake, go = f.block("wake"), f.block("go")
        f.branch_if(f.icmp("ne", pool.load(f, "asleep", "seq_cst"), 0), wake, go)
        f.begin(wake)
        _futex(pool, f, number, [constant(I32, _FUTEX_WAKE_PRIVATE), constant(I32, _EVERYONE)])
        f.branch(go)
        f.begin(go)
    return job


def _set_state(pool: _Pool, f: FunctionText, job: Value, chunk: int) -> None:
    pool.store(f, "state", f.or_(f.shl(f.zext(job, "i64"), 32), chunk), "release")


def _wait_for_claimed(pool: _Pool, f: FunctionText, chunks: Value) -> None:
    before, wait, pause, give_way, finished = (
        f.current,
        *map(f.block, ("wait", "pause", "yield", "finished")),
    )
    f.branch(wait)
    f.begin(wait)
    turns = f.phi(I32, (0, before))
    is_finished = f.icmp("eq", pool.load(f, "done", "acquire"), chunks)
    f.branch_if(is_finished, finished, pause)
    f.begin(pause)
    pool.pause(f)
    turns.add(f.add(turns.value, 1), pause)
    f.branch_if(f.icmp("ult", turns.value, _SPINS_BEFORE_YIELD), wait, give_way)
    f.begin(give_way)
    f.call("sched_yield", I32, [])
    turns.add(turns.value, give_way)
    f.branch(wait)
    f.begin(finished)


def _write_set_threads(pool: _Pool) -> None:
    """void set_threads(i32 count): how many take part in later jobs, the caller included."""
    f = pool.module.function(SET_THREADS, None, [(I32, "")])
    pool.store(f, "threads", f.parameters[0])
    f.ret()


def _write_after_fork(pool: _Pool) -> None:
    """void after_fork(): a child has no workers, and its parent may have been in mid-job."""
    f = pool.module.function(AFTER_FORK, None, [])
    job = f.trunc(f.lshr(pool.load(f, "state"), 32), "i32")
    _set_state(pool, f, job, _EXHAUSTED)
    for name in ("asleep", "started", "lock"):
        pool.store(f, name, 0, "release")
    f.ret()


def _is_missing(f: FunctionText, scratch: Value, size: Value) -> Value:
    return f.and_(f.icmp("eq", scratch, zero(POINTER)), f.icmp("ne", size, 0))


def _clock(pool: _Pool, f: FunctionText) -> Value:
    """A cycle counter where a program may read one."""
    if not pool.is_x86:
        return constant(I64, 0)
    return f.intrinsic("llvm.readcyclecounter", I64, [])


def _elapsed(pool: _Pool, f: FunctionText, began: Value, turns: Value) -> Value:
    if pool.is_x86:
        return f.sub(_clock(pool, f), began)
    f.call("sched_yield", I32, [])
    return f.mul(turns, _CYCLES_OF_A_YIELD)
