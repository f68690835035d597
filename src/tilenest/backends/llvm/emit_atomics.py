"""Atomic updates: one instruction where the processor has it, else a loop around an exchange.

In: `address.atomic`. Out: an element read and written in one step. Integers and bools have
instructions of their own. Floats are computed as elementwise work computes them, so that NaN and
signed zeros come out alike, and written where the element is still the one they were computed from.
A bool is true in memory by any byte but 0, so that what depends on it being 1 is computed as well.
Every update acquires and releases, as the dialect says. A masked one is branched around.
"""

from collections.abc import Callable, Mapping

from tilenest.backends.llvm.emit_frame import Frame
from tilenest.backends.llvm.emit_scalar import apply_function
from tilenest.backends.llvm.registers import from_memory, memory_type, register_type, to_memory
from tilenest.backends.llvm.text import FunctionText
from tilenest.backends.llvm.values import LlvmType, Value, llvm_type, zero
from tilenest.dialects import AddressAtomic
from tilenest.ir import DType, element_dtype

_ORDER, _ORDER_OF_FAILURE = "acq_rel", "acquire"
_INSTRUCTIONS: Mapping[str, str] = {
    "add": "add",
    "minimum": "min",
    "maximum": "max",
    "and": "and",
    "or": "or",
    "xor": "xor",
}


def emit_atomic(frame: Frame, op: AddressAtomic) -> None:
    f = frame.text
    if op.mask is None:
        frame.bind(op.results, [_update(frame, op)])
        return
    before, update, after = f.current, f.block("update"), f.block("updated")
    f.branch_if(frame.value(op.mask), update, after)
    f.begin(update)
    old = _update(frame, op)
    end = f.current
    f.branch(after)
    f.begin(after)
    nothing = zero(register_type(op.result.type))
    frame.bind(op.results, [f.phi(old.type, (nothing, before), (old, end)).value])


def _update(frame: Frame, op: AddressAtomic) -> Value:
    """What the element was before."""
    f, dtype = frame.text, element_dtype(op.value.type)
    pointer, value = frame.value(op.pointer), frame.value(op.value)
    expected = None if op.expected is None else frame.value(op.expected)

    def computed(seen: Value) -> Value:
        return apply_function(frame, op.function, dtype, [seen, value])

    if expected is not None and dtype.is_bool:
        old = _replace(f, pointer, value.type, lambda _: value, expected)
    elif expected is not None:
        bits = _to_bits(f, expected), _to_bits(f, value)
        old, _ = f.cmpxchg(pointer, *bits, _ORDER, _ORDER_OF_FAILURE)
    elif op.function == "exchange":
        old = f.atomicrmw("xchg", pointer, _to_bits(f, value), _ORDER)
    elif dtype.is_float or (dtype.is_bool and op.function == "xor"):
        old = _replace(f, pointer, value.type, computed)
    else:
        # Under "and", True leaves every byte what it is.
        is_kept = dtype.is_bool and op.function == "and"
        operand = f.sext(value, "i8") if is_kept else _to_bits(f, value)
        old = f.atomicrmw(_instruction(op.function, dtype), pointer, operand, _ORDER)
    return _from_bits(f, old, value.type)


def _instruction(function: str, dtype: DType) -> str:
    is_unsigned = function in ("minimum", "maximum") and not dtype.is_signed
    return ("u" if is_unsigned else "") + _INSTRUCTIONS[function]


def _replace(
    f: FunctionText,
    pointer: Value,
    register: LlvmType,
    function: Callable[[Value], Value],
    expected: Value | None = None,
) -> Value:
    """The bits that `function` of the element replaced, if it is as `expected`: until nobody else
    came in between. A first read that is out of date costs one more turn; where it is all that is
    done, it acquires."""
    bits = _bits_of(register)
    order = "monotonic" if expected is None else _ORDER_OF_FAILURE
    first = f.atomic_load(bits, pointer, order, align=bits.bits // 8)
    entry, again, done = f.current, f.block("again"), f.block("done")
    f.branch(again)
    f.begin(again)
    seen = f.phi(first.type, (first, entry))
    element = _from_bits(f, seen.value, register)
    if expected is not None:
        exchange = f.block("exchange")
        f.branch_if(f.icmp("eq", element, expected), exchange, done)
        f.begin(exchange)
    new = _to_bits(f, function(element))
    old, is_ours = f.cmpxchg(pointer, seen.value, new, _ORDER, _ORDER_OF_FAILURE)
    seen.add(old, f.current)
    f.branch_if(is_ours, done, again)
    f.begin(done)
    return seen.value


def _bits_of(register: LlvmType) -> LlvmType:
    return llvm_type(f"i{memory_type(register).bits}")


def _to_bits(f: FunctionText, value: Value) -> Value:
    stored, kind = to_memory(f, value), _bits_of(value.type)
    return stored if stored.type == kind else f.bitcast(stored, kind)


def _from_bits(f: FunctionText, bits: Value, register: LlvmType) -> Value:
    kind = memory_type(register)
    return from_memory(f, bits if bits.type == kind else f.bitcast(bits, kind), register)
