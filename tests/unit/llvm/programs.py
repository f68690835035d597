"""Machine modules written by hand, run natively and by the interpreter.

In: operations added to a `Program`, NumPy arrays. Out: the arrays after the native run, beside
those after the interpreter's. A program's parameters are views of any layout and scalars; what a
run may not touch is checked by guard bytes around every array.
"""

import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import tvm_ffi
from numpy.typing import NDArray

from tests.unit.llvm.pool_bodies import native_pool
from tilenest.backends.llvm import (
    ENTRY,
    RAN,
    ArrayArgument,
    EntryDescription,
    HostMachineInfo,
    LoadedObject,
    ScalarArgument,
    compile_object,
    generate,
    host_machine,
    load_object,
    process_symbols,
    undefined_symbols,
)
from tilenest.dialects import (
    AddressLoad,
    AddressStore,
    Apply,
    AtomCall,
    Cast,
    Constant,
    For,
    Gather,
    LaneMask,
    Lanes,
    Launch,
    LoopIf,
    LoopYield,
    Offset,
    Return,
    Scatter,
    Splat,
)
from tilenest.interp import interpret
from tilenest.ir import (
    COMBINE,
    DTYPES,
    INDEX,
    POINTER,
    Block,
    Builder,
    DType,
    Function,
    Module,
    Operation,
    Region,
    ScalarType,
    Type,
    Value,
    VectorType,
    bfloat16,
    bool_,
)
from tilenest.machine import LANE_REDUCTIONS

Array = NDArray[Any]
GUARD = 64
_DTYPE_OFFSET = 52  # in a versioned DLPack tensor
_BFLOAT16_WORD = 4 | 16 << 8 | 1 << 16


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    name = ml_dtypes.bfloat16 if dtype is bfloat16 else dtype.name.rstrip("_")
    found: np.dtype[Any] = np.dtype(name)
    return found


def lane_type(dtype: DType, lanes: int) -> Type:
    """A vector, or a scalar for 0 lanes."""
    return VectorType(dtype, lanes) if lanes else ScalarType(dtype)


