"""Who changes IR: passes do by the rewriter and by builders, analyses and plans not at all.

A call of one of the mutating methods of `ir.core` is told by its name and by what it is called on;
a write is told by the member it goes to. Capture and the language make a module from nothing and
may use the core directly.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.structure.sources import sources

ROOMS = ("passes", "plan", "analysis", "nests", "verify", "interp")
MUTATORS = {
    "add_argument",
    "add_region",
    "add_result",
    "detach",
    "detach_block",
    "erase",
    "move",
    "move_block",
    "order_arguments",
    "remove_argument",
    "replace_all_uses_with",
    "set_group",
    "set_operand",
    "set_successor",
}
LIST_METHODS = {"append", "insert", "remove"}
MEDIATORS = {"rewriter", "Rewriter", "builder", "Builder"}
LISTS = {"arguments", "attributes", "blocks", "body", "block", "functions", "operand_uses"}
LISTS |= {"edges", "incoming", "operations", "regions", "results", "uses"}
LINKS = {"form", "index", "operand_uses", "owner", "parent", "segments", "type"}


def test_only_the_rewriter_and_builders_change_ir() -> None:
    found = [
        f"{source.name}:{line}"
        for source in sources("src")
        if source.room in ROOMS
        for line in mutations(source.tree)
    ]
    assert not found, f"go through the rewriter, or build with a builder: {found}"


@pytest.mark.parametrize(
    "text",
    [
        "op.erase()",
        "op.result.replace_all_uses_with(value)",
        "op.detach()",
        "op.set_group('values', [])",
        "op.set_successor(0, block)",
        "movement.detach_block(block)",
        "block.incoming.append(edge)",
        "loop.body.append(op)",
        "op.regions.append(region)",
        "block.insert(op, before)",
        "block.add_argument(INDEX)",
        "op.attributes['sched'] = sched",
        "del op.results[0]",
        "block.arguments[:] = []",
        "argument.index = 1",
        "value.type = INDEX",
        "module.form = 'machine'",
    ],
)
def test_a_change_is_told(text: str) -> None:
    assert list(mutations(ast.parse(text))) == [1]


@pytest.mark.parametrize(
    "text",
    [
        "rewriter.erase(op)",
        "self.builder.add_argument(INDEX)",
        "Rewriter().set_operand(op, 0, value)",
        "Builder(block).order_arguments(values)",
        "results.append(value)",
        "builder.insert(op)",
        "rewriter.set_successor(op, 'then', block)",
        "rewriter.move_block(block, region)",
        "attributes['a'] = 1",
    ],
)
def test_what_goes_through_them_is_not(text: str) -> None:
    assert not list(mutations(ast.parse(text)))


def mutations(tree: ast.AST) -> Iterator[int]:
    """Lines that change IR directly."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            method, receiver = node.func.attr, node.func.value
            is_change = method in MUTATORS and last_name(receiver) not in MEDIATORS
            if is_change or (method in LIST_METHODS and is_list(receiver)):
                yield node.lineno
        elif isinstance(node, ast.Assign | ast.Delete | ast.AugAssign):
            targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
            yield from (node.lineno for target in targets if is_link(target))


def is_list(receiver: ast.expr) -> bool:
    """Whether something is a list of the core: a member, or what is always called a block."""
    is_member = isinstance(receiver, ast.Attribute) and receiver.attr in LISTS
    return is_member or last_name(receiver) in ("block", "body")


def is_link(target: ast.expr) -> bool:
    """Whether a written place belongs to an operation, a block or a value."""
    if isinstance(target, ast.Subscript):
        return isinstance(target.value, ast.Attribute) and target.value.attr in LISTS
    if isinstance(target, ast.Attribute):
        return target.attr in LINKS and last_name(target.value) != "self"
    return isinstance(target, ast.Tuple) and any(map(is_link, target.elts))


def last_name(node: ast.expr) -> str:
    """The name that a receiver goes by."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def test_the_rooms_exist() -> None:
    rooms = {source.room for source in sources("src")}
    assert rooms.issuperset(ROOMS)
