"""The native checks of a call's arguments.

In: the guards of one variant and the records a TVM-FFI caller passes (16 bytes each, a type and a
value; arrays lead to a DLTensor). Out: straight-line compares that branch to one block when
anything differs, and the operands for the kernel's main function. Everything is tested before
anything runs, in nanoseconds.
"""

from collections.abc import Sequence
from itertools import combinations

from tilenest.backends.llvm.casts import cast
from tilenest.backends.llvm.entry_description import (
    Argument,
    ArrayArgument,
    EntryDescription,
    NoneArgument,
    ScalarArgument,
)
from tilenest.backends.llvm.text import Block, FunctionText
from tilenest.backends.llvm.values import (
    DOUBLE,
    I1,
    I32,
    I64,
    POINTER,
    LlvmType,
    Operand,
    Value,
    constant,
)
from tilenest.ir import LARGEST_EXTENT, DType, bfloat16
from tilenest.records import record

_NONE, _INT, _BOOL, _FLOAT, _DLTENSOR, _TENSOR = 0, 1, 2, 3, 7, 70
_TENSOR_HEADER = 24
_CPU = 1
_RECORD, _RECORD_VALUE = 16, 8
_DATA, _DEVICE, _RANK, _DTYPE, _SHAPE, _STRIDES, _BYTE_OFFSET = 0, 8, 16, 20, 24, 32, 40
_DTYPE_CODES = {"i": 0, "x": 0, "u": 1, "f": 2, "b": 6}
_BFLOAT_CODE = 4


@record
class _Array:
    """A checked tensor: where it is, its layout, and its bytes as [low, high)."""

    expected: ArrayArgument
    data: Value
    extents: tuple[Value, ...]
    strides: tuple[Value, ...]
    is_empty: Value
    low: Value
    high: Value

    @property
    def operands(self) -> list[Value]:
        return [self.data, *self.extents, *self.strides]


