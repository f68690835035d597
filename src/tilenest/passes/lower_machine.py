"""Scheduled -> Machine: functions over addresses and loops, root parallels outlined for the pool.

The main function takes per view a pointer, extents and strides, per scalar parameter the scalar,
and last a scratch pointer. A parallel met in it becomes a launch of a body function over the
linear index range; a parallel inside a body is a plain loop nest. Bufs are offsets into the
scratch of the function they are allocated in. Every map_reduce_post is built by the nest builder.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.analysis import ScratchLayout, constant_of, estimated_time, range_of, trip_counts
from tilenest.dialects import (
    Access,
    AddressLoad,
    Alloc,
    AtomCall,
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
)
from tilenest.errors import TargetError
from tilenest.ir import (
    INDEX,
    POINTER,
    Block,
    BufType,
    Function,
    Module,
    Operation,
    Rewriter,
    Type,
    Value,
    ViewType,
    clone_operation,
    fresh,
)
from tilenest.layouts import AffineMap, Interval
from tilenest.nests import Address, Coordinates, Emitter, Index, MemoryAccess, NestBuilder, Place


def lower_machine(module: Module) -> Module:
    """A new module in Machine form; the Scheduled one is not changed."""
    machine = Module("machine", module.attributes)
    for function in module.functions:
        _lower_main(function, machine)
    return machine


def _lower_main(function: Function, machine: Module) -> None:
    types: list[Type] = []
    noalias: list[bool] = []
    groups = function.attributes.get("alias_groups") or tuple(range(len(function.arguments)))
    for argument in function.arguments:
        if isinstance(argument.type, ViewType):
            rank = argument.type.rank
            types.extend([POINTER, *[INDEX] * (2 * rank)])
            is_alone = groups.count(groups[argument.index]) == 1
            noalias.extend([is_alone, *[False] * (2 * rank)])
        else:
            types.append(argument.type)
            noalias.append(False)
    attributes = {**function.attributes, "noalias": (*noalias, True)}
    # They are about arguments of the kernel; the entry has checked them.
    for name in ("guards", "otherwise"):
        attributes.pop(name, None)
    main = machine.add(Function(function.name, [*types, POINTER], (), attributes))
    layout = fresh(ScratchLayout, function)
    lowering = _FunctionLowering(machine, main, main.arguments[-1], layout, is_main=True)
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
            lowering.storages[argument] = ("argument", groups[i])
            position += 1 + 2 * rank
        else:
            lowering.scalars[argument] = first
            position += 1
    lowering.block(function.body)
    Rewriter().set_function_attribute(main, "scratch_bytes", layout.sizes[None])


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
        is_main: bool,
    ) -> None:
        self.machine = machine
        self.function = function
        self.is_main = is_main
        self.scratch = scratch
        self.layout = layout
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
            case Load():
                self.scalars[op.result] = self._scalar_load(op)
            case Alloc():
                self._alloc(op)
            case Read():
                self.scalars[op.result] = self._read(op)
            case MapReducePost():
                NestBuilder(op, self.emitter, self).build()
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
            case AtomCall():
                raise TargetError(
                    f"the CPU target has no code for the atom {op.atom}",
                    "run the program with target='interpret'",
                    op.location,
                )
            case _:
                raise AssertionError(f"{op.NAME} in Scheduled form")

    # Storage -----------------------------------------------------------------------------------

    def _alloc(self, op: Alloc) -> None:
        type_ = op.result.type
        assert isinstance(type_, BufType)
        pointer = self.emitter.emit(
            Offset(
                pointer=self.scratch,
                index=self.emitter.value(0),
                scale=1,
                constant=self.layout.offsets[op],
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
        slots = Coordinates(self.emitter)
        memory = MemoryAccess(self.emitter, slots)
        address = self.addresses[op.view]
        coordinates = tuple(slots.add(self.scalar(v), range_of(v), 0) for v in op.origins)
        rank = len(coordinates)
        access = Access(AffineMap.identity(rank), op.bounds)
        checked = () if op.bounds == "assume" else tuple(range(rank))
        place = Place(address, coordinates, access, checked)
        mask = memory.bounds_mask(place)
        if op.mask is not None:
            mask = self.emitter.both(mask, self.scalar(op.mask), 0)
        otherwise = None
        if mask is not None:
            zero = self.emitter.constant(0, op.result.type)
            otherwise = zero if op.other is None else self.scalar(op.other)
        return self.emitter.emit(
            AddressLoad(
                pointer=memory.pointer(address, coordinates),
                mask=mask,
                otherwise=otherwise,
                align=address.dtype.bytes,
                result_types=[op.result.type],
            )
        )

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
        emitter, known = self.emitter, constant_of(op.step[axis])
        counts_up = known is not None and known > 0
        # A step that may be negative: count the iterations instead.
        if counts_up:
            loop = emitter.open_for(lower, upper, step, states)
        else:
            loop = emitter.open_for(0, self._trips(op, axis), 1, states)
        with emitter.inside(loop):
            counter, *carried = loop.body.arguments
            index: Value = counter
            if not counts_up:
                index = emitter.value(emitter.add(lower, emitter.multiply(counter, step)))
            self.emitter.finish(self._loop(op, axis + 1, [*indices, index], list(carried)))
        return list(loop.results)

    # Launches ----------------------------------------------------------------------------------

    def _launch(self, op: Parallel) -> None:
        captured = _captured_values(op)
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
        inner = _FunctionLowering(self.machine, body, scratch, self.layout, is_main=False)
        inner.adopt(self, captured, body.arguments[3:])
        inner.run_items(op)
        self.emitter.builder.insert(
            Launch(
                total=self.emitter.value(total),
                captured=flat,
                callee=body.name,
                scratch_bytes=self.layout.sizes[op],
                cost_ns=estimated_time(op.body),
            )
        )

    def _is_only_user(self, value: Value, captured: Sequence[Value]) -> bool:
        storage = self.storages[value]
        return sum(self.storages.get(other) == storage for other in captured) == 1

    def _trips(self, op: Nest, axis: int) -> Index:
        known = trip_counts(op)[axis]
        if known is not None:
            return known
        emitter = self.emitter
        # ceil((upper - lower) / step), which is right for either sign and 0 for a step of 0.
        span = emitter.subtract(self.scalar(op.lower[axis]), self.scalar(op.upper[axis]))
        trips = emitter.subtract(0, emitter.floor_divide(span, self.scalar(op.step[axis])))
        return emitter.maximum(trips, 0)

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
        """The body function: items begin..end of the linear range, last axis fastest."""
        begin, end = self.function.arguments[:2]
        loop = self.emitter.open_for(begin, end, 1, [])
        with self.emitter.inside(loop):
            rest: Index = loop.body.arguments[0]
            indices: list[Value] = []
            for axis in reversed(range(op.rank)):
                trips = self._trips(op, axis)
                digit = rest if axis == 0 else self.emitter.remainder(rest, trips)
                rest = rest if axis == 0 else self.emitter.floor_divide(rest, trips)
                scaled = self.emitter.multiply(digit, self.scalar(op.step[axis]))
                index = self.emitter.add(self.scalar(op.lower[axis]), scaled)
                indices.insert(0, self.emitter.value(index))
            self.scalars.update(zip(op.body.arguments, indices, strict=True))
            self.block(op.body)
            self.emitter.finish([])
        self.emitter.builder.insert(Return())


def _buf_address(pointer: Value, type_: BufType) -> Address:
    strides: list[int] = []
    stride = 1
    for extent in reversed(type_.shape):
        strides.insert(0, stride)
        stride *= extent
    return Address(pointer, type_.dtype, type_.shape, tuple(strides))


def _captured_values(op: Operation) -> list[Value]:
    """Values used inside the op's regions or as its domain, defined outside, in order of use."""
    inside: set[Value] = set()
    for nested in op.walk():
        inside.update(nested.results)
        for region in nested.regions:
            for block in region.blocks:
                inside.update(block.arguments)
    found: dict[Value, None] = {}
    for nested in op.walk():
        for value in nested.operands:
            if value not in inside:
                found[value] = None
    return list(found)
