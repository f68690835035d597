"""Intrusive doubly linked lists: constant-time insertion, detachment and movement of nodes.

A node knows the list that owns it; a detached node belongs to no list. Functions of a module,
blocks of a region, operations of a block, uses of a value and edges to a block are all such lists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

NodeT = TypeVar("NodeT", bound="Node")


class Node:
    """A member of at most one `LinkedList`."""

    __slots__ = ("_list", "_next", "_previous")

    _list: LinkedList[Any] | None
    _next: Any
    _previous: Any

    def __init__(self) -> None:
        self._list = None
        self._next = None
        self._previous = None


class Link(Node):
    """A node whose owner stays known while it is in no list."""

    __slots__ = ()

    @property
    def is_linked(self) -> bool:
        return self._list is not None

    def _unlink(self) -> None:
        if self._list is not None:
            self._list.remove(self)


class LinkedList(Generic[NodeT]):
    """An ordered owner of nodes. Iteration tolerates removal of the node just yielded."""

    __slots__ = ("_count", "_first", "_last", "owner")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self._first: NodeT | None = None
        self._last: NodeT | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __iter__(self) -> Iterator[NodeT]:
        node = self._first
        while node is not None:
            following = node._next
            yield node
            node = following

    def __reversed__(self) -> Iterator[NodeT]:
        node = self._last
        while node is not None:
            preceding = node._previous
            yield node
            node = preceding

    @property
    def first(self) -> NodeT | None:
        return self._first

    @property
    def last(self) -> NodeT | None:
        return self._last

    def append(self, node: NodeT) -> None:
        self.insert_before(None, node)

    def insert_before(self, anchor: NodeT | None, node: NodeT) -> None:
        """Link a detached node before `anchor`, or last when it is None."""
        assert node._list is None, "the node already belongs to a list"
        assert anchor is None or anchor._list is self, "the anchor belongs to another list"
        previous = self._last if anchor is None else anchor._previous
        node._list, node._previous, node._next = self, previous, anchor
        if previous is None:
            self._first = node
        else:
            previous._next = node
        if anchor is None:
            self._last = node
        else:
            anchor._previous = node
        self._count += 1

    def remove(self, node: NodeT) -> None:
        assert node._list is self, "the node belongs to another list"
        previous, following = node._previous, node._next
        if previous is None:
            self._first = following
        else:
            previous._next = following
        if following is None:
            self._last = previous
        else:
            following._previous = previous
        node._list = node._previous = node._next = None
        self._count -= 1

    def fault(self) -> str | None:
        """How the links contradict each other, or None when the list is sound."""
        count = 0
        previous: NodeT | None = None
        node = self._first
        while node is not None:
            if node._list is not self:
                return f"member {count} says it belongs elsewhere"
            if node._previous is not previous:
                return f"member {count} links back to another one"
            if count == self._count:
                return f"more than the counted {count} members"
            count += 1
            previous, node = node, node._next
        is_sound = previous is self._last and count == self._count
        return None if is_sound else f"{count} members where {self._count} are counted"