class EntryChecks:
    """Writes the checks of one entry; every failed one goes to the same block."""

    def __init__(self, f: FunctionText, missed: Block) -> None:
        self._f = f
        self._missed = missed

    def operands(self, entry: EntryDescription) -> list[Value]:
        """What the main function is called with; control stays here only if all checks hold."""
        f = self._f
        _, records, count, _ = f.parameters
        self._demand(f.icmp("eq", count, len(entry.arguments)))
        arrays: list[_Array] = []
        operands: list[Value] = []
        for place, expected in enumerate(entry.arguments):
            record = f.getelementptr("i8", records, _RECORD * place)
            checked = self._argument(expected, record)
            if isinstance(checked, _Array):
                arrays.append(checked)
                operands += checked.operands
            else:
                operands += checked
        self._aliasing(arrays)
        return operands

    def _demand(self, condition: Value) -> None:
        following = self._f.block("checked")
        self._f.branch_if(condition, following, self._missed)
        self._f.begin(following)

    def _demand_all(self, conditions: Sequence[Value]) -> None:
        if conditions:
            self._demand(_all_of(self._f, conditions))

    def _field(self, base: Value, offset: int, kind: LlvmType) -> Value:
        place = self._f.getelementptr("i8", base, offset) if offset else base
        return self._f.load(kind, place, align=kind.bits // 8)

    def _argument(self, expected: Argument, record: Value) -> "_Array | list[Value]":
        tag = self._field(record, 0, I32)
        match expected:
            case NoneArgument():
                self._demand(self._f.icmp("eq", tag, _NONE))
                return []
            case ScalarArgument():
                return [self._scalar(expected.dtype, tag, record)]
            case ArrayArgument():
                return self._array(expected, tag, record)

    # Scalars -----------------------------------------------------------------------------------

    def _scalar(self, dtype: DType, tag: Value, record: Value) -> Value:
        f = self._f
        wanted = _FLOAT if dtype.is_float else _BOOL if dtype.is_bool else _INT
        self._demand(f.icmp("eq", tag, wanted))
        if dtype.is_float:
            number = self._field(record, _RECORD_VALUE, DOUBLE)
            return cast(f, number, "float64", dtype.name)
        number = self._field(record, _RECORD_VALUE, I64)
        if dtype.is_bool:
            return f.icmp("ne", number, 0)
        if dtype.bits == 64:
            if not dtype.is_signed:
                self._demand(f.icmp("sge", number, 0))
            return number
        narrow = f.trunc(number, f"i{dtype.bits}")
        wide = f.sext(narrow, "i64") if dtype.is_signed else f.zext(narrow, "i64")
        self._demand(f.icmp("eq", wide, number))
        return narrow

    # Arrays ------------------------------------------------------------------------------------

    def _array(self, expected: ArrayArgument, tag: Value, record: Value) -> _Array:
        f = self._f
        is_object = f.icmp("eq", tag, _TENSOR)
        self._demand(f.or_(is_object, f.icmp("eq", tag, _DLTENSOR)))
        pointer = self._field(record, _RECORD_VALUE, POINTER)
        inside = f.getelementptr("i8", pointer, _TENSOR_HEADER)
        tensor = f.select(is_object, inside, pointer)
        self._demand_all(
            [
                f.icmp("eq", self._field(tensor, _DEVICE, I32), _CPU),
                f.icmp("eq", self._field(tensor, _RANK, I32), expected.rank),
                f.icmp("eq", self._field(tensor, _DTYPE, I32), _dtype_word(expected)),
            ]
        )
        extents = self._numbers(tensor, _SHAPE, expected.rank)
        strides = self._numbers(tensor, _STRIDES, expected.rank)
        start = f.getelementptr(
            "i8",
            self._field(tensor, _DATA, POINTER),
            self._field(tensor, _BYTE_OFFSET, I64),
        )
        is_empty = self._is_empty(expected, extents)
        self._demand_all(
            [
                *self._extent_checks(expected, extents),
                *self._stride_checks(expected, extents, strides, is_empty),
                self._data_check(expected, start, is_empty),
            ]
        )
        low, high = self._byte_range(expected, start, extents, strides, is_empty)
        return _Array(expected, start, extents, strides, is_empty, low, high)

    def _numbers(self, tensor: Value, offset: int, rank: int) -> tuple[Value, ...]:
        if not rank:
            return ()
        numbers = self._field(tensor, offset, POINTER)
        return tuple(self._field(numbers, 8 * axis, I64) for axis in range(rank))

    def _is_empty(self, expected: ArrayArgument, extents: Sequence[Value]) -> Value:
        """Whether some extent is 0; those that are guarded are known."""
        if 0 in expected.extents:
            return constant(I1, 1)
        unknown = zip(extents, expected.extents, strict=True)
        zeros = [self._f.icmp("eq", extent, 0) for extent, known in unknown if known is None]
        return _any_of(self._f, zeros)

    def _extent_checks(self, expected: ArrayArgument, extents: Sequence[Value]) -> list[Value]:
        return [
            self._f.icmp("ule", extent, LARGEST_EXTENT)
            if known is None
            else self._f.icmp("eq", extent, known)
            for extent, known in zip(extents, expected.extents, strict=True)
        ]

    def _stride_checks(
        self,
        expected: ArrayArgument,
        extents: Sequence[Value],
        strides: Sequence[Value],
        is_empty: Value,
    ) -> list[Value]:
        """Strides matter along axes of more than one element of arrays that have any."""
        f, checks = self._f, []
        axes = zip(extents, strides, expected.extents, expected.strides, strict=True)
        for extent, stride, known_extent, known in axes:
            if known is not None:
                free = _any_of(f, [is_empty, *self._is_short(extent, known_extent)])
                checks.append(f.or_(free, f.icmp("eq", stride, known)))
        if expected.is_written and expected.rank:
            # A written element that several coordinates share has no one value.
            outward = list(zip(extents, strides, strict=True))
            spread = [is_empty, self._nests(outward[::-1]), self._nests(outward)]
            checks.append(_any_of(f, spread))
        if expected.unit_last is not None and expected.rank and expected.strides[-1] is None:
            short = self._is_short(extents[-1], expected.extents[-1])
            wanted = f.icmp("eq" if expected.unit_last else "ne", strides[-1], 1)
            checks.append(_any_of(f, [is_empty, *short, wanted]))
        return checks

    def _nests(self, axes: Sequence[tuple[Value, Value]]) -> Value:
        """Whether each axis steps over all that the axes before it reach."""
        f = self._f
        reach: Value = constant(I64, 1)
        found: Value = constant(I1, 1)
        for extent, stride in axes:
            step = f.smax(stride, f.sub(0, stride))
            steps_over = f.or_(f.icmp("sle", extent, 1), f.icmp("sge", step, reach))
            found = f.and_(found, steps_over)
            reach = f.add(reach, f.mul(step, f.smax(f.sub(extent, 1), 0)))
        return found

    def _is_short(self, extent: Value, known: int | None) -> list[Value]:
        """Whether an axis has at most one element: nothing when it is known to have more."""
        if known is not None:
            return [constant(I1, 1)] if known <= 1 else []
        return [self._f.icmp("sle", extent, 1)]

    def _data_check(self, expected: ArrayArgument, start: Value, is_empty: Value) -> Value:
        f = self._f
        address = f.ptrtoint(start)
        aligned = f.icmp("eq", f.and_(address, expected.dtype.bytes - 1), 0)
        there = f.and_(aligned, f.icmp("ne", address, 0))
        return f.or_(there, is_empty)

    def _byte_range(
        self,
        expected: ArrayArgument,
        start: Value,
        extents: Sequence[Value],
        strides: Sequence[Value],
        is_empty: Value,
    ) -> tuple[Value, Value]:
        """Lowest address and the one past the highest; 0 and 0 when there are no elements."""
        f, size = self._f, expected.dtype.bytes
        below: Operand = 0
        above: Operand = size
        axes = zip(extents, strides, expected.extents, expected.strides, strict=True)
        for extent, stride, known_extent, known in axes:
            if known_extent is not None and known is not None:
                reach = (known_extent - 1) * known * size
                below = _plus(f, below, min(reach, 0))
                above = _plus(f, above, max(reach, 0))
                continue
            span = f.mul(f.mul(f.sub(extent, 1), stride), size)
            below = _plus(f, below, f.smin(span, 0))
            above = _plus(f, above, f.smax(span, 0))
        address = f.ptrtoint(start)
        return (
            f.select(is_empty, 0, f.add(address, below)),
            f.select(is_empty, 0, f.add(address, above)),
        )

    # Aliasing ----------------------------------------------------------------------------------

    def _aliasing(self, arrays: Sequence[_Array]) -> None:
        f, checks = self._f, []
        for one, other in combinations(arrays, 2):
            if one.expected.group == other.expected.group >= 0:
                checks.append(f.icmp("eq", one.is_empty, 0))
                checks.append(f.icmp("eq", one.data, other.data))
                axes = zip(one.extents, other.extents, one.strides, other.strides, strict=True)
                for extent, other_extent, stride, other_stride in axes:
                    is_short = f.icmp("sle", extent, 1)
                    checks.append(f.icmp("eq", extent, other_extent))
                    checks.append(f.or_(is_short, f.icmp("eq", stride, other_stride)))
            elif one.expected.is_written or other.expected.is_written:
                before = f.icmp("ule", one.high, other.low)
                checks.append(f.or_(before, f.icmp("ule", other.high, one.low)))
        self._demand_all(checks)


def _dtype_word(expected: ArrayArgument) -> int:
    """Code, bits and lanes as a DLTensor stores them."""
    dtype = expected.dtype
    code = _BFLOAT_CODE if dtype is bfloat16 else _DTYPE_CODES[dtype.kind]
    bits = 8 if dtype.is_bool else dtype.bits
    return code | bits << 8 | 1 << 16


def _plus(f: FunctionText, left: Operand, right: Operand) -> Operand:
    if not isinstance(left, Value) and not isinstance(right, Value):
        return left + right
    return left if right == 0 else right if left == 0 else f.add(left, right)


def _all_of(f: FunctionText, conditions: Sequence[Value]) -> Value:
    total = conditions[0]
    for condition in conditions[1:]:
        total = f.and_(total, condition)
    return total


def _any_of(f: FunctionText, conditions: Sequence[Value]) -> Value:
    if not conditions:
        return constant(I1, 0)
    total = conditions[0]
    for condition in conditions[1:]:
        total = f.or_(total, condition)
    return total
