"""Rooms ask an operation what it is and does: they keep no lists of op classes.

A check against more than two op classes at once, or a collection of op classes, is a question that
an interface of `ir.interfaces` should answer; the next op class would be missing in it. Tables that
give every class its own function (an interpreter's, a backend's) are no such lists. A class with a
map among its attributes says what the map has to meet, or the verifier would say nothing of it.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.invariants.corpus import examples
from tests.structure.sources import sources
from tilenest.dialects import (
    OPERATIONS,
    AtomCall,
    MapReducePost,
    MemoryAllocate,
    OrderingContract,
    Placement,
    Repartition,
    Spread,
)
from tilenest.driver import parse
from tilenest.ir import Operation
from tilenest.layouts import AffineMap
from tilenest.records import fields_of, is_record

ROOMS = ("passes", "plan", "analysis", "nests", "capture", "driver")
CLASSES = {kind.__name__ for kind in OPERATIONS}
MOST = 2
JUDGED = (OrderingContract, Placement, Repartition, Spread)
"""Records whose maps have rules of their own."""
MAPS = """module "candidate"
dim %d0 "m" = 6
dim %d1 "n" = 5

func @main(%A: view<f32, [16], [1]>, %i: index) {
  %m, %0 = memory.allocate(layout = (d0, d1) -> (d1 * 5 + d0), storage = [30])
    : (memory<f32, %d0, %d1>, state)
  %B = view.remap(%A, symbols = [%i], map = (d0)[s0] -> (d0 + s0), valid = (d0)[s0] -> (s0 - d0),
    fill = 0.0) : view<f32, [4], [1]>
  func.return
}
"""


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


def test_operations_say_what_their_maps_meet() -> None:
    holders: set[type[Operation]] = set()
    silent: set[str] = set()
    accepted = [example.text for example in examples() if example.rule is None]
    for text in (MAPS, *accepted):
        for op in parse(text).walk():
            held = {map_ for value in op.attributes.values() for map_ in maps_in(value)}
            if held:
                holders.add(type(op))
            if held - {use.map for use in op.map_uses()}:
                silent.add(op.NAME)
    assert not silent, f"give them `map_uses`: {sorted(silent)}"
    declared = {
        kind for kind in OPERATIONS for field in kind.SPEC.attributes if field.kind is AffineMap
    }
    missing = declared.union((AtomCall, MapReducePost, MemoryAllocate)) - holders
    assert not missing, f"add an example with each: {missing}"


def maps_in(value: object) -> Iterator[AffineMap]:
    """The maps of an attribute."""
    if isinstance(value, AffineMap):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from maps_in(item)
    elif is_record(value) and not isinstance(value, JUDGED):
        for name in fields_of(type(value)):
            yield from maps_in(getattr(value, name))


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
