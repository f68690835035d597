"""Scheduled -> Machine: functions over addresses and loops, root parallels outlined for the pool.

The main function takes per view a pointer, extents and strides, per scalar parameter the scalar,
and last a scratch pointer. A parallel met in it becomes a launch of a body function over the
linear index range; a parallel inside a body is a plain loop nest. Bufs are offsets into the
scratch of the function they are allocated in. Every map_reduce_post is built by the nest builder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from tilenest.analysis import (
    ScratchLayout,
    WorkEstimates,
    captured_values,
    constant_of,
    range_of,
)
from tilenest.dialects import (
    Access,
    AddressAtomic,
    AddressLoad,
    Alloc,
    AtomCall,
    Atomic,
    Capability,
    Check,
    Constant,
    Extent,
    If,
    Launch,
    Load,
    MapReducePost,
    Nest,
    Offset,
    Parallel,
    Read,
    Reduce,
    Return,
    Serial,
    Stride,
    Yield,
    capabilities_of,
)
from tilenest.errors import TargetError
from tilenest.ir import (
    INDEX,
    POINTER,
    Block,
    BlockArgument,
    BufType,
    Function,
    Module,
    Operation,
    Rewriter,
    Type,
    Value,
    ViewType,
    clone_operation,
)
from tilenest.layouts import AffineMap, Interval
from tilenest.nests import Address, Coordinates, Emitter, Index, MemoryAccess, NestBuilder, Place
from tilenest.passes.launch_items import LaunchItems
from tilenest.passes.loop_counts import counts_up, emit_trips
from tilenest.records import record


def lower_machine(module: Module, rewriter: Rewriter | None = None) -> Module:
    """A new module in Machine form. The Scheduled one is not changed; what is known of it is asked
    of the rewriter that made it."""
    rewriter = rewriter or Rewriter()
    machine = Module("machine", module.attributes)
    for function in module.functions:
        _lower_main(function, machine, rewriter)
    return machine


def _lower_main(function: Function, machine: Module, rewriter: Rewriter) -> None:
    types: list[Type] = []
    noalias: list[bool] = []
    groups = function.attributes.get("alias_groups") or tuple(range(len(function.arguments)))
    contended = frozenset(_updated_groups(function, groups))
    for argument in function.arguments:
        if isinstance(argument.type, ViewType):
            rank = argument.type.rank
            types.extend([POINTER, *[INDEX] * (2 * rank)])
            group = groups[argument.index]
            is_alone = groups.count(group) == 1 and group not in contended
            noalias.extend([is_alone, *[False] * (2 * rank)])
        else:
            types.append(argument.type)
            noalias.append(False)
    attributes = {**function.attributes, "noalias": (*noalias, True)}
    # They are about arguments of the kernel, which the entry has checked, and nests that are gone.
    for name in ("otherwise", "remaps"):
        attributes.pop(name, None)
    if "guards" in attributes:
        attributes["guards"] = tuple(map(Capability, sorted(capabilities_of(function))))
    main = machine.add(Function(function.name, [*types, POINTER], (), attributes))
    layout = rewriter.analyses.get(ScratchLayout, function)
    times = rewriter.analyses.get(WorkEstimates, function).times
    lowering = _FunctionLowering(machine, main, main.arguments[-1], layout, times, is_main=True)
    position = 0
    for i, argument in enumerate(function.arguments):
        first = main.arguments[position]
        first.name = argument.name
        if isinstance(argument.type, ViewType):
            rank = argument.type.rank
            rest = main.arguments[position + 1 : position + 1 + 2 * rank]
            extents = _known(argument.type.shape, rest[:rank])
            strides = _known(argument.type.strides, rest[rank:])
            dtype = argument.type.dtype
            lowering.addresses[argument] = Address(first, dtype, extents, strides)
            lowering.storages[argument] = _ArgumentStorage(groups[i], groups[i] in contended)
            position += 1 + 2 * rank
        else:
            lowering.scalars[argument] = first
            position += 1
    lowering.block(function.body)
    rewriter.set_function_attribute(main, "scratch_bytes", layout.sizes[None])


@record
class _ArgumentStorage:
    """The memory of arguments that are the same array, as nests tell storage apart."""

    group: int
    is_contended: bool
    """whether instances update one element of it"""


def _updated_groups(function: Function, groups: Sequence[int]) -> Iterator[int]:
    """The groups of arguments that are updated by atomics."""
    for op in function.walk():
        if isinstance(op, Atomic):
            assert isinstance(op.view, BlockArgument)
            yield groups[op.view.index]


def _known(static: Sequence[int | None], dynamic: Sequence[Value]) -> tuple[Index, ...]:
    return tuple(
        value if number is None else number for number, value in zip(static, dynamic, strict=True)
    )


class _FunctionLowering:
    """Lowers blocks into one Machine function; the environment of its nests."""

    def __init__(
        self,
        machine: Module,
        function: Function,
        scratch: Value,
        layout: ScratchLayout,
        times: Mapping[Block, float],
        *,
        is_main: bool,
    ) -> None:
        self.machine = machine
        self.function = function
        self.is_main = is_main
        self.scratch = scratch
        self.layout = layout
        self.times = times
        self.emitter = Emitter(function)
        self.addresses: dict[Value, Address] = {}
        self.scalars: dict[Value, Value] = {}
        self.storages: dict[Value, object] = {}

    # The environment of nests ------------------------------------------------------------------

    def address(self, value: Value) -> Address:
        return self.addresses[value]

    def scalar(self, value: Value) -> Value:
        return self.scalars[value]

    def range_of(self, value: Value) -> Interval | None:
        return range_of(value)

    def storage(self, value: Value) -> object:
        return self.storages.get(value, value)

    # Blocks and operations ---------------------------------------------------------------------

    def block(self, block: Block) -> list[Value]:
        """Lower the operations; the lowered operands of the terminator."""
        for op in block.operations:
            self.emitter.builder.location = op.location
            if op.TERMINATOR:
                if isinstance(op, Return):
                    self.emitter.builder.insert(Return())
                    return []
                assert isinstance(op, Yield)
                return [self.scalar(value) for value in op.values]
            self.operation(op)
        raise AssertionError("the block has no terminator")

    def operation(self, op: Operation) -> None:
        match op:
            case Constant():
                value = op.value
                assert isinstance(value, bool | int | float)
                self.scalars[op.result] = self.emitter.constant(value, op.result.type)
            case _ if op.IS_ELEMENTWISE:
                copy = clone_operation(op, dict(self.scalars))
                self.scalars[op.result] = self.emitter.emit(copy)
            case Check():
                self.emitter.builder.insert(clone_operation(op, dict(self.scalars)))
            case Extent():
                extent = self.addresses[op.view].extents[op.axis]
                self.scalars[op.result] = self.emitter.value(extent)
            case Stride():
                stride = self.addresses[op.view].strides[op.axis]
                self.scalars[op.result] = self.emitter.value(stride)
            case Load() | Atomic() | Alloc() | Read():
                self._touch(op)
            case MapReducePost() if op.sched is not None:
                NestBuilder(op, self.emitter, self).build()
            case MapReducePost():
                raise TargetError(
                    f"{op.NAME} has no schedule, so that no loops can be built for it",
                    "plan its loops first",
                    op.location,
                )
            case _:
                self._structured(op)

    def _structured(self, op: Operation) -> None:
        match op:
            case Parallel() if self.is_main:
                self._launch(op)
            case Parallel() | Serial() | Reduce():
                self._loops(op)
            case If():
                self._if(op)
            case _:
                what = f"the atom {op.atom}" if isinstance(op, AtomCall) else op.NAME
                raise TargetError(
                    f"the CPU target has no code for {what}",
                    "lower it to operations of the target first, or run with target='interpret'",
                    op.location,
                )

    # Storage -----------------------------------------------------------------------------------

    def _touch(self, op: Load | Atomic | Alloc | Read) -> None:
        match op:
            case Load():
                self.scalars[op.result] = self._scalar_load(op)
            case Atomic():
                self._atomic(op)
            case Alloc():
                self._alloc(op)
            case Read():
                self.scalars[op.result] = self._read(op)

    def _alloc(self, op: Alloc) -> None:
        type_ = op.result.type
        assert isinstance(type_, BufType)
        pointer = self.emitter.emit(
            Offset(
                pointer=self.scratch,
                index=self.emitter.value(0),
                scale=1,
                constant=self.layout.offset(op),
                result_types=[POINTER],
            )
        )
        self.addresses[op.result] = _buf_address(pointer, type_)

    def _read(self, op: Read) -> Value:
        address = self.addresses[op.buffer]
        return self.emitter.emit(
            AddressLoad(
                pointer=address.pointer, align=address.dtype.bytes, result_types=[op.result.type]
            )
        )

    def _scalar_load(self, op: Load) -> Value:
        """One element, `other` (or 0) outside."""
        pointer, mask = self._element(op)
        otherwise = None
        if mask is not None:
            zero = self.emitter.constant(0, op.result.type)
            otherwise = zero if op.other is None else self.scalar(op.other)
        return self.emitter.emit(
            AddressLoad(
                pointer=pointer,
                mask=mask,
                otherwise=otherwise,
                align=self.addresses[op.view].dtype.bytes,
                result_types=[op.result.type],
            )
        )

    def _atomic(self, op: Atomic) -> None:
        pointer, mask = self._element(op)
        update = AddressAtomic(
            pointer=pointer,
            value=self.scalar(op.value),
            expected=None if op.expected is None else self.scalar(op.expected),
            mask=mask,
            function=op.function,
            result_types=[op.value.type],
        )
        before = self.emitter.emit(update)
        self.scalars.update(dict.fromkeys(op.results, before))

    def _element(self, op: Load | Atomic) -> tuple[Value, Value | None]:
        """Where the element at the origins is, and whether it is there and asked for."""
        slots = Coordinates(self.emitter)
        memory = MemoryAccess(self.emitter, slots)
        address = self.addresses[op.view]
        coordinates = tuple(slots.add(self.scalar(v), range_of(v), 0) for v in op.origins)
        rank = len(coordinates)
        access = Access(AffineMap.identity(rank), op.bounds)
        checked = () if op.bounds == "assume" else tuple(range(rank))
        mask = memory.bounds_mask(Place(address, coordinates, access, checked))
        if op.mask is not None:
            mask = self.emitter.both(mask, self.scalar(op.mask), 0)
        return memory.pointer(address, coordinates), mask

    # Control -----------------------------------------------------------------------------------

    def _if(self, op: If) -> None:
        results = self.emitter.branch(
            self.scalar(op.condition),
            [result.type for result in op.results],
            lambda: self.block(op.regions[0].block),
            lambda: self.block(op.regions[1].block),
        )
        self.scalars.update(zip(op.results, results, strict=True))

    def _loops(self, op: Nest) -> None:
        """A nest as loops, first axis outermost, states carried through all of them."""
        initial: Sequence[Value] = getattr(op, "initial", [])
        states = [self.scalar(value) for value in initial]
        results = self._loop(op, 0, [], states)
        self.scalars.update(zip(op.results, results, strict=True))

    def _loop(self, op: Nest, axis: int, indices: list[Value], states: list[Value]) -> list[Value]:
        if axis == op.rank:
            arguments = op.body.arguments
            self.scalars.update(zip(arguments, [*indices, *states], strict=True))
            return self.block(op.body)
        lower, upper, step = (self.scalar(group[axis]) for group in (op.lower, op.upper, op.step))
        emitter, is_added = self.emitter, counts_up(op, axis)
        if is_added:
            loop = emitter.open_for(lower, upper, step, states)
        else:
            loop = emitter.open_for(0, self._trips(op, axis), 1, states)
        with emitter.inside(loop):
            counter, *carried = loop.body.arguments
            index: Value = counter
            if not is_added:
                index = emitter.value(emitter.add(lower, emitter.multiply(counter, step)))
            self.emitter.finish(self._loop(op, axis + 1, [*indices, index], list(carried)))
        return list(loop.results)

    # Launches ----------------------------------------------------------------------------------

    def _launch(self, op: Parallel) -> None:
        captured = list(dict.fromkeys([*op.operands, *captured_values(op)]))
        flat: list[Value] = []
        noalias: list[bool] = []
        for value in captured:
            parts = self._parts(value)
            flat.extend(parts)
            is_shared = value in self.storages and not self._is_only_user(value, captured)
            noalias.extend(part.type is POINTER and not is_shared for part in parts)
        trips = [self._trips(op, axis) for axis in range(op.rank)]
        total: Index = 1
        for count in trips:
            total = self.emitter.multiply(total, count)
        body = self.machine.add(
            Function(
                f"{self.function.name}.body{len(self.machine.functions)}",
                [INDEX, INDEX, POINTER, *[value.type for value in flat]],
                (),
                {"noalias": (False, False, True, *noalias)},
            )
        )
        scratch = body.arguments[2]
        inner = _FunctionLowering(
            self.machine, body, scratch, self.layout, self.times, is_main=False
        )
        inner.adopt(self, captured, body.arguments[3:])
        inner.run_items(op)
        self.emitter.builder.insert(
            Launch(
                total=self.emitter.value(total),
                captured=flat,
                callee=body.name,
                scratch_bytes=self.layout.sizes[op],
                cost_ns=self.times[op.body],
            )
        )

    def _is_only_user(self, value: Value, captured: Sequence[Value]) -> bool:
        """Whether no other captured value, and no other instance, touches the same bytes."""
        storage = self.storages[value]
        if isinstance(storage, _ArgumentStorage) and storage.is_contended:
            return False
        return sum(self.storages.get(other) == storage for other in captured) == 1

    def _trips(self, op: Nest, axis: int) -> Index:
        bounds = (self.scalar(group[axis]) for group in (op.lower, op.upper, op.step))
        return emit_trips(self.emitter, op, axis, *bounds)

    def _parts(self, value: Value) -> list[Value]:
        """The run-time values that make up a captured value."""
        if value in self.scalars:
            return [self.scalars[value]]
        address = self.addresses[value]
        facts = [*address.extents, *address.strides]
        return [address.pointer, *[fact for fact in facts if isinstance(fact, Value)]]

    def adopt(
        self, outer: _FunctionLowering, captured: Sequence[Value], arguments: Sequence[Value]
    ) -> None:
        """Bind captured values to this function's arguments."""
        remaining = iter(arguments)
        for value in captured:
            if value in outer.scalars:
                self.scalars[value] = next(remaining)
                continue
            old = outer.addresses[value]
            pointer = next(remaining)
            pointer.name = value.name
            extents = tuple(e if isinstance(e, int) else next(remaining) for e in old.extents)
            strides = tuple(s if isinstance(s, int) else next(remaining) for s in old.strides)
            self.addresses[value] = Address(pointer, old.dtype, extents, strides)
            self.storages[value] = outer.storage(value)

    def run_items(self, op: Parallel) -> None:
        """Items begin..end of the linear range."""

        def body(indices: Sequence[Value]) -> None:
            self.scalars.update(zip(op.body.arguments, indices, strict=True))
            self.block(op.body)

        def index(axis: int, digit: Index) -> Value:
            return self._index(op, axis, digit)

        trips = [self._trips(op, axis) for axis in range(op.rank)]
        begin, end = self.function.arguments[:2]
        LaunchItems(self.emitter, trips, index, body).emit(begin, end)
        self.emitter.builder.insert(Return())

    def _index(self, op: Parallel, axis: int, digit: Index) -> Value:
        """The index of an axis in its n-th instance."""
        scaled = self.emitter.multiply(digit, self._number(op.step[axis]))
        return self.emitter.value(self.emitter.add(self._number(op.lower[axis]), scaled))

    def _number(self, value: Value) -> Index:
        """A number of a domain, without a register where it is known."""
        known = constant_of(value)
        return self.scalar(value) if known is None else int(known)


def _buf_address(pointer: Value, type_: BufType) -> Address:
    strides = (prod(type_.shape[axis + 1 :]) for axis in range(len(type_.shape)))
    return Address(pointer, type_.dtype, type_.shape, tuple(strides))