class Program:
    """A module and the function operations are added to."""

    def __init__(self, ranks: Sequence[int], scalars: Sequence[DType] = ()) -> None:
        """One view parameter a rank, then the scalars, then scratch."""
        types: list[Type] = []
        for rank in ranks:
            types += [POINTER, *[INDEX] * (2 * rank)]
        types += [ScalarType(dtype) for dtype in scalars]
        self.module = Module("machine")
        self.main = self.module.add(Function("main", [*types, POINTER]))
        self.main.attributes["scratch_bytes"] = 0
        self.builder = Builder(self.main.body)
        self.ranks = ranks
        self.scalars = self.main.arguments[len(types) - len(scalars) : len(types)]

    def view(self, place: int) -> tuple[Value, list[Value], list[Value]]:
        """Pointer, extents and strides of a view parameter."""
        first = sum(1 + 2 * rank for rank in self.ranks[:place])
        rank = self.ranks[place]
        pointer, *facts = self.main.arguments[first : first + 1 + 2 * rank]
        return pointer, list(facts[:rank]), list(facts[rank:])

    def op(self, operation: Operation) -> Value:
        return self.builder.insert(operation).result

    def number(self, value: bool | int | float, type_: Type = INDEX) -> Value:
        return self.op(Constant(value=value, result_types=[type_]))

    def apply(self, function: str, *arguments: Value, type_: Type | None = None) -> Value:
        result = arguments[-1].type if type_ is None else type_
        return self.op(Apply(function=function, arguments=arguments, result_types=[result]))

    def compare(self, function: str, *arguments: Value) -> Value:
        kind = arguments[0].type
        lanes = kind.lanes if isinstance(kind, VectorType) else 0
        return self.apply(function, *arguments, type_=lane_type(bool_, lanes))

    def cast(self, value: Value, type_: Type) -> Value:
        return self.op(Cast(value=value, result_types=[type_]))

    def at(self, pointer: Value, index: Value, scale: int, constant: int = 0) -> Value:
        return self.op(
            Offset(
                pointer=pointer, index=index, scale=scale, constant=constant, result_types=[POINTER]
            )
        )

    def load(
        self,
        pointer: Value,
        type_: Type,
        mask: Value | None = None,
        otherwise: Value | None = None,
    ) -> Value:
        size = type_.dtype.bytes  # type: ignore[attr-defined]  # scalars and vectors have one
        return self.op(
            AddressLoad(
                pointer=pointer, mask=mask, otherwise=otherwise, align=size, result_types=[type_]
            )
        )

    def store(self, value: Value, pointer: Value, mask: Value | None = None) -> None:
        size = value.type.dtype.bytes  # type: ignore[attr-defined]  # scalars and vectors have one
        self.builder.insert(AddressStore(value=value, pointer=pointer, mask=mask, align=size))

    def gather(
        self,
        pointer: Value,
        offsets: Value,
        type_: VectorType,
        mask: Value | None = None,
        otherwise: Value | None = None,
    ) -> Value:
        return self.op(
            Gather(
                pointer=pointer,
                offsets=offsets,
                mask=mask,
                otherwise=otherwise,
                scale=type_.dtype.bytes,
                result_types=[type_],
            )
        )

    def scatter(
        self, value: Value, pointer: Value, offsets: Value, mask: Value | None = None
    ) -> None:
        size = value.type.dtype.bytes  # type: ignore[attr-defined]  # vectors have one
        self.builder.insert(
            Scatter(value=value, pointer=pointer, offsets=offsets, mask=mask, scale=size)
        )

    def splat(self, value: Value, lanes: int) -> Value:
        dtype = value.type.dtype  # type: ignore[attr-defined]  # scalars have one
        return self.op(Splat(value=value, result_types=[VectorType(dtype, lanes)]))

    def lanes(self, dtype: DType, count: int) -> Value:
        return self.op(Lanes(result_types=[VectorType(dtype, count)]))

    def lane_mask(self, count: Value, lanes: int) -> Value:
        return self.op(LaneMask(count=count, result_types=[VectorType(bool_, lanes)]))

    def reduce(self, function: str, value: Value) -> Value:
        dtype = value.type.dtype  # type: ignore[attr-defined]  # vectors have one
        return self.op(
            AtomCall(
                arguments=[value],
                atom=LANE_REDUCTIONS[function],
                semantic=COMBINE + function,
                result_types=[ScalarType(dtype)],
            )
        )

    def loop(
        self,
        lower: Value,
        upper: Value,
        step: Value,
        body: Callable[..., Sequence[Value]],
        initial: Sequence[Value] = (),
    ) -> list[Value]:
        """`body(index, *states)` gives the next states."""
        types = [value.type for value in initial]
        op = For(
            lower=lower,
            upper=upper,
            step=step,
            initial=initial,
            result_types=types,
            regions=[Region([Block([INDEX, *types])])],
        )
        self.builder.insert(op)
        with self.builder.at_end(op.body):
            self.builder.insert(LoopYield(values=body(*op.body.arguments)))
        return list(op.results)

    def branch(
        self,
        condition: Value,
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]],
        types: Sequence[Type] = (),
    ) -> list[Value]:
        regions = [Region([Block([])]), Region([Block([])])]
        op = LoopIf(condition=condition, result_types=types, regions=regions)
        self.builder.insert(op)
        for region, fill in zip(regions, (then, otherwise), strict=True):
            with self.builder.at_end(region.block):
                self.builder.insert(LoopYield(values=fill()))
        return list(op.results)

    @contextmanager
    def launch(
        self, total: Value, captured: Sequence[Value], *, scratch_bytes: int = 0, cost_ns: float
    ) -> Iterator[list[Value]]:
        """Adds to the launched body inside; gives begin, end, scratch and the captured values."""
        types: list[Type] = [INDEX, INDEX, POINTER, *(value.type for value in captured)]
        body = self.module.add(Function(f"body{len(self.module.functions)}", types))
        self.builder.insert(
            Launch(
                total=total,
                captured=captured,
                callee=body.name,
                scratch_bytes=scratch_bytes,
                cost_ns=cost_ns,
            )
        )
        with self.builder.at_end(body.body):
            yield list(body.arguments)
            self.builder.insert(Return())

    def finish(self) -> Module:
        self.builder.insert(Return())
        return self.module


