"""Names that begin with two underscores inside a class mean others, as Python says.

In: the definition of a function and its code object, whose qualified name says the class around it.
Out: the definition with every such name spelled as the code has it: variables, parameters,
attributes and nested functions. Names of keywords in a call stay, as they do in Python.
"""

from __future__ import annotations

import ast
import copy
import itertools
from types import CodeType

from tilenest.capture.scopes import FunctionNode

_FIELDS: dict[type[ast.AST], str] = {
    ast.Name: "id",
    ast.Attribute: "attr",
    ast.arg: "arg",
    ast.FunctionDef: "name",
}
"""Where nodes that capture reads hold one name."""


def as_compiled(node: FunctionNode, code: CodeType) -> FunctionNode:
    """The definition with the names of its code; its own name is what is shown of it, and stays."""
    owner = class_around(code)
    if owner is None:
        return node
    copied = copy.deepcopy(node)
    for inner in ast.walk(copied):
        field = _FIELDS.get(type(inner))
        if field is not None and inner is not copied:
            setattr(inner, field, private_name(getattr(inner, field), owner))
    return copied


def class_around(code: CodeType) -> str | None:
    """The innermost class that a function is written in."""
    path = code.co_qualname.split(".")
    # What is followed by its locals is a function, and the last is the code itself.
    pairs = itertools.pairwise(path)
    classes = [name for name, inner in pairs if "<locals>" not in (name, inner)]
    return classes[-1] if classes else None


def private_name(name: str, owner: str | None) -> str:
    """A name as code in a class has it."""
    stripped = (owner or "").lstrip("_")
    is_private = name.startswith("__") and not name.endswith("__")
    return f"_{stripped}{name}" if is_private and stripped else name
