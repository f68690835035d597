"""Which nodes of a graph every way from its root to a node passes through.

In: a root and where one may go on from a node; or a region, whose terminators say where control may
go on. Out: the reachable nodes in reverse postorder and the tree of their immediate dominators
(Cooper, Harvey and Kennedy's iteration). Nothing runs in a block that no path from the first one
reaches: every block dominates it, so cutting an edge never breaks what is left behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from tilenest.ir.core import Block, Region
from tilenest.records import record

NodeT = TypeVar("NodeT")
Following = Callable[[NodeT], Iterable[NodeT]]


@record
class DominatorTree(Generic[NodeT]):
    """The dominators of one graph, as it was when this was made."""

    order: tuple[NodeT, ...]
    """the reachable nodes, every one after its dominators"""
    parents: Mapping[NodeT, NodeT]
    """the immediate dominators; the root has none"""
    spans: Mapping[NodeT, tuple[int, int]]
    """when a walk over the tree enters a node, and when it leaves it"""

    def is_reachable(self, node: NodeT) -> bool:
        """Whether some path from the root comes here."""
        return node in self.spans

    def dominates(self, above: NodeT, below: NodeT) -> bool:
        """Whether every path to `below` passes `above`; a node dominates itself."""
        inner = self.spans.get(below)
        if inner is None:
            return True
        outer = self.spans.get(above)
        return outer is not None and outer[0] <= inner[0] and inner[1] <= outer[1]

    def common(self, one: NodeT, other: NodeT) -> NodeT:
        """The nearest dominator of both."""
        while not self.dominates(one, other):
            one = self.parents[one]
        return one

    def walk(self) -> Iterator[tuple[NodeT, bool]]:
        """The tree from its root: every node once when it is entered and once when it is left."""
        yield from _walk(self.order, self.parents)


def dominators(root: NodeT, following: Following[NodeT]) -> DominatorTree[NodeT]:
    """The dominators of what is reached from a root."""
    order = _reverse_postorder(root, following)
    parents = _immediate_dominators(order, following)
    times: dict[NodeT, int] = {}
    spans: dict[NodeT, tuple[int, int]] = {}
    for time, (node, is_entered) in enumerate(_walk(order, parents)):
        if is_entered:
            times[node] = time
        else:
            spans[node] = times[node], time
    return DominatorTree(tuple(order), MappingProxyType(parents), MappingProxyType(spans))


def block_dominators(region: Region) -> DominatorTree[Block]:
    """The dominators of the blocks of a region."""
    first = region.blocks.first
    if first is None:
        nothing: Mapping[Block, Block] = MappingProxyType({})
        return DominatorTree((), nothing, MappingProxyType({}))
    return dominators(first, next_blocks)


def next_blocks(block: Block) -> list[Block]:
    """Where control may go on within the same region."""
    last = block.operations.last
    if last is None or not last.edges:
        return []
    return [target for target in last.successors if target.parent is block.parent]


def _walk(order: Iterable[NodeT], parents: Mapping[NodeT, NodeT]) -> Iterator[tuple[NodeT, bool]]:
    children: dict[NodeT, list[NodeT]] = {}
    roots: list[NodeT] = []
    for node in order:
        children[node] = []
        (children[parents[node]] if node in parents else roots).append(node)
    stack = [(node, True) for node in roots]
    while stack:
        node, is_entered = stack.pop()
        yield node, is_entered
        if is_entered:
            stack.append((node, False))
            stack += [(child, True) for child in reversed(children[node])]


def _reverse_postorder(root: NodeT, following: Following[NodeT]) -> list[NodeT]:
    seen = {root}
    stack = [(root, iter(following(root)))]
    done: list[NodeT] = []
    while stack:
        node, targets = stack[-1]
        for target in targets:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(following(target))))
                break
        else:
            stack.pop()
            done.append(node)
    done.reverse()
    return done


def _immediate_dominators(order: list[NodeT], following: Following[NodeT]) -> dict[NodeT, NodeT]:
    """By iteration in reverse postorder until nothing changes."""
    place = {node: number for number, node in enumerate(order)}
    sources: list[list[int]] = [[] for _ in order]
    for number, node in enumerate(order):
        for target in following(node):
            sources[place[target]].append(number)
    above = [0] + [-1] * (len(order) - 1)
    is_stable = False
    while not is_stable:
        is_stable = True
        for number in range(1, len(order)):
            known = [source for source in sources[number] if above[source] >= 0]
            found = known[0]
            for source in known[1:]:
                found = _common(above, found, source)
            if above[number] != found:
                above[number] = found
                is_stable = False
    return {node: order[above[number]] for number, node in enumerate(order) if number}


def _common(above: list[int], one: int, other: int) -> int:
    """The nearest dominator of both."""
    while one != other:
        while one > other:
            one = above[one]
        while other > one:
            other = above[other]
    return one
