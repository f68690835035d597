"""Reading the text of a module back into a module.

In: text and the registry of op classes and attribute records. Out: a module whose text is the same;
locations come back when the text has their table. The parser knows the grammar, not the rules: what
it accepts may still break rules of the verifier. Bad text is a `ParseError` with a caret; what has
no location in the table is placed in the text itself, so that the verifier can point there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from tilenest.errors import SourceLocation
from tilenest.ir.attribute_parser import MOST_NESTED, AttributeParser
from tilenest.ir.core import Block, Function, Operation, Region, Value
from tilenest.ir.fields import AttributeField
from tilenest.ir.forward import Forward, Waiting, last_definitions, undefined
from tilenest.ir.lexer import Cursor, Token
from tilenest.ir.module import Module
from tilenest.ir.registry import Registry, record_name
from tilenest.layouts import Dim


def parse_module(text: str, registry: Registry, *, file: str = "<text>") -> Module:
    """The module a text stands for; `file` names the text in errors."""
    return _Parser(Cursor(text, file), registry).module()


class _Parser:
    """One text being read."""

    def __init__(self, cursor: Cursor, registry: Registry) -> None:
        self.cursor = cursor
        self.registry = registry
        self.attributes = AttributeParser(cursor, registry.records)
        self.visible: dict[str, Value] = {}
        self.located: list[tuple[Operation, int, Token]] = []
        self.labels: list[_Labels] = []
        """of the blocks of the open regions, innermost last"""
        self.waiting: list[Waiting] = []
        """what the open regions use that a block further on defines, innermost last"""
        self.definitions: Mapping[str, int] | None = None
        self.functions: set[str] = set()
        """the names of those that have begun"""

    # Module --------------------------------------------------------------------------------

    def module(self) -> Module:
        start = self.cursor.expect("module")
        module = Module(self.attributes.string())
        module.location = self.cursor.locate(start)
        while self.cursor.at("dim"):
            self._dim()
        module.attributes.update(self._extra())
        while self.cursor.at("func"):
            self._function(module)
        self._locations()
        if self.cursor.token.kind != "end":
            raise self.cursor.error(f"expected `func` or the end, found {self.cursor.found()}")
        return module

    def _dim(self) -> None:
        self.cursor.expect("dim")
        name = self.cursor.expect_kind("value", "the name of a dim")
        if name.text in self.attributes.dims:
            raise self.cursor.error(f"the dim {name.text} is declared twice", name)
        label = self.attributes.string() if self.cursor.token.kind == "string" else None
        self.cursor.expect("=")
        self.attributes.dims[name.text] = Dim(label, self.attributes.integer(0))

    def _extra(self) -> dict[str, Any]:
        """Attributes of a module or function."""
        found: dict[str, Any] = {}

        def item() -> None:
            name = self.cursor.expect_kind("name", "the name of an attribute")
            if name.text in found:
                raise self.cursor.error(f"`{name.text}` is given twice", name)
            self.cursor.expect("=")
            found[name.text] = self.attributes.value()

        if self.cursor.accept("with"):
            self.cursor.expect("(")
            self.attributes.items(item, ")")
        return found

    def _function(self, module: Module) -> None:
        self.cursor.expect("func")
        self.cursor.expect("@")
        token = self.cursor.token
        name = self._function_name()
        if name in self.functions:
            raise self.cursor.error(f"two functions are named @{name}", token, "rename one of them")
        self.cursor.expect("(")
        self.functions.add(name)
        function = module.add(Function(name))
        function.location = self.cursor.locate(token)
        with self._scope():
            self._arguments(function.body, ")")
            results = self.attributes.types() if self.cursor.accept("->") else []
            function.result_types = tuple(results)
            function.attributes.update(self._extra())
            self.cursor.expect("{")
            self._operations(function.body, 0)
            self._further_blocks(function.region, 0)

    def _function_name(self) -> str:
        if self.cursor.token.kind == "string":
            return self.attributes.string()
        return self.cursor.expect_kind("name", "the name of a function").text

    def _locations(self) -> None:
        table: dict[int, SourceLocation] = {}
        self.attributes.records = {record_name(SourceLocation): SourceLocation}
        while self.cursor.accept("location"):
            number = self.attributes.integer(0)
            self.cursor.expect("=")
            table[number] = self.attributes.value_of(SourceLocation, "a location")
        for operation, number, token in self.located:
            if number not in table:
                raise self.cursor.error(f"no location {number} is in the table", token)
            operation.location = table[number]

    # Blocks --------------------------------------------------------------------------------

    @contextmanager
    def _scope(self) -> Iterator[None]:
        """Names of values and blocks defined inside are not visible afterwards."""
        outer = len(self.visible)
        self.labels.append(_Labels())
        self.waiting.append(Waiting())
        yield
        self.labels.pop().refuse_missing(self.cursor)
        self.waiting.pop().hand_on(self.waiting[-1] if self.waiting else None, self.cursor)
        while len(self.visible) > outer:
            self.visible.popitem()

    def _region(self, depth: int) -> Region:
        opening = self.cursor.expect("{")
        if depth > MOST_NESTED:
            raise self.cursor.error(f"regions nest deeper than {MOST_NESTED} levels", opening)
        region = Region()
        with self._scope():
            if self.cursor.token.kind in ("value", "name"):
                self._operations(region.append(Block()), depth)
            self._further_blocks(region, depth)
        return region

    def _further_blocks(self, region: Region, depth: int) -> None:
        """Blocks up to the end of the region; each sees the values of those before it."""
        while not self.cursor.accept("}"):
            block = Block()
            if self.cursor.token.kind == "label":
                block = self.labels[-1].define(self.cursor)
            self.cursor.expect("|")
            region.append(block)
            self.waiting[-1].next_block()
            self._arguments(block, "|")
            self._operations(block, depth)

    def _arguments(self, block: Block, closing: str) -> None:
        def argument() -> None:
            name = self.cursor.expect_kind("value", "an argument")
            self.cursor.expect(":")
            self._define(name, block.add_argument(self.attributes.type()))

        self.attributes.items(argument, closing)

    def _operations(self, block: Block, depth: int) -> None:
        while self.cursor.token.kind in ("value", "name"):
            self._operation(block, depth)

    def _define(self, token: Token, value: Value) -> None:
        if token.text in self.visible:
            raise self.cursor.error(f"{token.text} is already defined", token)
        self.visible[token.text] = value
        self.waiting[-1].define(token, value, self.cursor)
        name = token.text[1:]
        value.name = None if re.fullmatch("[0-9]+", name) else name

    def _value(self) -> Value:
        token = self.cursor.expect_kind("value", "a value")
        value = self.visible.get(token.text)
        if value is not None:
            return value
        if self.definitions is None:
            self.definitions = last_definitions(self.cursor.text)
        if self.definitions.get(token.text, 0) < token.start:
            raise undefined(self.cursor, token)
        return self.waiting[-1].refer(token)

    # Operations ----------------------------------------------------------------------------

    def _operation(self, block: Block, depth: int) -> None:
        names: list[Token] = []
        if self.cursor.token.kind == "value":
            names.append(self.cursor.take())
            while self.cursor.accept(","):
                names.append(self.cursor.expect_kind("value", "the name of a result"))
            self.cursor.expect("=")
        token = self.cursor.expect_kind("name", "an operation")
        cls = self._class(token)
        fields = _FieldReader(self, cls, token).read()
        types = self.attributes.types() if self.cursor.accept(":") else []
        if len(types) != len(names):
            raise self.cursor.error(f"{len(names)} results have {len(types)} types", token)
        reference = self._location_reference()
        regions: list[Region] = []
        while self.cursor.at("{"):
            regions.append(self._region(depth + 1))
        place = self.cursor.locate(token)
        operation = cls(result_types=types, regions=regions, location=place, **fields)
        if reference is not None:
            self.located.append((operation, *reference))
        for use in operation.operand_uses:
            if isinstance(use.value, Forward):
                use.value.slots.append(use)
        block.append(operation)
        for name, result in zip(names, operation.results, strict=True):
            self._define(name, result)

    def _class(self, token: Token) -> type[Operation]:
        cls = self.registry.operations.get(token.text)
        if cls is None:
            near = get_close_matches(token.text, self.registry.operations, 1)
            remedy = f"did you mean {near[0]}?" if near else None
            raise self.cursor.error(f"no operation `{token.text}` is known", token, remedy)
        return cls

    def _location_reference(self) -> tuple[int, Token] | None:
        if not self.cursor.accept("at"):
            return None
        token = self.cursor.token
        return self.attributes.integer(0), token


class _Labels:
    """The labelled blocks of one region: some are branched to before they stand there."""

    def __init__(self) -> None:
        self.blocks: dict[str, Block] = {}
        self.missing: dict[str, Token] = {}

    def define(self, cursor: Cursor) -> Block:
        token = cursor.take()
        if token.text in self.blocks and token.text not in self.missing:
            raise cursor.error(f"the block {token.text} stands here twice", token)
        self.missing.pop(token.text, None)
        return self.blocks.setdefault(token.text, Block())

    def refer(self, cursor: Cursor) -> Block:
        token = cursor.take()
        if token.text not in self.blocks:
            self.missing[token.text] = token
        return self.blocks.setdefault(token.text, Block())

    def refuse_missing(self, cursor: Cursor) -> None:
        for name, token in self.missing.items():
            raise cursor.error(
                f"no block {name} is in this region",
                token,
                "branch to a block of the same region, and label it in front of its arguments",
            )


class _FieldReader:
    """Operands and attributes of one operation, as the keywords its class takes."""

    def __init__(self, parser: _Parser, cls: type[Operation], token: Token) -> None:
        self.parser = parser
        self.cursor = parser.cursor
        self.token = token
        self.groups = dict(cls.SPEC.groups)
        self.attributes = {field.name: field for field in cls.SPEC.attributes}
        self.found: dict[str, Any] = {}
        many = cls.SPEC.lists
        self.bare = many[0] if len(cls.SPEC.groups) == 1 and many else None
        self.listed = many[0] if len(many) == 1 and self.bare is None else None
        self.required = [name for name, arity in cls.SPEC.groups if arity == "one"]
        self.successors = cls.SPEC.successors

    def read(self) -> dict[str, Any]:
        for field in self.attributes.values():
            if field.is_leading:
                self._attribute(field)
        if self.cursor.accept("("):
            self.parser.attributes.items(self._item, ")")
        missing = [n for n in (*self.required, *self.successors) if n not in self.found]
        missing += [
            name
            for name, field in self.attributes.items()
            if name not in self.found and not field.has_default
        ]
        if missing:
            raise self.cursor.error(f"{self.token.text} needs `{missing[0]}`", self.token)
        return self.found

    def _item(self) -> None:
        token = self.cursor.token
        if token.kind == "value":
            self._positional(token)
        elif token.kind == "label":
            self._successor(token)
        elif self.cursor.accept("["):
            if self.listed is None or self.listed in self.found:
                raise self.cursor.error(
                    f"{self.token.text} takes no list without a name here", token
                )
            self.found[self.listed] = self._values()
        else:
            self.cursor.expect_kind("name", "an operand or the name of a field")
            self._named(token)

    def _positional(self, token: Token) -> None:
        value = self.parser._value()
        if self.bare is not None:
            self.found.setdefault(self.bare, []).append(value)
            return
        waiting = [name for name in self.required if name not in self.found]
        if not waiting:
            raise self.cursor.error(f"{self.token.text} takes no further operand here", token)
        self.found[waiting[0]] = value

    def _successor(self, token: Token) -> None:
        """The next block to go on with, and what it takes."""
        waiting = [name for name in self.successors if name not in self.found]
        if not waiting:
            raise self.cursor.error(f"{self.token.text} goes on with no further block", token)
        block = self.parser.labels[-1].refer(self.cursor)
        values: list[Value] = []
        if self.cursor.accept("("):
            values = self.parser.attributes.items(self.parser._value, ")")
        self.found[waiting[0]] = (block, values)

    def _named(self, token: Token) -> None:
        name = token.text
        field = self.attributes.get(name)
        arity = self.groups.get(name, "one")
        implied = (self.bare, self.listed, *self.successors)
        is_known = field is not None or (arity != "one" and name not in implied)
        if not is_known or name in self.found:
            raise self.cursor.error(f"{self.token.text} has no further field `{name}`", token)
        self.cursor.expect("=")
        if field is not None:
            self._attribute(field)
        elif arity == "optional":
            self.found[name] = self.parser._value()
        else:
            self.cursor.expect("[")
            self.found[name] = self._values()

    def _values(self) -> list[Value]:
        return self.parser.attributes.items(self.parser._value, "]")

    def _attribute(self, field: AttributeField[Any]) -> None:
        what = f"`{field.name}` of {self.token.text}"
        self.found[field.name] = self.parser.attributes.value_of(field.kind, what)
