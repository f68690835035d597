"""What each expression means during capture.

In: an expression node and the frame it stands in. Out: its value. Host values follow Python; on
run-time scalars `and`, `or`, `not`, chained comparisons and conditional expressions emit
operations. Calls are in `calls`.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType

from tilenest.capture.assignment import bind_target, refuse_held_memory
from tilenest.capture.branches import conditional
from tilenest.capture.calls import call_interpreted, evaluate_call, refuse_none
from tilenest.capture.frames import Frame, InterpretedFunction
from tilenest.capture.interpreter import Evaluator, Interpreter
from tilenest.capture.scopes import Comprehension, comprehension_names
from tilenest.capture.staged import combine_conditions, negate_condition, truth
from tilenest.errors import CaptureError
from tilenest.language import Scalar

Operator = Callable[..., object]

BINARY: Mapping[type[ast.operator], Operator] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_UNARY: Mapping[type[ast.unaryop], Operator] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_COMPARISONS: Mapping[type[ast.cmpop], Operator] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, container: item in container,
    ast.NotIn: lambda item, container: item not in container,
}


def _constant(_interpreter: Interpreter, node: ast.Constant, _frame: Frame) -> object:
    return node.value


def _name(_interpreter: Interpreter, node: ast.Name, frame: Frame) -> object:
    return frame.load(node.id)


def _binary(interpreter: Interpreter, node: ast.BinOp, frame: Frame) -> object:
    left = interpreter.evaluate(node.left, frame)
    right = interpreter.evaluate(node.right, frame)
    interpreter.at(node, frame)
    return BINARY[type(node.op)](left, right)


def _unary(interpreter: Interpreter, node: ast.UnaryOp, frame: Frame) -> object:
    operand = interpreter.evaluate(node.operand, frame)
    interpreter.at(node, frame)
    if isinstance(node.op, ast.Not):
        value = truth(operand, "not")
        return negate_condition(interpreter.session, value)
    return _UNARY[type(node.op)](operand)


def _boolean(interpreter: Interpreter, node: ast.BoolOp, frame: Frame) -> object:
    """Python's short circuit for host values; run-time conditions are all computed and combined."""
    is_and = isinstance(node.op, ast.And)
    word = "and" if is_and else "or"
    staged: Scalar | None = None
    result: object = is_and
    for part in node.values:
        result = interpreter.evaluate(part, frame)
        interpreter.at(node, frame)
        value = truth(result, word)
        if isinstance(value, Scalar):
            staged = (
                value
                if staged is None
                else combine_conditions(interpreter.session, word, staged, value)
            )
        elif value is not is_and:
            # What comes later does not count, and neither does what came before at run time.
            return result if staged is None else value
    return result if staged is None else staged


def _compare(interpreter: Interpreter, node: ast.Compare, frame: Frame) -> object:
    left = interpreter.evaluate(node.left, frame)
    staged: Scalar | None = None
    result: object = True
    for kind, part in zip(node.ops, node.comparators, strict=True):
        right = interpreter.evaluate(part, frame)
        interpreter.at(node, frame)
        result = _COMPARISONS[type(kind)](left, right)
        left = right
        if len(node.ops) == 1:
            return result
        value = truth(result, "a chained comparison")
        if isinstance(value, Scalar):
            staged = (
                value
                if staged is None
                else combine_conditions(interpreter.session, "and", staged, value)
            )
        elif not value:
            return result if staged is None else False
    return result if staged is None else staged


def _attribute(interpreter: Interpreter, node: ast.Attribute, frame: Frame) -> object:
    base = interpreter.evaluate(node.value, frame)
    interpreter.at(node, frame)
    if not hasattr(None, node.attr):
        refuse_none(base, node.value)
    value: object = getattr(base, node.attr)
    if isinstance(base, ModuleType):
        interpreter.guards.read_attribute(frame.function, base, node.attr)
    return value


