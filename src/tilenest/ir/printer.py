"""The text of a module, derived from what op classes declare.

In: a module or an operation. Out: text that `parse_module` reads back to an equal module. An op
prints as a call: required operands first, the rest and the attributes by name, defaults left out;
then `: result types`, then its regions in braces with `|arguments|`. A block that branches go to
has a label in front of them, `^0`, and stands behind the blocks whose values it uses. Nothing in
the text depends on identity or time, so without locations it serves as a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tilenest.errors import SourceLocation
from tilenest.ir.contents import ModuleContents
from tilenest.ir.core import Block, Function, Operation, Region, Value
from tilenest.ir.dominators import block_dominators
from tilenest.ir.spelling import Names, attribute_text, quoted, type_text
from tilenest.ir.types import Type

_WIDTH = 100
_INDENT = "  "


def print_module(module: ModuleContents, *, locations: bool = False) -> str:
    """The whole module; with `locations`, operations refer to a table at the end."""
    printer = _Printer(locations)
    printer.module(module)
    return printer.text()


def print_module_lines(module: ModuleContents) -> tuple[list[str], Mapping[Operation, int]]:
    """The lines of `print_module`, and the index of the first line of every operation."""
    printer = _Printer(False)
    printer.module(module)
    return printer.text().splitlines(), printer.line_of


def names_in_text(function: Function) -> Mapping[Value, str]:
    """What the text of a module calls the values of a function, without the `%`."""
    names = Names()
    return {value: names.value(value)[1:] for value in _values_of(function.region)}


class _Printer:
    """Lines written so far."""

    def __init__(self, locations: bool) -> None:
        self.names = Names()
        self.lines: list[str] = []
        self.line_of: dict[Operation, int] = {}
        self.locations: dict[SourceLocation, int] | None = {} if locations else None

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def module(self, module: ModuleContents) -> None:
        for function in module.functions:
            self.lines.append("")
            self.function(function)
        extra = self._extra("", module.attributes, "")
        dims = self.names.dim_declarations()
        header = [f"module {quoted(module.form)}", *([""] if dims else []), *dims]
        if module.attributes:
            header += ["", *extra]
        self.lines[:0] = header
        self.line_of = {op: line + len(header) for op, line in self.line_of.items()}
        if self.locations:
            self.lines.append("")
        for location, number in (self.locations or {}).items():
            self.lines.append(f"location {number} = {attribute_text(location, self.names)}")

    def function(self, function: Function) -> None:
        self.names.start_function()
        arguments = [self._declaration(argument) for argument in function.arguments]
        results = self._types("-> ", function.result_types)
        head = f"func @{_function_name(function.name)}"
        *lines, last = _call(head, arguments, results, 0, always=True)
        self.lines += [*lines, *self._extra(f"{last} ", function.attributes, " {")]
        self._blocks(function.region, 0)
        self.lines.append("}")

    def operation(self, op: Operation, depth: int) -> None:
        self.line_of[op] = len(self.lines)
        results = ", ".join(self.names.value(result) for result in op.results)
        leading, named = self._attributes(op)
        head = f"{results} = {op.NAME}" if results else op.NAME
        if leading:
            head = " ".join([head, *leading])
        tail = self._types(": ", [result.type for result in op.results])
        if self.locations is not None and op.location is not None:
            tail += f" at {self.locations.setdefault(op.location, len(self.locations))}"
        self.lines += _call(head, [*self._operands(op), *named], tail, depth)
        for region in op.regions:
            self._open(region, depth)
            self._blocks(region, depth)
            self.lines.append(_INDENT * depth + "}")

    def _blocks(self, region: Region, depth: int) -> None:
        for block in _in_order(region):
            if block is not region.blocks.first:
                self.lines.append(_INDENT * depth + self._label(block) + self._header(block))
            for op in block.operations:
                self.operation(op, depth + 1)

    def _open(self, region: Region, depth: int) -> None:
        """Open the braces on the last line, with the first block's arguments if they fit there."""
        self.lines[-1] += " {"
        first = region.blocks.first
        if first is not None and (first.arguments or not first.operations):
            header = self._header(first)
            if len(self.lines[-1]) + len(header) < _WIDTH:
                self.lines[-1] += " " + header
            else:
                self.lines.append(_INDENT * depth + header)

    def _label(self, block: Block) -> str:
        return f"{self.names.block(block)} " if block.incoming else ""

    def _header(self, block: Block) -> str:
        return f"|{', '.join(self._declaration(argument) for argument in block.arguments)}|"

    def _declaration(self, value: Value) -> str:
        return f"{self.names.value(value)}: {type_text(value.type, self.names)}"

    def _types(self, before: str, types: Sequence[Type]) -> str:
        if not types:
            return ""
        texts = [type_text(type_, self.names) for type_ in types]
        return f" {before}{texts[0] if len(texts) == 1 else '(' + ', '.join(texts) + ')'}"

    def _extra(self, before: str, attributes: Mapping[str, Any], after: str) -> list[str]:
        """`before with (attributes)after` on one line, or an attribute a line, or an item of one
        where that is still too long."""
        if not attributes:
            return [before.rstrip() + after]
        items = [
            (f"{name} = ", value, attribute_text(value, self.names))
            for name, value in sorted(attributes.items())
        ]
        line = f"{before}with ({', '.join(name + text for name, _, text in items)}){after}"
        if len(line) <= _WIDTH:
            return [line]
        inner = _INDENT * 2
        body: list[str] = []
        for name, value, text in items:
            body.append(f"{inner}{name}{text},")
            if len(body[-1]) > _WIDTH and isinstance(value, tuple):
                parts = [f"{inner * 2}{attribute_text(part, self.names)}," for part in value]
                body[-1:] = [f"{inner}{name}[", *parts[:-1], parts[-1][:-1], f"{inner}],"]
        return [f"{before}with (", *body[:-1], body[-1][:-1], f"){after}"]

    def _operands(self, op: Operation) -> Iterable[str]:
        groups = op.SPEC.groups
        is_only_group = len(groups) == 1
        by_name = len(op.SPEC.lists) > 1
        successors = iter(op.successors)
        parts = op.SPEC.split(op.operands, op.segments)
        for (name, arity), values in zip(groups, parts, strict=True):
            text = ", ".join(self.names.value(value) for value in values)
            if name in op.SPEC.successors:
                yield self.names.block(next(successors)) + (f"({text})" if text else "")
            elif not values:
                continue
            elif arity == "many" and not is_only_group:
                yield f"{name} = [{text}]" if by_name else f"[{text}]"
            else:
                yield f"{name} = {text}" if arity == "optional" else text

    def _attributes(self, op: Operation) -> tuple[list[str], list[str]]:
        leading: list[str] = []
        named: list[str] = []
        for field in op.SPEC.attributes:
            text = attribute_text(op.attributes[field.name], self.names)
            if field.is_leading:
                leading.append(text)
            elif not field.has_default or text != attribute_text(field.default, self.names):
                named.append(f"{field.name} = {text}")
        return leading, named


