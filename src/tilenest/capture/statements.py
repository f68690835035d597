"""What each statement means during capture.

In: a statement node and its frame. Out: whether it jumped. Loops over host iterables run here
and now; loops over nests and run-time ranges become regions, and a run-time `if` becomes an
operation.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping, Sequence

from tilenest.capture.assignment import assign_attribute, assign_item, bind_target
from tilenest.capture.branches import if_statement
from tilenest.capture.expressions import Operator, make_function
from tilenest.capture.frames import Frame
from tilenest.capture.interpreter import (
    Executor,
    Interpreter,
    Jump,
    Return,
    Signal,
    noted_assertion,
)
from tilenest.capture.regions import nest_loop, range_loop
from tilenest.capture.staged import truth
from tilenest.errors import CaptureError
from tilenest.language import DomainAxis, Element, Nest, Scalar

_IN_PLACE: Mapping[type[ast.operator], Operator] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.MatMult: operator.imatmul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}


def _expression(interpreter: Interpreter, node: ast.Expr, frame: Frame) -> Signal:
    interpreter.evaluate(node.value, frame)
    return None


def _assign(interpreter: Interpreter, node: ast.Assign, frame: Frame) -> Signal:
    value = interpreter.evaluate(node.value, frame)
    for target in node.targets:
        bind_target(interpreter, target, value, frame)
    return None


def _annotated(interpreter: Interpreter, node: ast.AnnAssign, frame: Frame) -> Signal:
    if node.value is not None:
        bind_target(interpreter, node.target, interpreter.evaluate(node.value, frame), frame)
    return None


def _augmented(interpreter: Interpreter, node: ast.AugAssign, frame: Frame) -> Signal:
    target = node.target
    if isinstance(target, ast.Name):
        before = frame.load(target.id)
        bind_target(interpreter, target, _applied(interpreter, node, before, frame), frame)
        return None
    base = interpreter.evaluate(target.value, frame)
    if isinstance(target, ast.Attribute):
        before = getattr(base, target.attr)
        value = _applied(interpreter, node, before, frame)
        assign_attribute(interpreter, target, base, value)
        return None
    key = interpreter.evaluate(target.slice, frame)
    interpreter.at(target, frame)
    before = operator.getitem(base, key)  # type: ignore[call-overload]  # any host object
    value = _applied(interpreter, node, before, frame)
    assign_item(interpreter, target, base, key, value, frame)
    return None


def _applied(interpreter: Interpreter, node: ast.AugAssign, before: object, frame: Frame) -> object:
    apply = _IN_PLACE[type(node.op)]
    value = interpreter.evaluate(node.value, frame)
    interpreter.at(node, frame)
    if hasattr(type(before), f"__{apply.__name__}__"):
        interpreter.check_change(before, node.target)
    return apply(before, value)


def _for(interpreter: Interpreter, node: ast.For, frame: Frame) -> Signal:
    iterable = interpreter.evaluate(node.iter, frame)
    interpreter.at(node.iter, frame)
    if isinstance(iterable, Nest):
        nest_loop(interpreter, node, iterable, frame)
        return None
    if isinstance(iterable, DomainAxis):
        range_loop(interpreter, node, iterable, frame)
        return None
    for item in iterable:  # type: ignore[attr-defined]  # any iterable
        bind_target(interpreter, node.target, item, frame)
        signal = _host_iteration(interpreter, node.body, frame)
        if signal is Jump.BREAK:
            return None
        if isinstance(signal, Return):
            return signal
    return interpreter.execute(node.orelse, frame)


def _while(interpreter: Interpreter, node: ast.While, frame: Frame) -> Signal:
    while True:
        condition = interpreter.evaluate(node.test, frame)
        interpreter.at(node.test, frame)
        value = truth(condition, "while")
        if isinstance(value, Scalar):
            raise CaptureError(
                "`while` on a run-time condition is not supported yet",
                remedy="loop over range(n) with a bound n that may be known at run time only",
                location=frame.locate(node.test),
            )
        if not value:
            return interpreter.execute(node.orelse, frame)
        signal = _host_iteration(interpreter, node.body, frame)
        if signal is Jump.BREAK:
            return None
        if isinstance(signal, Return):
            return signal


def _host_iteration(interpreter: Interpreter, body: list[ast.stmt], frame: Frame) -> Signal:
    frame.contexts.append("loop")
    try:
        return interpreter.execute(body, frame)
    finally:
        frame.contexts.pop()


def _return(interpreter: Interpreter, node: ast.Return, frame: Frame) -> Signal:
    staged = [name for name in frame.contexts if name != "loop"]
    if staged:
        raise CaptureError(
            f"`return` stands inside {_construct(staged[0])}",
            remedy=_instead_of_return(node, staged),
        )
    value = None if node.value is None else interpreter.evaluate(node.value, frame)
    interpreter.at(node, frame)
    return Return(value)


def _instead_of_return(node: ast.Return, staged: Sequence[str]) -> str:
    """What to write where the rest of a body may not be left out by leaving it."""
    rest = "put the rest of the body under an `if`"
    if node.value is None:
        return rest
    if "parallel" in staged:
        return f"store the result to a view, which every instance may, and {rest}"
    return (
        "give a variable its first value before the region, assign the result to it inside, and "
        "return it behind"
    )


def _break(_interpreter: Interpreter, _node: ast.Break, frame: Frame) -> Signal:
    _check_jump("break", frame)
    return Jump.BREAK


def _continue(_interpreter: Interpreter, _node: ast.Continue, frame: Frame) -> Signal:
    _check_jump("continue", frame)
    return Jump.CONTINUE


def _check_jump(word: str, frame: Frame) -> None:
    innermost = frame.contexts[-1]
    if innermost != "loop":
        raise CaptureError(
            f"`{word}` stands inside {_construct(innermost)}",
            remedy="put the rest of the body under an `if`, or guard its values with tn.where",
        )


def _construct(context: str) -> str:
    return "a run-time `if`" if context == "if" else f"a {context} region"


def _pass(_interpreter: Interpreter, _node: ast.Pass, _frame: Frame) -> Signal:
    return None


def _define(interpreter: Interpreter, node: ast.FunctionDef, frame: Frame) -> Signal:
    value: object = make_function(interpreter, node, frame)
    for decorator in reversed(node.decorator_list):
        apply = interpreter.evaluate(decorator, frame)
        value = apply(value)  # type: ignore[operator]  # Python checks
    frame.store(node.name, value, frame.locate(node))
    return None


def _assert(interpreter: Interpreter, node: ast.Assert, frame: Frame) -> Signal:
    condition = interpreter.evaluate(node.test, frame)
    interpreter.at(node.test, frame)
    value = truth(condition, "assert")
    if isinstance(value, Scalar):
        raise CaptureError(
            "`assert` on a run-time condition is not supported",
            remedy="check it before the kernel is called, or assert on host values",
        )
    if not value:
        message = None if node.msg is None else interpreter.evaluate(node.msg, frame)
        raise noted_assertion(message, frame.locate(node))
    return None


def _raise(interpreter: Interpreter, node: ast.Raise, frame: Frame) -> Signal:
    if "if" in frame.contexts:
        raise CaptureError(
            "`raise` stands inside a run-time `if`",
            remedy="raise on host conditions only, or check before the kernel is called",
        )
    if node.exc is None:
        raise CaptureError("`raise` names no exception", remedy="name one, as raise ValueError()")
    error = interpreter.evaluate(node.exc, frame)
    raise error  # type: ignore[misc]  # Python checks


def _delete(interpreter: Interpreter, node: ast.Delete, frame: Frame) -> Signal:
    for target in node.targets:
        if not isinstance(target, ast.Name):
            raise CaptureError(
                "`del` of an item or attribute is not supported inside a kernel",
                remedy="make a new list or dict without it",
            )
        if isinstance(frame.load(target.id), Element) or interpreter.environments:
            raise CaptureError(
                "`del` of a tile or scalar, or inside a region, is not supported inside a kernel",
                remedy="leave it out: what is not used costs nothing",
            )
        del frame.locals[target.id]
    return None


STATEMENTS: Mapping[type[ast.stmt], Executor] = {
    ast.Expr: _expression,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.For: _for,
    ast.While: _while,
    ast.If: if_statement,
    ast.Return: _return,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Pass: _pass,
    ast.FunctionDef: _define,
    ast.Assert: _assert,
    ast.Raise: _raise,
    ast.Delete: _delete,
}