def _subscript(interpreter: Interpreter, node: ast.Subscript, frame: Frame) -> object:
    base = interpreter.evaluate(node.value, frame)
    key = interpreter.evaluate(node.slice, frame)
    interpreter.at(node, frame)
    refuse_none(base, node.value)
    if isinstance(base, list | tuple | dict) and isinstance(key, Scalar):
        raise CaptureError(
            f"a {type(base).__name__} is indexed by a run-time scalar",
            remedy="index it with a host int, as in a Python loop over range(4), or keep the "
            "items in one tile and read it with .at",
        )
    value: object = operator.getitem(base, key)  # type: ignore[call-overload]  # any host object
    return value


def _slice(interpreter: Interpreter, node: ast.Slice, frame: Frame) -> object:
    parts = [
        None if part is None else interpreter.evaluate(part, frame)
        for part in (node.lower, node.upper, node.step)
    ]
    return slice(*parts)


def _elements(interpreter: Interpreter, nodes: list[ast.expr], frame: Frame) -> Iterator[object]:
    for node in nodes:
        if isinstance(node, ast.Starred):
            yield from interpreter.evaluate(node.value, frame)  # type: ignore[misc]  # any iterable
        else:
            yield interpreter.evaluate(node, frame)


def _tuple(interpreter: Interpreter, node: ast.Tuple, frame: Frame) -> object:
    return tuple(_elements(interpreter, node.elts, frame))


def _list(interpreter: Interpreter, node: ast.List, frame: Frame) -> object:
    items = list(_elements(interpreter, node.elts, frame))
    refuse_held_memory(items, "an item")
    return items


def _set(interpreter: Interpreter, node: ast.Set, frame: Frame) -> object:
    return set(_elements(interpreter, node.elts, frame))


def _dict(interpreter: Interpreter, node: ast.Dict, frame: Frame) -> object:
    result: dict[object, object] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            result.update(interpreter.evaluate(value, frame))  # type: ignore[call-overload]  # any mapping
        else:
            name = interpreter.evaluate(key, frame)
            result[name] = interpreter.evaluate(value, frame)
    refuse_held_memory(result.values(), "an item")
    return result


def _formatted(interpreter: Interpreter, node: ast.JoinedStr, frame: Frame) -> object:
    return "".join(str(interpreter.evaluate(part, frame)) for part in node.values)


def _formatted_value(interpreter: Interpreter, node: ast.FormattedValue, frame: Frame) -> object:
    value = interpreter.evaluate(node.value, frame)
    converters: dict[int, Callable[[object], str]] = {115: str, 114: repr, 97: ascii}
    if node.conversion in converters:
        value = converters[node.conversion](value)
    style = "" if node.format_spec is None else interpreter.evaluate(node.format_spec, frame)
    return format(value, str(style))


def _walrus(interpreter: Interpreter, node: ast.NamedExpr, frame: Frame) -> object:
    value = interpreter.evaluate(node.value, frame)
    bind_target(interpreter, node.target, value, frame.function_frame)
    return value


def _lambda(interpreter: Interpreter, node: ast.Lambda, frame: Frame) -> object:
    return make_function(interpreter, node, frame)


def make_function(
    interpreter: Interpreter, node: ast.Lambda | ast.FunctionDef, frame: Frame
) -> InterpretedFunction:
    """The function that a definition makes, with its defaults evaluated now."""

    def call(
        function: InterpretedFunction, arguments: tuple[object, ...], keywords: dict[str, object]
    ) -> object:
        return call_interpreted(interpreter, function, arguments, keywords, caller=None)

    signature = _signature(interpreter, node.args, frame)
    return InterpretedFunction(frame.code.nested(node), frame, signature, call)


