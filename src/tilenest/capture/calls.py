"""Calls: what is interpreted, what runs as it is, and what means something else here.

In: a callee and its arguments. Out: the result. Functions of the user's that get or hold staged
values and library functions marked for it are inlined by interpreting their source; `range`,
`min`, `max` and `abs` have staged versions; everything else is called natively and may call
back.
"""

from __future__ import annotations

import ast
import functools
import inspect
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import tilenest.errors
from tilenest.capture.changes import change_of
from tilenest.capture.frames import Frame, InterpretedFunction
from tilenest.capture.guards import is_package_module
from tilenest.capture.interpreter import Interpreter, Return, unsupported
from tilenest.capture.source import function_code
from tilenest.errors import ArgumentTypeError, CaptureError, SourceLocation
from tilenest.language import Handle as NestBase
from tilenest.language import (
    Nest,
    Staged,
    abs_,
    is_tile_function,
    max_,
    min_,
    range_,
)

_PACKAGE = str(Path(tilenest.errors.__file__).parent)
_STANDARD_LIBRARY = str(Path(os.__file__).parent)
_SITE_FOLDERS = {"site-packages", "dist-packages"}
_INTERCEPTED: Mapping[object, object] = {range: range_, min: min_, max: max_, abs: abs_}
_FORBIDDEN: Mapping[object, str] = {
    eval: "write the expression itself",
    exec: "write the statements themselves",
    locals: "name the variables",
    globals: "name the variables",
    vars: "name the attributes",
    super: "call the base class's method by its name",
}


def evaluate_call(interpreter: Interpreter, node: ast.Call, frame: Frame) -> object:
    """The value of a call expression."""
    callee = interpreter.evaluate(node.func, frame)
    refuse_none(callee, node.func)
    arguments: list[object] = []
    for item in node.args:
        if isinstance(item, ast.Starred):
            arguments.extend(interpreter.evaluate(item.value, frame))  # type: ignore[arg-type]  # any iterable
        else:
            arguments.append(interpreter.evaluate(item, frame))
    keywords: dict[str, object] = {}
    for keyword in node.keywords:
        value = interpreter.evaluate(keyword.value, frame)
        added = value if keyword.arg is None else {keyword.arg: value}
        for name, given in added.items():  # type: ignore[attr-defined]  # any mapping
            if name in keywords:
                raise TypeError(f"the keyword argument {name!r} is given twice")
            keywords[name] = given
    place = interpreter.at(node, frame)
    _check_change(interpreter, callee, arguments, node)
    try:
        return call(interpreter, callee, tuple(arguments), keywords, place)
    except TypeError:
        _check_arguments(callee, ast.unparse(node.func), arguments, keywords)
        raise


def _check_arguments(
    callee: object, name: str, arguments: list[object], keywords: dict[str, object]
) -> None:
    """Refuse arguments that a function of this package does not take."""
    while isinstance(callee, functools.partial):
        arguments, keywords = [*callee.args, *arguments], {**callee.keywords, **keywords}
        callee = callee.func
    function, bound = _python_function(callee)
    if function is None or not is_package_module(function.__module__):
        return
    signature = inspect.signature(function)
    try:
        signature.bind(*bound, *arguments, **keywords)
    except TypeError as misfit:
        takes = ", ".join(list(signature.parameters)[len(bound) :]) or "no arguments"
        raise ArgumentTypeError(f"{name}: {misfit}", remedy=f"it takes {takes}") from None


def refuse_none(value: object, node: ast.expr) -> None:
    """Explain None where an array or a function is needed: an argument may be None."""
    if value is None:
        raise CaptureError(
            f"{ast.unparse(node)} is None here",
            remedy="pass an array for it, or test it first, as `if bias is not None`",
        )


def call(
    interpreter: Interpreter,
    callee: object,
    arguments: tuple[object, ...],
    keywords: dict[str, object],
    place: SourceLocation | None,
) -> object:
    """Call anything, as a kernel means it."""
    if isinstance(callee, functools.partial):
        merged = {**callee.keywords, **keywords}
        return call(interpreter, callee.func, (*callee.args, *arguments), merged, place)
    if isinstance(callee, InterpretedFunction):
        return call_interpreted(interpreter, callee, arguments, keywords, place)
    kernel = _kernel_function(callee)
    if kernel is not None and any(holds_staged(item) for item in arguments):
        return call_function(interpreter, kernel, arguments, keywords, place)
    function, bound = _python_function(callee)
    if function is not None:
        given = (*bound, *arguments)
        if _is_interpreted(interpreter, function, [*given, *keywords.values()]):
            return call_function(interpreter, function, given, keywords, place)
    elif isinstance(callee, BuiltinFunctionType | type):
        _check_builtin(callee)
        if callee is getattr or callee is hasattr:
            _note_attribute(interpreter, arguments)
        callee = _INTERCEPTED.get(callee, callee)
    if _may_keep(interpreter, callee, function):
        interpreter.look_around()
    result: object = callee(*arguments, **keywords)  # type: ignore[operator]  # Python checks
    return result


def call_function(
    interpreter: Interpreter,
    function: FunctionType,
    arguments: tuple[object, ...],
    keywords: dict[str, object],
    place: SourceLocation | None,
) -> object:
    """Interpret a live function's body."""
    code = function_code(function)
    interpreter.guards.interpret(function)
    signature = inspect.signature(function, follow_wrapped=False)
    frame = Frame(code, code.local_names, function, None, place, interpreter.guards)
    return _run(interpreter, frame, signature, arguments, keywords)


