"""Which local variables may still be read after a statement.

In: the AST of a function. Out: for each `for`, `while` and `if` statement the names live behind
it. A backward analysis over the structured statements: loops are walked until nothing changes,
so a read in the next iteration of an enclosing loop keeps a name alive. Where in doubt a name
is live.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from tilenest.capture.scopes import loaded_names, target_names
from tilenest.records import record

Names = frozenset[str]
_NOTHING: Names = frozenset()


@record
class NameLiveness:
    """Names live behind each compound statement."""

    after: Mapping[ast.stmt, Names]

    def is_live_after(self, statement: ast.stmt, name: str) -> bool:
        """Whether `name` may be read behind the statement."""
        found = self.after.get(statement)
        return found is None or name in found


@record
class _Exits:
    """Names live where `break` and `continue` lead."""

    on_break: Names = _NOTHING
    on_continue: Names = _NOTHING


def analyse(function: ast.FunctionDef | ast.AsyncFunctionDef) -> NameLiveness:
    """The liveness of a function's statements."""
    walker = _Walker()
    walker.block(function.body, _NOTHING, _Exits())
    return NameLiveness(walker.after)


class _Walker:
    def __init__(self) -> None:
        self.after: dict[ast.stmt, Names] = {}

    def block(self, statements: list[ast.stmt], live: Names, exits: _Exits) -> Names:
        for statement in reversed(statements):
            live = self.statement(statement, live, exits)
        return live

    def statement(self, node: ast.stmt, live: Names, exits: _Exits) -> Names:
        match node:
            case ast.If():
                self._record(node, live)
                then = self.block(node.body, live, exits)
                return loaded_names(node.test) | then | self.block(node.orelse, live, exits)
            case ast.For() | ast.AsyncFor():
                return self._for(node, live, exits)
            case ast.While():
                return self._while(node, live, exits)
            case ast.Break():
                return exits.on_break
            case ast.Continue():
                return exits.on_continue
            case ast.Return() | ast.Raise():
                return loaded_names(node)
            case _:
                return (live - _killed(node)) | loaded_names(node) | _updated(node)

    def _for(self, node: ast.For | ast.AsyncFor, live: Names, exits: _Exits) -> Names:
        self._record(node, live)
        done = self.block(node.orelse, live, exits)
        targets = target_names(node.target)

        def once(head: Names) -> Names:
            body = self.block(node.body, head, _Exits(live, head))
            return done | (body - targets) | loaded_names(node.target)

        return loaded_names(node.iter) | _fixpoint(once)

    def _while(self, node: ast.While, live: Names, exits: _Exits) -> Names:
        self._record(node, live)
        done = self.block(node.orelse, live, exits)

        def once(head: Names) -> Names:
            body = self.block(node.body, head, _Exits(live, head))
            return loaded_names(node.test) | done | body

        return _fixpoint(once)

    def _record(self, node: ast.stmt, live: Names) -> None:
        self.after[node] = self.after.get(node, _NOTHING) | live


def _fixpoint(step: Callable[[Names], Names]) -> Names:
    head = step(_NOTHING)
    while (following := step(head) | head) != head:
        head = following
    return head


def _killed(node: ast.stmt) -> Names:
    """Names that a simple statement certainly binds anew."""
    match node:
        case ast.Assign():
            return _NOTHING.union(*(target_names(target) for target in node.targets))
        case ast.AnnAssign(value=ast.expr()):
            return target_names(node.target)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return frozenset({node.name})
        case _:
            return _NOTHING


def _updated(node: ast.stmt) -> Names:
    """Names that an augmented assignment reads although it stores to them."""
    return target_names(node.target) if isinstance(node, ast.AugAssign) else _NOTHING