def _signature(
    interpreter: Interpreter, arguments: ast.arguments, frame: Frame
) -> inspect.Signature:
    kinds = inspect.Parameter
    positional = [*arguments.posonlyargs, *arguments.args]
    required = len(positional) - len(arguments.defaults)
    parameters = []
    for place, item in enumerate(positional):
        is_only = place < len(arguments.posonlyargs)
        kind = kinds.POSITIONAL_ONLY if is_only else kinds.POSITIONAL_OR_KEYWORD
        default: object = kinds.empty
        if place >= required:
            default = interpreter.evaluate(arguments.defaults[place - required], frame)
        parameters.append(kinds(item.arg, kind, default=default))
    if arguments.vararg is not None:
        parameters.append(kinds(arguments.vararg.arg, kinds.VAR_POSITIONAL))
    for item, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        default = kinds.empty if value is None else interpreter.evaluate(value, frame)
        parameters.append(kinds(item.arg, kinds.KEYWORD_ONLY, default=default))
    if arguments.kwarg is not None:
        parameters.append(kinds(arguments.kwarg.arg, kinds.VAR_KEYWORD))
    return inspect.Signature(parameters)


def _comprehension_frame(node: Comprehension, frame: Frame) -> Frame:
    return Frame(
        frame.code,
        comprehension_names(node),
        frame.function,
        frame,
        frame.caller,
        frame.guards,
        is_comprehension=True,
    )


def _scopes(
    interpreter: Interpreter,
    generators: list[ast.comprehension],
    frame: Frame,
    outer: Frame,
) -> Iterator[Frame]:
    """Yield the scope once for every combination that passes the conditions."""
    if not generators:
        yield frame
        return
    part, *rest = generators
    # The first iterable belongs to the scope around the comprehension.
    items = interpreter.evaluate(part.iter, outer)
    for item in items:  # type: ignore[attr-defined]  # any iterable
        bind_target(interpreter, part.target, item, frame)
        if all(_passes(interpreter, condition, frame) for condition in part.ifs):
            yield from _scopes(interpreter, rest, frame, frame)


def _passes(interpreter: Interpreter, condition: ast.expr, frame: Frame) -> bool:
    value = truth(interpreter.evaluate(condition, frame), "if")
    if isinstance(value, Scalar):
        raise CaptureError(
            "a comprehension is filtered by a run-time scalar",
            remedy="its length must be known at capture: use tn.where on the items instead",
        )
    return value


def _list_comprehension(interpreter: Interpreter, node: ast.ListComp, frame: Frame) -> object:
    scope = _comprehension_frame(node, frame)
    return [
        interpreter.evaluate(node.elt, inner)
        for inner in _scopes(interpreter, node.generators, scope, frame)
    ]


def _set_comprehension(interpreter: Interpreter, node: ast.SetComp, frame: Frame) -> object:
    scope = _comprehension_frame(node, frame)
    return {
        interpreter.evaluate(node.elt, inner)
        for inner in _scopes(interpreter, node.generators, scope, frame)
    }


def _dict_comprehension(interpreter: Interpreter, node: ast.DictComp, frame: Frame) -> object:
    scope = _comprehension_frame(node, frame)
    return {
        interpreter.evaluate(node.key, inner): interpreter.evaluate(node.value, inner)
        for inner in _scopes(interpreter, node.generators, scope, frame)
    }


def _generator(interpreter: Interpreter, node: ast.GeneratorExp, frame: Frame) -> object:
    """A generator is consumed at once: nothing it reads can change in between."""
    scope = _comprehension_frame(node, frame)
    return iter(
        [
            interpreter.evaluate(node.elt, inner)
            for inner in _scopes(interpreter, node.generators, scope, frame)
        ]
    )


EXPRESSIONS: Mapping[type[ast.expr], Evaluator] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: conditional,
    ast.Call: evaluate_call,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.JoinedStr: _formatted,
    ast.FormattedValue: _formatted_value,
    ast.NamedExpr: _walrus,
    ast.Lambda: _lambda,
    ast.ListComp: _list_comprehension,
    ast.SetComp: _set_comprehension,
    ast.DictComp: _dict_comprehension,
    ast.GeneratorExp: _generator,
}