def call_interpreted(
    interpreter: Interpreter,
    function: InterpretedFunction,
    arguments: tuple[object, ...],
    keywords: dict[str, object],
    caller: SourceLocation | None,
) -> object:
    """Interpret the body of a function that interpreted code has defined."""
    place = caller if caller is not None else interpreter.session.builder.location
    parent = function.frame
    code = function.code
    frame = Frame(code, code.local_names, parent.function, parent, place, interpreter.guards)
    return _run(interpreter, frame, function.signature, arguments, keywords)


def _run(
    interpreter: Interpreter,
    frame: Frame,
    signature: inspect.Signature,
    arguments: tuple[object, ...],
    keywords: dict[str, object],
) -> object:
    node = frame.code.node
    if isinstance(node, ast.AsyncFunctionDef):
        raise unsupported(node)
    bound = signature.bind(*arguments, **keywords)
    bound.apply_defaults()
    frame.locals.update(bound.arguments)
    interpreter.enter(frame)
    try:
        if isinstance(node, ast.Lambda):
            return interpreter.evaluate(node.body, frame)
        signal = interpreter.execute(node.body, frame)
        return signal.value if isinstance(signal, Return) else None
    finally:
        interpreter.leave()


def is_user_file(file: str) -> bool:
    """Whether code of this file is the user's own, not a library's."""
    if file.startswith((_PACKAGE, "<frozen")):
        return False
    parts = Path(file).parts
    return not file.startswith(_STANDARD_LIBRARY) and _SITE_FOLDERS.isdisjoint(parts)


def _python_function(callee: object) -> tuple[FunctionType | None, tuple[object, ...]]:
    """The Python function behind a callee, and the arguments that it is bound to."""
    if isinstance(callee, FunctionType):
        return callee, ()
    if isinstance(callee, MethodType) and isinstance(callee.__func__, FunctionType):
        return callee.__func__, (callee.__self__,)
    if not isinstance(callee, type):
        method = inspect.getattr_static(type(callee), "__call__", None)
        if isinstance(method, FunctionType):
            return method, (callee,)
    return None, ()


def _kernel_function(callee: object) -> FunctionType | None:
    """The function that a kernel object of this package was made from."""
    if not is_package_module(type(callee).__module__):
        return None
    wrapped = getattr(callee, "__wrapped__", None)
    return wrapped if isinstance(wrapped, FunctionType) else None


def _is_interpreted(
    interpreter: Interpreter, function: FunctionType, arguments: Iterable[object]
) -> bool:
    if is_tile_function(function):
        return True
    if not _is_users(interpreter, function) or inspect.isgeneratorfunction(function):
        return False
    return any(holds_staged(item) for item in arguments) or any(
        holds_staged(item) for item in _closure(function)
    )


def _is_users(interpreter: Interpreter, function: FunctionType) -> bool:
    """The user's own code, or code of the package that an installed kernel comes from."""
    file = function.__code__.co_filename
    if is_user_file(file):
        return True
    if file.startswith(_PACKAGE) or not interpreter.frames:
        return False
    home = interpreter.frames[0].function.__module__ or ""
    module = function.__module__ or ""
    return bool(home) and home.partition(".")[0] == module.partition(".")[0]


def _closure(function: FunctionType) -> Iterable[object]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            continue


def holds_staged(value: object, depth: int = 3) -> bool:
    """Whether a value is staged, opens or handles a nest, or contains such a value."""
    if isinstance(value, Staged | NestBase | Nest | InterpretedFunction):
        return True
    if depth == 0:
        return False
    if isinstance(value, list | tuple | set | frozenset):
        return any(holds_staged(item, depth - 1) for item in value)
    if isinstance(value, dict):
        return any(holds_staged(item, depth - 1) for item in value.values())
    if isinstance(value, ModuleType | FunctionType | type):
        return False
    return any(holds_staged(item, depth - 1) for item in getattr(value, "__dict__", {}).values())


def _check_change(
    interpreter: Interpreter, callee: object, arguments: list[object], node: ast.Call
) -> None:
    """Refuse a call that changes what the kernel may not."""
    change = change_of(callee, arguments)
    if change is None:
        return
    named: ast.expr = node.func
    if change.is_argument and node.args and not isinstance(callee, functools.partial):
        named = node.args[0]
    elif isinstance(node.func, ast.Attribute) and not change.is_argument:
        named = node.func.value
    interpreter.check_change(change.changed, named, keeps_length=change.keeps_length)


def _may_keep(interpreter: Interpreter, callee: object, function: FunctionType | None) -> bool:
    """Whether it is host code of the user's, which may put what it makes somewhere outside."""
    if function is not None:
        return _is_users(interpreter, function)
    return isinstance(callee, type) and callee.__module__ != "builtins"


def _note_attribute(interpreter: Interpreter, arguments: tuple[object, ...]) -> None:
    """What is asked of a module by a computed name is read from it."""
    match arguments:
        case (ModuleType() as module, str(name), *_):
            interpreter.guards.read_attribute(interpreter.frames[-1].function, module, name)


def _check_builtin(callee: object) -> None:
    remedy = _FORBIDDEN.get(callee)
    if remedy is not None:
        name = getattr(callee, "__name__", str(callee))
        raise CaptureError(f"`{name}` is not supported inside a kernel", remedy=remedy)
