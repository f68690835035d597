"""How an op class declares itself: typed field descriptors and the specification derived from them.

In: a class body such as `view = operand()`, `mask = optional()`, `bounds = attribute(str, "zero")`,
`then = successor()`. Out: its `OpSpec`. Operands are stored flat; `segments` holds the size of
every group in declaration order, those that go with a successor among them. Printing, parsing,
cloning and arity checking read the spec; nothing else lists an op's fields. `declarations` has the
constructors of operand fields, so nothing here knows what a value is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from tilenest.ir.variables import Variable
from tilenest.records import record

T = TypeVar("T")
BlockT = TypeVar("BlockT")


class _Field:
    __slots__ = ("name",)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class OperandField(_Field, Generic[T]):
    """Exactly one operand."""

    def __get__(self, op: Any, owner: type | None = None) -> T:
        start, _ = op.SPEC.group_range(op.segments, self.name)
        value: T = op.operand_uses[start].value
        return value


class OptionalField(_Field, Generic[T]):
    """No or one operand."""

    def __get__(self, op: Any, owner: type | None = None) -> T | None:
        start, stop = op.SPEC.group_range(op.segments, self.name)
        return op.operand_uses[start].value if stop > start else None


class VariadicField(_Field, Generic[T]):
    """Any number of operands."""

    def __get__(self, op: Any, owner: type | None = None) -> list[T]:
        start, stop = op.SPEC.group_range(op.segments, self.name)
        return [use.value for use in op.operand_uses[start:stop]]


class Successor(NamedTuple, Generic[BlockT, T]):
    """Where a terminator may go on, and the values it hands to the arguments of that block."""

    block: BlockT
    operands: Sequence[T] = ()


class SuccessorField(_Field, Generic[BlockT, T]):
    """A block to go on with, and a group of operands, of the same name, for its arguments."""

    def __get__(self, op: Any, owner: type | None = None) -> Successor[BlockT, T]:
        start, stop = op.SPEC.group_range(op.segments, self.name)
        block: BlockT = op.edges[op.SPEC.successors.index(self.name)].block
        return Successor(block, [use.value for use in op.operand_uses[start:stop]])


class AttributeField(_Field, Generic[T]):
    """A compile-time property of immutable value type `kind`; a `leading` one prints without its
    name, right after the op's."""

    __slots__ = ("default", "is_leading", "kind")

    def __init__(self, kind: type[T], default: Any, is_leading: bool) -> None:
        self.kind = kind
        self.default = default
        self.is_leading = is_leading

    @property
    def has_default(self) -> bool:
        return self.default is not _MISSING

    def __get__(self, op: Any, owner: type | None = None) -> T:
        value: T = op.attributes[self.name]
        return value


class OpenField(AttributeField[T]):
    """A property that a Candidate may leave open: a variable reads as the default."""

    __slots__ = ()

    def __get__(self, op: Any, owner: type | None = None) -> T:
        value: T = op.attributes[self.name]
        return self.default if isinstance(value, Variable) else value


_MISSING = object()


def attribute(
    kind: type[T], default: Any = _MISSING, *, leading: bool = False
) -> AttributeField[T]:
    return AttributeField(kind, default, leading)


def open_attribute(kind: type[T], default: T) -> AttributeField[T]:
    """Declares a property that may be a variable `?name` in Candidate form; the default says that
    nothing is chosen."""
    # A union at run time, which the types of fields cannot say: who reads it never sees a variable.
    return OpenField(kind | Variable, default, False)  # type: ignore[arg-type]  # as said above


@record
class OpSpec:
    """What an op class declared, in declaration order."""

    groups: tuple[tuple[str, str], ...]
    """(group name, 'one' | 'optional' | 'many')"""
    attributes: tuple[AttributeField[Any], ...]
    successors: tuple[str, ...] = ()
    """which groups are of successors; their arity is 'many'"""

    @property
    def lists(self) -> tuple[str, ...]:
        """The groups of any number of operands, those of successors apart."""
        return tuple(
            name for name, arity in self.groups if arity == "many" and name not in self.successors
        )

    def take_successors(self, fields: dict[str, Any]) -> list[Any]:
        """The blocks of the successors; in `fields`, their operands stay."""
        blocks: list[Any] = []
        for name in self.successors:
            assert name in fields, f"successor {name!r} is missing"
            block, fields[name] = fields[name]
            blocks.append(block)
        return blocks

    def bind(self, fields: dict[str, Any]) -> tuple[list[Any], tuple[int, ...], dict[str, Any]]:
        """Split keyword fields into flat operands, segments and attributes."""
        operands: list[Any] = []
        segments: list[int] = []
        for name, arity in self.groups:
            given = fields.pop(name, None)
            if arity == "many":
                items = [] if given is None else list(given)
            else:
                items = [] if given is None else [given]
                assert items or arity == "optional", f"operand {name!r} is missing"
            operands.extend(items)
            segments.append(len(items))
        attributes = {f.name: fields.pop(f.name, f.default) for f in self.attributes}
        assert not fields, f"unknown fields {sorted(fields)}"
        missing = [name for name, value in attributes.items() if value is _MISSING]
        assert not missing, f"attributes {missing} are missing"
        return operands, tuple(segments), attributes

    def group_range(self, segments: Sequence[int], name: str) -> tuple[int, int]:
        start = 0
        for place, (group, _) in enumerate(self.groups):
            if group == name:
                return start, start + segments[place]
            start += segments[place]
        raise KeyError(name)

    def resize(self, segments: Sequence[int], name: str, size: int) -> tuple[int, ...]:
        return tuple(
            size if group == name else old
            for (group, _), old in zip(self.groups, segments, strict=True)
        )

    def split(self, operands: Sequence[T], segments: Sequence[int]) -> list[Sequence[T]]:
        """Flat operands cut into the groups."""
        parts: list[Sequence[T]] = []
        start = 0
        for size in segments:
            parts.append(operands[start : start + size])
            start += size
        return parts


_ARITY: dict[type, str] = {
    OperandField: "one",
    OptionalField: "optional",
    VariadicField: "many",
    SuccessorField: "many",
}


def spec_of(cls: type) -> OpSpec:
    """Collect the field descriptors of an op class, base classes first."""
    groups: list[tuple[str, str]] = []
    attributes: list[AttributeField[Any]] = []
    successors: list[str] = []
    for base in reversed(cls.__mro__):
        for field in vars(base).values():
            if isinstance(field, AttributeField):
                attributes.append(field)
            elif isinstance(field, _Field):
                groups.append((field.name, _ARITY[type(field)]))
                if isinstance(field, SuccessorField):
                    successors.append(field.name)
    return OpSpec(tuple(groups), tuple(attributes), tuple(successors))
