"""Which function of a module calls which, and whether the calls come to an end.

In: a module. Out: the functions in an order in which each stands behind those it calls, or the
circles that make this impossible. A callee that the module lacks counts as one that calls nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.dialects import Call
from tilenest.ir import Function, Module
from tilenest.records import record


@record
class CallCircle:
    """A call through which a function reaches itself again, and the functions on the way."""

    call: Call
    names: tuple[str, ...]


def callees_first(module: Module) -> list[Function]:
    """The functions, each behind those it calls; for a module without circles."""
    order: list[Function] = []
    assert not list(_walk(module, order)), "functions call each other in a circle"
    return order


def call_circles(module: Module) -> list[CallCircle]:
    """A circle for every call that closes one."""
    return list(_walk(module, []))


def _walk(module: Module, order: list[Function]) -> Iterator[CallCircle]:
    """Depth first along the calls, without recursion: chains of calls may be long."""
    functions = {function.name: function for function in module.functions}
    done: set[str] = set()
    for root in functions:
        path: dict[str, Iterator[Call]] = {}
        _enter(root, functions, path, done)
        while path:
            name, calls = next(reversed(path.items()))
            call = next(calls, None)
            if call is None:
                del path[name]
                done.add(name)
                order.append(functions[name])
            elif call.callee in path:
                names = list(path)
                yield CallCircle(call, (*names[names.index(call.callee) :], call.callee))
            else:
                _enter(call.callee, functions, path, done)


def _enter(
    name: str,
    functions: dict[str, Function],
    path: dict[str, Iterator[Call]],
    done: set[str],
) -> None:
    if name in functions and name not in done:
        path[name] = (op for op in functions[name].walk() if isinstance(op, Call))
