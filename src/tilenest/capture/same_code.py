"""Whether a definition is the text of the code that runs.

In: a definition found in a file, and the code object of a live function. Out: yes or no. A file may
have been edited since it was imported, or a tool may have rewritten the function. The definition is
compiled where it would stand, inside its class and the functions around it, and the code objects
are compared, positions aside. Where pytest has rewritten the assertions of the code, it rewrites
those of the definition too.
"""

from __future__ import annotations
import __future__

import ast
import copy
import dis
import inspect
import itertools
import marshal
import sys
import threading
import warnings
from collections.abc import Iterator
from types import CodeType

from tilenest.capture.scopes import FunctionNode

_FUTURES = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})
_IS_NESTED = inspect.CO_NESTED
"""Of `co_flags`: the function has one around it."""
_LOADS_OF_NAMES = ("LOAD_FAST", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_NAME", "STORE_FAST_LOAD_FAST")
_WITHOUT_REFERENCES = 2
"""The version of Python's format in which equal constants are written alike."""
_quiet = threading.Lock()
"""Filters of warnings belong to the process: two threads would leave those of each other."""
_REWRITER = "_pytest.assertion.rewrite"
"""Whoever runs code that pytest has rewritten has loaded it."""


def is_text_of(node: FunctionNode, code: CodeType) -> bool:
    """Whether compiling the definition gives this code."""
    try:
        return _written(_compiled(node, code)) == _written(code)
    except (SyntaxError, ValueError):
        # Not Python where it stands, or with constants that no text can hold.
        return False


def _compiled(node: FunctionNode, code: CodeType) -> CodeType:
    tree = ast.parse("".join(f"import {name}\n" for name in _imported(code)))
    inner: ast.stmt
    inner = ast.copy_location(ast.Expr(node), node) if isinstance(node, ast.Lambda) else node
    levels = _levels_around(code)
    for level in reversed(levels):
        inner = _filled(level, inner)
    tree.body.append(inner)
    with _quiet, warnings.catch_warnings():
        # What there is to warn of was said when the function was defined.
        warnings.simplefilter("ignore")
        rewriter = sys.modules.get(_REWRITER)
        # No text can hold the names that it makes.
        if rewriter is not None and any(name.startswith("@") for name in _names(code)):
            tree = copy.deepcopy(tree)
            rewriter.rewrite_asserts(tree, b"", "")
        found: CodeType = compile(tree, "", "exec", code.co_flags & _FUTURES, True)
    for _ in range(len(levels) + 1 + bool(getattr(node, "type_params", ()))):
        # The code of a function follows that of its decorators, defaults and annotations.
        found = list(_codes_in(found))[-1]
    return found


def _levels_around(code: CodeType) -> list[str]:
    """The headers of the classes and functions around a definition, outermost first. The first
    function has the variables of the closure. Lambdas and comprehensions are functions."""
    path = code.co_qualname.split(".")
    closure = ", ".join(code.co_freevars)
    levels: list[str] = []
    for name, inner in itertools.pairwise(path):
        if name == "<locals>":
            continue
        is_class = inner != "<locals>" and name.isidentifier()
        spelled = name if name.isidentifier() else "around"
        levels.append(f"class {spelled}:" if is_class else f"def {spelled}({closure}):")
        closure = closure if is_class else ""
    if closure:
        # A function that declares the name global leaves no trace in the path, and neither does a
        # comprehension that is part of what is around it.
        names = f"global {path[0]};" if path[0].isidentifier() else ""
        levels.insert(0, f"def around({closure}): {names}")
    return levels


def _filled(header: str, inner: ast.stmt) -> ast.stmt:
    (level,) = ast.parse(f"{header} pass").body
    assert isinstance(level, ast.ClassDef | ast.FunctionDef)
    level.body[-1] = inner
    return level


def _imported(code: CodeType) -> list[str]:
    """The names that the module may import at its top: `name.function()` is compiled otherwise for
    those, without what is for methods. A `super` of the module would hide the built-in one."""
    owners = {"super", *_owners_of_methods(code)}
    return sorted({name for name in _names(code) if name.isidentifier()} - owners)


def _owners_of_methods(code: CodeType) -> Iterator[object]:
    before: object = None
    for instruction in dis.get_instructions(code):
        is_attribute = instruction.opname == "LOAD_ATTR" and sys.version_info >= (3, 12)
        if instruction.opname == "LOAD_METHOD" or (is_attribute and (instruction.arg or 0) & 1):
            yield before
        is_name = instruction.opname.startswith(_LOADS_OF_NAMES)
        loaded = instruction.argval if is_name else None
        # One instruction may load two.
        before = loaded[-1] if isinstance(loaded, tuple) else loaded
    for inner in _codes_in(code):
        yield from _owners_of_methods(inner)


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    return (value for value in code.co_consts if isinstance(value, CodeType))


def _written(code: CodeType) -> bytes:
    """The code as bytes, which differ where its numbers do: a NaN is written like itself."""
    return marshal.dumps(_placeless(code), _WITHOUT_REFERENCES)


def _placeless(code: CodeType) -> CodeType:
    constants = tuple(
        _placeless(value) if isinstance(value, CodeType) else value for value in code.co_consts
    )
    return code.replace(
        co_consts=constants,
        co_filename="",
        co_firstlineno=1,
        co_flags=code.co_flags & ~_IS_NESTED,
        co_linetable=b"",
        co_qualname="",
    )


def _names(code: CodeType) -> Iterator[str]:
    yield from (*code.co_names, *code.co_varnames, *code.co_cellvars)
    for inner in _codes_in(code):
        yield from _names(inner)