@dataclass(frozen=True, slots=True)
class Kernel:
    """A loaded entry; `call` takes what Python callers pass."""

    loaded: LoadedObject
    call: Callable[..., int | bytes]


def set_threads(count: int) -> None:
    native_pool().set_threads(count)


def load_kernel(
    module: Module, entry: EntryDescription, machine: HostMachineInfo | None = None
) -> Kernel:
    data = compile_object(generate(module, entry, machine or host_machine()), machine=machine)
    names = undefined_symbols(data)
    pool = native_pool().symbols
    loaded = load_object(data, {**process_symbols(names - pool.keys()), **pool})
    function = tvm_ffi.Function.__from_extern_c__(loaded.address(ENTRY), keep_alive_object=loaded)
    return Kernel(loaded, function)


def described(arrays: Sequence[Array], scalars: Sequence[DType] = ()) -> EntryDescription:
    """The most general guards for these arrays: any extents and strides; all may be written."""
    views = tuple(
        ArrayArgument(
            dtype=dtype_of(array),
            extents=(None,) * array.ndim,
            strides=(None,) * array.ndim,
            is_written=True,
            group=place,
        )
        for place, array in enumerate(arrays)
    )
    return EntryDescription((*views, *(ScalarArgument(dtype) for dtype in scalars)))


def dtype_of(array: Array) -> DType:
    return next(dtype for dtype in DTYPES if numpy_dtype(dtype) == array.dtype)


def as_passed(array: Array) -> Any:
    """What TVM-FFI takes: bfloat16 arrays as tensors, retyped in their DLPack capsule."""
    if array.dtype != ml_dtypes.bfloat16:
        return array
    capsule = array.view(np.uint16).__dlpack__(max_version=(1, 0))
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = pointer_of(capsule, b"dltensor_versioned")
    ctypes.c_uint32.from_address(tensor + _DTYPE_OFFSET).value = _BFLOAT16_WORD
    return tvm_ffi.from_dlpack(capsule)


def guarded(array: Array) -> Array:
    """A dense copy between guard bytes."""
    size = array.nbytes
    space = np.full(size + 2 * GUARD, 0xA5, np.uint8)
    start = GUARD - space.ctypes.data % 16
    copy = space[start : start + size].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def guards_intact(array: Array) -> bool:
    space = array
    while space.base is not None:
        space = space.base
    start = array.ctypes.data - space.ctypes.data
    around = np.concatenate([space[:start], space[start + array.nbytes :]])
    return bool((around == 0xA5).all())


def run_both(
    module: Module,
    arrays: Sequence[Array],
    scalars: Sequence[tuple[bool | int | float, DType]] = (),
    machine: HostMachineInfo | None = None,
) -> list[tuple[Array, Array]]:
    """Run on copies; (native, interpreted) of every array."""
    native = [guarded(array) for array in arrays]
    oracle = [array.copy() for array in arrays]
    entry = described(arrays, [dtype for _, dtype in scalars])
    kernel = load_kernel(module, entry, machine)
    numbers = [number for number, _ in scalars]
    assert kernel.call(*map(as_passed, native), *numbers) == RAN
    interpret(module, [*oracle, *numbers])
    assert all(guards_intact(array) for array in native), "bytes outside the arrays were written"
    return list(zip(native, oracle, strict=True))


def assert_equal(native: Array, expected: Array) -> None:
    """The same numbers, signs of zeros included; any NaN equals any other."""
    assert native.dtype == expected.dtype
    if native.dtype.kind in "biu":
        np.testing.assert_array_equal(native, expected)
        return
    one, other = (array.astype(np.float64) for array in (native, expected))
    np.testing.assert_array_equal(one, other)
    finite = ~np.isnan(other)
    np.testing.assert_array_equal(np.signbit(one[finite]), np.signbit(other[finite]))
