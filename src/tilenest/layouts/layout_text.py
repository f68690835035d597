"""Reading spaces, layout maps and correspondences back from their text.

In: what `str` of one prints, such as `strides([m=4, n=8] -> [x=32], ((8, 1)))`, and the registered
transforms that a text may name. Out: an equal map. Anything else is a ParseError naming the column;
what the map's own checks refuse is their ShapeError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from tilenest.errors import ParseError
from tilenest.layouts.correspondence import LayoutCorr
from tilenest.layouts.index_expr import IndexExpr
from tilenest.layouts.index_text import parse_index_expr
from tilenest.layouts.kinds import MOST_NESTED, check_kind
from tilenest.layouts.layout_leaves import (
    BitLinear,
    Expressions,
    FiniteTable,
    MixedRadix,
    Recast,
    Registered,
    Transform,
    Translate,
)
from tilenest.layouts.layout_map import (
    Compose,
    Identity,
    LayoutMap,
    Permute,
    Piecewise,
    Point,
    Product,
    Project,
)
from tilenest.layouts.spaces import Axis, Constraint, IndexSet, Space

_Item = TypeVar("_Item")
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(r"-?[0-9]{1,100}")
_SPACES = re.compile(r"\s*")
_REMEDY = "write a map as its text prints, such as strides([m=4, n=8] -> [x=32], ((8, 1)))"


def parse_layout(text: str, registry: Mapping[str, Registered] | None = None) -> LayoutMap:
    """The map a text stands for; transforms are looked up by name."""
    reader = _Reader(text, {} if registry is None else registry)
    found = reader.layout()
    reader.finish()
    return found


def parse_correspondence(text: str, registry: Mapping[str, Registered] | None = None) -> LayoutCorr:
    """The correspondence a text such as `span(left, right)` stands for."""
    reader = _Reader(text, {} if registry is None else registry)
    reader.expect("span")
    left, right = reader.two_layouts()
    reader.finish()
    return LayoutCorr(left, right)


def parse_space(text: str) -> Space:
    """The space a text such as `[m=4, n=N]` stands for."""
    reader = _Reader(text, {})
    found = reader.space()
    reader.finish()
    return found


def parse_index_set(text: str) -> IndexSet:
    """The set a text such as `[m=4]{d0 - 1 >= 0}` stands for."""
    reader = _Reader(text, {})
    space = reader.space()
    found = reader.index_set(space)
    reader.finish()
    return found


class _Reader:
    """One text and how far it is read."""

    def __init__(self, text: str, registry: Mapping[str, Registered]) -> None:
        check_kind(text, str, "the text of a layout")
        check_kind(registry, Mapping, "the registered bijections")
        self.text = text
        self.place = 0
        self.depth = 0
        self.registry = registry

    def error(self, wanted: str) -> ParseError:
        shown = self.text if len(self.text) <= 200 else f"{self.text[:200]}..."
        return ParseError(f'expected {wanted} at column {self.place + 1} of "{shown}"', _REMEDY)

    def sees(self, symbol: str) -> bool:
        found = _SPACES.match(self.text, self.place)
        assert found is not None
        self.place = found.end()
        return self.text.startswith(symbol, self.place)

    def accepts(self, symbol: str) -> bool:
        is_next = self.sees(symbol)
        self.place += len(symbol) * is_next
        return is_next

    def expect(self, symbol: str) -> None:
        if not self.accepts(symbol):
            raise self.error(f'"{symbol}"')

    def finish(self) -> None:
        self.sees("")
        if self.place < len(self.text):
            raise self.error("the end")

    def take(self, pattern: re.Pattern[str], wanted: str) -> str:
        self.sees("")
        found = pattern.match(self.text, self.place)
        if found is None:
            raise self.error(wanted)
        self.place = found.end()
        return found[0]

    def word(self) -> str:
        return self.take(_WORD, "a name")

    def number(self) -> int:
        return int(self.take(_NUMBER, "a whole number"))

    def items(self, opening: str, item: Callable[[], _Item], closing: str) -> tuple[_Item, ...]:
        self.expect(opening)
        found: list[_Item] = []
        while not self.accepts(closing):
            if found:
                self.expect(",")
            found.append(item())
        return tuple(found)

    def numbers(self) -> Point:
        return self.items("(", self.number, ")")

    def space(self) -> Space:
        return Space(self.items("[", self.axis, "]"))

    def axis(self) -> Axis:
        name = self.quoted() if self.sees('"') else self.word()
        self.expect("=")
        self.sees("")
        is_known = _NUMBER.match(self.text, self.place) is not None
        return Axis(name, self.number() if is_known else self.word())

    def quoted(self) -> str:
        start = self.place
        quoted = self.take(_QUOTED, "a quoted name")
        try:
            return str(json.loads(quoted))
        except json.JSONDecodeError:
            self.place = start
            raise self.error("a quoted name") from None

    def expression(self) -> IndexExpr:
        """An index expression: the text up to what closes or separates it here."""
        self.sees("")
        start = self.place
        depth = 0
        while self.place < len(self.text):
            sign = self.text[self.place]
            if depth == 0 and (sign in ",)}" or self.text.startswith((">= 0", "== 0"), self.place)):
                break
            depth += (sign == "(") - (sign == ")")
            self.place += 1
        return parse_index_expr(self.text[start : self.place])

    def constraint(self) -> Constraint:
        expression = self.expression()
        is_equality = self.accepts("==")
        if not is_equality:
            self.expect(">=")
        self.expect("0")
        return Constraint(expression, is_equality)

    def names(self) -> tuple[str, ...]:
        """`with a b`, when it stands here."""
        if not self.accepts("with "):
            return ()
        found = [self.word()]
        while self.place < len(self.text) and not self.sees(",") and not self.sees("{"):
            found.append(self.word())
        return tuple(found)

    def index_set(self, space: Space) -> IndexSet:
        extra = self.names()
        return IndexSet(space, self.items("{", self.constraint, "}"), extra)

    def layout(self) -> LayoutMap:
        self.depth += 1
        if self.depth > MOST_NESTED + 1:
            raise self.error(f"at most {MOST_NESTED} nested maps")
        self.sees("")
        start = self.place
        name = self.word()
        found = self.joined(name) if name in _JOINING else self.leaf(name)
        if found is None:
            self.place = start
            raise self.error("the name of a kind of map")
        self.depth -= 1
        return found

    def joined(self, name: str) -> LayoutMap:
        """A node made from maps or positions."""
        if name in ("compose", "product"):
            first, second = self.two_layouts()
            return Compose(first, second) if name == "compose" else Product(first, second)
        self.expect("(")
        domain = self.space()
        found: LayoutMap = Identity(domain)
        if name == "piecewise":
            self.expect("->")
            return Piecewise(domain, self.space(), self.pieces(domain))
        if name != "identity":
            self.expect(",")
            places = self.numbers()
            found = Project(domain, places) if name == "project" else Permute(domain, places)
        self.expect(")")
        return found

    def two_layouts(self) -> tuple[LayoutMap, LayoutMap]:
        self.expect("(")
        first = self.layout()
        self.expect(",")
        second = self.layout()
        self.expect(")")
        return first, second

    def pieces(self, domain: Space) -> tuple[tuple[IndexSet, LayoutMap], ...]:
        found: list[tuple[IndexSet, LayoutMap]] = []
        while not self.accepts(")"):
            self.expect(",")
            index_set = self.index_set(domain)
            self.expect(":")
            found.append((index_set, self.layout()))
        return tuple(found)

    def leaf(self, name: str) -> LayoutMap | None:
        """A node with numbers of its own."""
        self.expect("(")
        domain = self.space()
        self.expect("->")
        codomain = self.space()
        extra = self.names()
        if name != "recast":
            self.expect(",")
        found = self.leaf_of(name, domain, codomain, extra)
        if found is not None:
            self.expect(")")
        return found

    def leaf_of(
        self, name: str, domain: Space, codomain: Space, extra: tuple[str, ...]
    ) -> LayoutMap | None:
        match name:
            case "strides":
                return MixedRadix(domain, codomain, self.items("(", self.numbers, ")"))
            case "translate":
                return Translate(domain, codomain, self.numbers())
            case "recast":
                return Recast(domain, codomain)
            case "bits":
                bases = self.numbers()
                self.expect(",")
                return BitLinear(domain, codomain, bases, self.number())
            case "expressions":
                results = self.items("(", self.expression, ")")
                return Expressions(domain, codomain, results, extra)
            case "table":
                return FiniteTable(domain, codomain, self.items("(", self.entry, ")"))
            case "transform" | "inverse_transform":
                is_inverse = name.startswith("inverse")
                return Transform(domain, codomain, self.transform(), is_inverse)
        return None

    def entry(self) -> Point | None:
        return None if self.accepts("none") else self.numbers()

    def transform(self) -> Registered:
        self.sees("")
        start = self.place
        found = self.registry.get(self.word())
        if found is None:
            self.place = start
            raise self.error("the name of a registered transform")
        return found


_JOINING = frozenset({"identity", "compose", "product", "project", "permute", "piecewise"})
