"""Which names a function's body binds, and which its nested functions hold on to.

In: the AST of a function or lambda. Out: sets of names, by Python's rules: an assignment
anywhere in the body makes a name local, a comprehension has a scope of its own, and a walrus
binds in the function around it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def parameter_names(node: FunctionNode) -> list[str]:
    """Every parameter, in order."""
    arguments = node.args
    named = [*arguments.posonlyargs, *arguments.args]
    if arguments.vararg is not None:
        named.append(arguments.vararg)
    named += arguments.kwonlyargs
    if arguments.kwarg is not None:
        named.append(arguments.kwarg)
    return [item.arg for item in named]


def local_names(node: FunctionNode) -> frozenset[str]:
    """The names whose binding belongs to the function."""
    return frozenset(parameter_names(node)).union(*(_bound_names(child) for child in _body(node)))


def captured_names(node: FunctionNode) -> frozenset[str]:
    """Names read by functions and lambdas inside, which may run at any later time."""
    names: set[str] = set()
    for child in _body(node):
        for inner in ast.walk(child):
            if isinstance(inner, (*_DEFINITIONS, ast.Lambda)):
                names |= loaded_names(inner)
    return frozenset(names)


def comprehension_names(node: Comprehension) -> frozenset[str]:
    """The targets of a comprehension."""
    return frozenset().union(*(target_names(part.target) for part in node.generators))


def target_names(target: ast.expr) -> frozenset[str]:
    """Names bound by an assignment target."""
    return frozenset(
        item.id
        for item in ast.walk(target)
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
    )


def loaded_names(node: ast.AST) -> frozenset[str]:
    """Every name read anywhere below, nested functions included."""
    return frozenset(
        item.id
        for item in ast.walk(node)
        if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Load)
    )


def walrus_names(node: ast.AST) -> frozenset[str]:
    """Names bound by walrus expressions below."""
    return frozenset(item.target.id for item in ast.walk(node) if isinstance(item, ast.NamedExpr))


def _body(node: FunctionNode) -> list[ast.stmt] | list[ast.expr]:
    return [node.body] if isinstance(node, ast.Lambda) else node.body


def _bound_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
            return
        case ast.Lambda():
            return
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            yield from walrus_names(node)
            return
        case ast.Name(ctx=ast.Store() | ast.Del()):
            yield node.id
        case ast.alias():
            yield (node.asname or node.name).partition(".")[0]
    for child in ast.iter_child_nodes(node):
        yield from _bound_names(child)
