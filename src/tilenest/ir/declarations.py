"""The constructors with which an op class declares operands and successors.

In: nothing. Out: the fields of `fields.py`, of values and blocks. `attribute` is beside its field,
since it needs to know neither.
"""

from __future__ import annotations

from tilenest.ir.core import Block, Value
from tilenest.ir.fields import OperandField, OptionalField, SuccessorField, VariadicField


def operand() -> OperandField[Value]:
    """Declares exactly one operand."""
    return OperandField()


def optional() -> OptionalField[Value]:
    """Declares no or one operand."""
    return OptionalField()


def variadic() -> VariadicField[Value]:
    """Declares any number of operands."""
    return VariadicField()


def successor() -> SuccessorField[Block, Value]:
    """Declares a block that the terminator may go on with, and operands for its arguments."""
    return SuccessorField()
