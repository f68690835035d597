"""One method an LLVM instruction: operands in, the defined `Value` out.

`Instructions` appends lines to the current block of a function; `text.FunctionText` adds blocks and
the header, `intrinsics.Intrinsics` the calls of `llvm.*`. Methods carry LLVM's own mnemonics. Where
two operands share a type, a Python number stands for the constant of that type. Nothing is checked
here that LLVM's parser and verifier check: writing must stay cheap.
"""

from collections.abc import Iterable, Sequence

from tilenest.backends.llvm.values import (
    I1,
    POINTER,
    LlvmType,
    Operand,
    Value,
    constant,
    llvm_type,
    poison,
)


class Instructions:
    """Appends instructions to `_lines`, the current block's text."""

    __slots__ = ("_count", "_lines")

    def __init__(self) -> None:
        self._count = 0
        self._lines: list[str] = []

    def _fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _define(self, kind: LlvmType, text: str) -> Value:
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"  {name} = {text}")
        return Value(kind, name)

    def _binary(self, opcode: str, left: Operand, right: Operand) -> Value:
        left, right = matched(left, right)
        kind = left.type
        return self._define(kind, f"{opcode} {kind.text} {left.text}, {right.text}")

    def fadd(self, left: Operand, right: Operand) -> Value:
        return self._binary("fadd", left, right)

    def fsub(self, left: Operand, right: Operand) -> Value:
        return self._binary("fsub", left, right)

    def fmul(self, left: Operand, right: Operand) -> Value:
        return self._binary("fmul", left, right)

    def fdiv(self, left: Operand, right: Operand) -> Value:
        return self._binary("fdiv", left, right)

    def fneg(self, value: Value) -> Value:
        return self._define(value.type, f"fneg {value.type.text} {value.text}")

    def add(self, left: Operand, right: Operand, flags: str = "") -> Value:
        return self._binary(f"add {flags}", left, right)

    def sub(self, left: Operand, right: Operand, flags: str = "") -> Value:
        return self._binary(f"sub {flags}", left, right)

    def mul(self, left: Operand, right: Operand, flags: str = "") -> Value:
        return self._binary(f"mul {flags}", left, right)

    def sdiv(self, left: Operand, right: Operand) -> Value:
        return self._binary("sdiv", left, right)

    def udiv(self, left: Operand, right: Operand) -> Value:
        return self._binary("udiv", left, right)

    def srem(self, left: Operand, right: Operand) -> Value:
        return self._binary("srem", left, right)

    def urem(self, left: Operand, right: Operand) -> Value:
        return self._binary("urem", left, right)

    def and_(self, left: Operand, right: Operand) -> Value:
        return self._binary("and", left, right)

    def or_(self, left: Operand, right: Operand) -> Value:
        return self._binary("or", left, right)

    def xor(self, left: Operand, right: Operand) -> Value:
        return self._binary("xor", left, right)

    def not_(self, value: Value) -> Value:
        return self._binary("xor", value, -1)

    def shl(self, left: Operand, right: Operand) -> Value:
        return self._binary("shl", left, right)

    def lshr(self, left: Operand, right: Operand) -> Value:
        return self._binary("lshr", left, right)

    def ashr(self, left: Operand, right: Operand) -> Value:
        return self._binary("ashr", left, right)

    def fcmp(self, predicate: str, left: Operand, right: Operand) -> Value:
        left, right = matched(left, right)
        text = f"fcmp {predicate} {left.type.text} {left.text}, {right.text}"
        return self._define(left.type.with_element("i1"), text)

    def icmp(self, predicate: str, left: Operand, right: Operand) -> Value:
        left, right = matched(left, right)
        text = f"icmp {predicate} {left.type.text} {left.text}, {right.text}"
        return self._define(left.type.with_element("i1"), text)

    def select(self, condition: Value, if_true: Operand, if_false: Operand) -> Value:
        if_true, if_false = matched(if_true, if_false)
        return self._define(
            if_true.type, f"select {condition.typed}, {if_true.typed}, {if_false.typed}"
        )

    def _cast(self, opcode: str, value: Value, element: str) -> Value:
        kind = value.type.with_element(element)
        return self._define(kind, f"{opcode} {value.typed} to {kind.text}")

    def trunc(self, value: Value, element: str) -> Value:
        return self._cast("trunc", value, element)

    def zext(self, value: Value, element: str) -> Value:
        return self._cast("zext", value, element)

    def sext(self, value: Value, element: str) -> Value:
        return self._cast("sext", value, element)

    def fptrunc(self, value: Value, element: str) -> Value:
        return self._cast("fptrunc", value, element)

    def fpext(self, value: Value, element: str) -> Value:
        return self._cast("fpext", value, element)

    def fptosi(self, value: Value, element: str) -> Value:
        return self._cast("fptosi", value, element)

    def fptoui(self, value: Value, element: str) -> Value:
        return self._cast("fptoui", value, element)

    def sitofp(self, value: Value, element: str) -> Value:
        return self._cast("sitofp", value, element)

    def uitofp(self, value: Value, element: str) -> Value:
        return self._cast("uitofp", value, element)

    def ptrtoint(self, value: Value, element: str = "i64") -> Value:
        return self._cast("ptrtoint", value, element)

    def inttoptr(self, value: Value) -> Value:
        return self._cast("inttoptr", value, "ptr")

    def bitcast(self, value: Value, kind: LlvmType) -> Value:
        """To `type`, which may split lanes differently; the bits stay."""
        return self._define(kind, f"bitcast {value.typed} to {kind.text}")

    def load(self, kind: LlvmType, pointer: Value, *, align: int = 0) -> Value:
        """`align` in bytes, 0 for the type's own; vectors at element addresses must say theirs."""
        return self._define(kind, f"load {kind.text}, {pointer.typed}{_alignment(align)}")

    def store(self, value: Value, pointer: Value, *, align: int = 0) -> None:
        self._lines.append(f"  store {value.typed}, {pointer.typed}{_alignment(align)}")

    def getelementptr(self, element: str, pointer: Value, index: Operand, flags: str = "") -> Value:
        """Address `index` elements past `pointer`; a vector of indices gives one of addresses."""
        place = index if isinstance(index, Value) else constant(llvm_type("i64"), index)
        lanes = max(pointer.type.lanes, place.type.lanes)
        return self._define(
            POINTER.with_lanes(lanes),
            f"getelementptr {flags} {element}, {pointer.typed}, {place.typed}",
        )

    def atomic_load(self, kind: LlvmType, pointer: Value, order: str, *, align: int) -> Value:
        text = f"load atomic {kind.text}, {pointer.typed} {order}, align {align}"
        return self._define(kind, text)

    def atomic_store(self, value: Value, pointer: Value, order: str, *, align: int) -> None:
        self._lines.append(f"  store atomic {value.typed}, {pointer.typed} {order}, align {align}")

    def atomicrmw(self, operation: str, pointer: Value, value: Value, order: str) -> Value:
        text = f"atomicrmw {operation} {pointer.typed}, {value.typed} {order}"
        return self._define(value.type, text)

    def cmpxchg(
        self, pointer: Value, expected: Operand, new: Operand, success: str, failure: str
    ) -> tuple[Value, Value]:
        """The old value, and whether the exchange took place."""
        expected, new = matched(expected, new)
        pair = f"{{ {new.type.text}, i1 }}"
        name = self._fresh()
        self._lines.append(
            f"  {name} = cmpxchg {pointer.typed}, {expected.typed}, {new.typed} {success} {failure}"
        )
        old = self._define(new.type, f"extractvalue {pair} {name}, 0")
        return old, self._define(I1, f"extractvalue {pair} {name}, 1")

    def extract_value(self, aggregate: Value, kind: LlvmType, index: int) -> Value:
        """Member `index`, of type `kind`, of a structure."""
        return self._define(kind, f"extractvalue {aggregate.typed}, {index}")

    def insert_value(self, aggregate: Value, member: Value, index: int) -> Value:
        text = f"insertvalue {aggregate.typed}, {member.typed}, {index}"
        return self._define(aggregate.type, text)

    def extract_element(self, vector: Value, index: Operand) -> Value:
        if vector.type.lanes == 1:
            return vector
        place = index if isinstance(index, Value) else constant(llvm_type("i64"), index)
        text = f"extractelement {vector.typed}, {place.typed}"
        return self._define(vector.type.with_lanes(1), text)

    def insert_element(self, vector: Value, element: Value, index: Operand) -> Value:
        if vector.type.lanes == 1:
            return element
        place = index if isinstance(index, Value) else constant(llvm_type("i64"), index)
        text = f"insertelement {vector.typed}, {element.typed}, {place.typed}"
        return self._define(vector.type, text)

    def shuffle(self, first: Value, second: Value | None, lanes: Sequence[int]) -> Value:
        """Lanes picked by number from both vectors; a negative number leaves the lane poison."""
        kind = first.type.with_lanes(len(lanes))
        if first.type.lanes == 1:
            return self.from_lanes(
                [first if lane <= 0 or second is None else second for lane in lanes]
            )
        if len(lanes) == 1:
            return self.extract_element(first, lanes[0])
        mask = ", ".join("i32 poison" if lane < 0 else f"i32 {lane}" for lane in lanes)
        other = second if second is not None else poison(first.type)
        text = f"shufflevector {first.typed}, {other.typed}, <{len(lanes)} x i32> <{mask}>"
        return self._define(kind, text)

    def splat(self, scalar: Value, lanes: int) -> Value:
        if lanes == 1:
            return scalar
        kind = scalar.type.with_lanes(lanes)
        single = self._define(kind, f"insertelement {kind.text} poison, {scalar.typed}, i64 0")
        mask = f"<{lanes} x i32> zeroinitializer"
        return self._define(kind, f"shufflevector {single.typed}, {kind.text} poison, {mask}")

    def from_lanes(self, scalars: Sequence[Value]) -> Value:
        """A vector of the given scalars."""
        vector = poison(scalars[0].type.with_lanes(len(scalars)))
        for lane, scalar in enumerate(scalars):
            vector = self.insert_element(vector, scalar, lane)
        return vector

    def to_lanes(self, vector: Value) -> list[Value]:
        return [self.extract_element(vector, lane) for lane in range(vector.type.lanes)]

    def ret(self, value: Value | None = None) -> None:
        self._lines.append("  ret void" if value is None else f"  ret {value.typed}")

    def call_pointer(
        self, function: Value, result: LlvmType | None, arguments: Iterable[Value], note: str = ""
    ) -> Value:
        """Call through a pointer; `result` None is void. `note` is the type of a variadic one."""
        listed = ", ".join(argument.typed for argument in arguments)
        if result is None:
            self._lines.append(f"  call {note or 'void'} {function.text}({listed})")
            return Value(llvm_type("void"), "")
        return self._define(result, f"call {note or result.text} {function.text}({listed})")


def matched(left: Operand, right: Operand) -> tuple[Value, Value]:
    """Both as values: a number takes the type of the other operand."""
    if isinstance(left, Value):
        return left, right if isinstance(right, Value) else constant(left.type, right)
    assert isinstance(right, Value), "at least one operand must have a type"
    return constant(right.type, left), right


def _alignment(align: int) -> str:
    return f", align {align}" if align else ""
