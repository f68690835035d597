"""How long values are needed: may what runs after a point of the program still read one?

In: a function of nested regions; it must not change while its lifetimes are asked. Out: answers for
a value and a point. The next iteration of a loop comes after this one, so a use anywhere in a loop
comes after every point of the loop, for values from outside of it.
"""

from __future__ import annotations

from tilenest.analysis.structure import ancestor_in
from tilenest.dialects import Nest
from tilenest.ir import Block, Function, Operation, OpResult, Value


class Lifetimes:
    """When the values of one function are read, by the order of its operations."""

    def __init__(self, function: Function) -> None:
        self._order = {op: place for place, op in enumerate(function.walk())}

    def place(self, op: Operation) -> int:
        """Where the operation stands in the text of the function."""
        return self._order[op]

    def is_read_after(self, value: Value, op: Operation) -> bool:
        """Whether the value is there before `op` runs, and may be read when it has run."""
        home = value.defining_block
        assert home is not None
        return self._exists_before(value, op, home) and any(
            self._may_follow(user, op, home) for user in value.users
        )

    def is_read_in_or_after(self, value: Value, nest: Operation) -> bool:
        """The same for the point before the body of a nest runs first."""
        home = value.defining_block
        assert home is not None
        return self._exists_before(value, nest, home) and any(
            _is_inside(user, nest) or self._may_follow(user, nest, home) for user in value.users
        )

    def _exists_before(self, value: Value, op: Operation, home: Block) -> bool:
        holder = ancestor_in(home, op)
        if holder is None:
            return False
        return not isinstance(value, OpResult) or self.place(value.owner) < self.place(holder)

    def _may_follow(self, user: Operation, op: Operation, home: Block) -> bool:
        """Whether `user` may run after `op` without a new run of `home` in between."""
        point = op
        while True:
            block = point.parent
            assert block is not None
            holder = ancestor_in(block, user)
            if holder is not None and self.place(holder) > self.place(point):
                return True
            if block is home:
                return False
            owner = block.parent_op
            assert owner is not None, "the value's block holds the point"
            if isinstance(owner, Nest) and _is_inside(user, owner):
                return True
            point = owner


def _is_inside(op: Operation, owner: Operation) -> bool:
    return op is not owner and owner.is_ancestor_of(op)
