"""Rooms ask an operation what it is and does: they keep no lists of op classes.

A check against more than two op classes at once, or a collection of op classes, is a question that
an interface of `ir.interfaces` should answer; the next op class would be missing in it. Tables that
give every class its own function (an interpreter's, a backend's) are no such lists.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.structure.sources import sources
from tilenest.dialects import OPERATIONS

ROOMS = ("passes", "plan", "analysis", "nests", "capture", "driver")
CLASSES = {kind.__name__ for kind in OPERATIONS}
MOST = 2


def test_rooms_keep_no_lists_of_op_classes() -> None:
    found = [
        f"{source.name}:{line}"
        for source in sources("src")
        if source.room in ROOMS
        for line in lists_of_classes(source.tree)
    ]
    assert not found, f"ask an interface of the operation: {found}"


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(op, Load | Store | Map)",
        "isinstance(op, (Load, Store, Map))",
        "_PURE = (Apply, Cast, Constant)",
        "_PURE = frozenset({Apply, Cast, Constant})",
    ],
)
def test_the_rule_finds_lists(text: str) -> None:
    imported = "from tilenest.dialects import Apply, Cast, Constant, Load, Map, Store\n"
    assert list(lists_of_classes(ast.parse(imported + text))) == [2]
    assert not list(lists_of_classes(ast.parse(text)))


@pytest.mark.parametrize(
    "text", ["isinstance(op, Load | Store)", "{Apply: one, Cast: two, If: three}"]
)
def test_the_rule_leaves_pairs_and_tables(text: str) -> None:
    imported = "from tilenest.dialects import Apply, Cast, If, Load, Store\n"
    assert not list(lists_of_classes(ast.parse(imported + text)))


def lists_of_classes(tree: ast.Module) -> Iterator[int]:
    """Lines that name more than `MOST` op classes in one check or collection."""
    known = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "tilenest.dialects"
        for alias in node.names
        if alias.name in CLASSES
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            named = [item for item in node.elts if isinstance(item, ast.Name)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
            choices = [part for part in ast.walk(node.args[1]) if isinstance(part, ast.BinOp)]
            sides = [side for part in choices for side in (part.left, part.right)]
            named = [side for side in sides if isinstance(side, ast.Name)]
        else:
            continue
        if sum(item.id in known for item in named) > MOST:
            yield node.lineno