def _in_order(region: Region) -> list[Block]:
    """The blocks, every one behind those whose values it may use."""
    blocks = list(region.blocks)
    if len(blocks) < 2:
        return blocks
    reached = dict.fromkeys(block_dominators(region).order)
    return [*reached, *(block for block in blocks if block not in reached)]


def _call(
    head: str, items: Iterable[str], tail: str, depth: int, *, always: bool = False
) -> list[str]:
    """`head(items) tail` on one line, or an item a line where that is too long."""
    listed = list(items)
    margin = _INDENT * depth
    if not listed and not always:
        return [margin + head + tail]
    line = f"{margin}{head}({', '.join(listed)}){tail}"
    if len(line) <= _WIDTH or len(listed) < 2:
        return [line]
    inner = margin + _INDENT * 2
    body = [inner + item + "," for item in listed[:-1]]
    return [f"{margin}{head}(", *body, inner + listed[-1], f"{margin}){tail}"]


def _values_of(region: Region) -> Iterator[Value]:
    """The values of a region in the order of the text."""
    for block in _in_order(region):
        yield from block.arguments
        for op in block.operations:
            yield from op.results
            for inner in op.regions:
                yield from _values_of(inner)


def _function_name(name: str) -> str:
    return name if name.isidentifier() else quoted(name)
