"""Run-time conditionals: `if` statements and conditional expressions on a scalar of the kernel.

In: a condition, and two arms to interpret from the same environment. Out: one `exec.if` whose
results are the variables on which the arms disagree. A conditional expression of pure scalars
becomes a `where`. What only one arm defines cannot be read afterwards.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from tilenest.analysis import is_computation
from tilenest.capture.frames import Frame, Poison, ended, one_branch
from tilenest.capture.interpreter import Interpreter, Signal
from tilenest.capture.memory import yield_states
from tilenest.capture.staged import Kind, common_kind, handle_on, kind_of, truth, value_as
from tilenest.capture.variables import (
    UNDEFINED,
    Environment,
    NameVariable,
    Variable,
    describe,
    is_number,
    is_unchanged,
    leaves,
    namesakes,
    rebuild,
    same_structure,
)
from tilenest.dialects import Apply, If, Yield
from tilenest.errors import CarriedTypeError
from tilenest.ir import Block, Region, ScalarType, Value
from tilenest.language import Element, Scalar
from tilenest.records import record

Arm = Callable[[], object]


def if_statement(interpreter: Interpreter, node: ast.If, frame: Frame) -> Signal:
    """`if`: one arm on a host condition, both on a run-time one."""
    condition = interpreter.evaluate(node.test, frame)
    interpreter.at(node.test, frame)
    value = truth(condition, "if")
    if not isinstance(value, Scalar):
        return interpreter.execute(node.body if value else node.orelse, frame)

    def run(statements: Sequence[ast.stmt]) -> Arm:
        return lambda: interpreter.execute(statements, frame)

    branch = _Branch(interpreter, node.test, frame, value)
    branch.run([run(node.body), run(node.orelse)])
    branch.merge_variables(lambda name: frame.code.is_live_after(node, name))
    branch.finish()
    return None


def conditional(interpreter: Interpreter, node: ast.IfExp, frame: Frame) -> object:
    """`a if condition else b`."""
    condition = interpreter.evaluate(node.test, frame)
    interpreter.at(node.test, frame)
    value = truth(condition, "if")
    if not isinstance(value, Scalar):
        return interpreter.evaluate(node.body if value else node.orelse, frame)

    def run(part: ast.expr) -> Arm:
        return lambda: interpreter.evaluate(part, frame)

    branch = _Branch(interpreter, node, frame, value)
    results = branch.run([run(node.body), run(node.orelse)])
    branch.merge_variables(lambda _: True)
    result = branch.merge(results, "the conditional expression")
    branch.finish()
    return result()


class _Merge:
    """A result of the operation: the arms' values, and the handle once there is one."""

    __slots__ = ("handle", "kind", "values")

    def __init__(self, values: list[object], kind: Kind) -> None:
        self.values = values
        self.kind = kind
        self.handle: Element | None = None


@record
class _Arm:
    """What an arm left behind."""

    finals: list[tuple[Variable, object]]
    new_names: dict[str, object]
    written: list[set[str]]


class _Branch:
    """One run-time conditional under construction."""

    def __init__(
        self, interpreter: Interpreter, node: ast.expr, frame: Frame, condition: Scalar
    ) -> None:
        self._interpreter = interpreter
        self._session = interpreter.session
        self._node = node
        self._frame = frame.function_frame
        self._place = interpreter.at(node, frame)
        self._environment = Environment(frame, interpreter.frames)
        self._blocks = [Block(), Block()]
        self._operation = self._session.insert(
            If(
                condition=self._session.value_of(condition),
                regions=[Region([block]) for block in self._blocks],
            )
        )
        self._arms: list[_Arm] = []
        self._merges: list[_Merge] = []
        self._settled: list[tuple[Variable, Callable[[], object]]] = []

    def run(self, arms: Sequence[Arm]) -> list[object]:
        """Interpret both arms from the same environment."""
        written = self._frame.written_names()
        results = []
        for block, arm in zip(self._blocks, arms, strict=True):
            results.append(self._run_arm(block, arm))
            self._frame.set_written_names(written)
        return results

    def _run_arm(self, block: Block, arm: Arm) -> object:
        frame, environment = self._frame, self._environment
        frame.contexts.append("if")
        self._interpreter.environments.append(environment)
        try:
            with self._session.builder.at_end(block):
                result = arm()
        finally:
            self._interpreter.environments.pop()
            frame.contexts.pop()
        environment.check_lists("a run-time `if`")
        self._arms.append(
            _Arm(
                [(variable, variable.get()) for variable, _ in environment.entries()],
                {name: frame.locals[name] for name in environment.new_names()},
                frame.written_names(),
            )
        )
        environment.restore()
        return result

    def merge_variables(self, is_live: Callable[[str], bool]) -> None:
        """Decide what every variable that an arm changed holds afterwards."""
        then, other = self._arms
        for (variable, before), (_, one), (_, two) in zip(
            self._environment.entries(), then.finals, other.finals, strict=True
        ):
            if one is before and two is before:
                continue
            if isinstance(variable, NameVariable) and not is_live(variable.name):
                self._settle(variable, ended(variable.name, "if"))
                continue
            self._settled.append((variable, self.merge([one, two], repr(variable.label))))
        for name in dict.fromkeys([*then.new_names, *other.new_names]):
            self._merge_new(name, is_live(name))
        for accesses, one_written, two_written in zip(
            self._frame.accesses, then.written, other.written, strict=True
        ):
            accesses.written |= one_written & two_written

    def _merge_new(self, name: str, is_live: bool) -> None:
        variable = NameVariable(self._frame, name)
        values = [arm.new_names.get(name, UNDEFINED) for arm in self._arms]
        poison = next((value for value in values if isinstance(value, Poison)), None)
        if poison is UNDEFINED:
            self._settle(variable, one_branch(name))
        elif poison is not None:
            self._settle(variable, poison)
        elif is_live:
            self._settled.append((variable, self.merge(values, repr(name))))
        else:
            self._settle(variable, ended(name, "if"))

    def _settle(self, variable: Variable, value: object) -> None:
        self._settled.append((variable, lambda: value))

    def merge(self, values: list[object], label: str) -> Callable[[], object]:
        """One value out of the arms' two; the result is there once the operation is finished."""
        one, two = values
        if not same_structure(one, two):
            raise self._mismatch(one, two, label)
        merged = [
            self._merge_leaf(a, b, label) for a, b in zip(leaves(one), leaves(two), strict=True)
        ]
        return lambda: rebuild(
            one, iter([leaf.handle if isinstance(leaf, _Merge) else leaf for leaf in merged])
        )

    def _merge_leaf(self, one: object, two: object, label: str) -> object:
        if is_unchanged(one, two):
            return one
        for value in (one, two):
            if isinstance(value, Poison):
                return value
        mergeable = all(isinstance(value, Element) or is_number(value) for value in (one, two))
        kind = common_kind(kind_of(one), kind_of(two)) if mergeable else None
        if kind is None:
            raise self._mismatch(one, two, label)
        merge = _Merge([one, two], kind)
        self._merges.append(merge)
        return merge

    def _mismatch(self, one: object, two: object, label: str) -> CarriedTypeError:
        return CarriedTypeError(
            f"after a run-time `if`, {label} is {describe(one)} in one branch and "
            f"{describe(two)} in the other",
            remedy="give it tiles or scalars of one dtype and shape in both branches, or decide "
            f"on a host value{namesakes(one, two)}",
            location=self._place,
        )

    def finish(self) -> None:
        """Yield the merged values, and give the variables their new ones."""
        for place, block in enumerate(self._blocks):
            with self._session.builder.at_end(block):
                self._interpreter.at(self._node, self._frame)
                values = [
                    value_as(self._session, merge.values[place], merge.kind)
                    for merge in self._merges
                ]
                self._session.insert(Yield(values=values))
        self._interpreter.at(self._node, self._frame)
        for merge, result in zip(self._merges, self._results(), strict=True):
            merge.handle = handle_on(self._session, result, merge.kind.is_weak)
        if self._operation.parent is not None:
            yield_states(self._operation)
        for variable, value in self._settled:
            variable.set(value())

    def _results(self) -> list[Value]:
        is_expression = isinstance(self._node, ast.IfExp)
        if (is_expression or self._session.element_body) and self._is_pure_scalar():
            return self._select()
        return [self._operation.add_result(merge.kind.type) for merge in self._merges]

    def _is_pure_scalar(self) -> bool:
        values = [merge.kind.type for merge in self._merges]
        for block in self._blocks:
            for operation in block.operations:
                if not operation.TERMINATOR and not is_computation(operation):
                    return False
                values += [result.type for result in operation.results]
        return all(isinstance(type_, ScalarType) for type_ in values)

    def _select(self) -> list[Value]:
        """Compute both arms in place and choose: scalar operations never fail."""
        arms = [list(block.terminator.operands) for block in self._blocks]
        parent = self._operation.parent
        assert parent is not None
        for block in self._blocks:
            block.terminator.erase()
            for operation in block.operations:
                parent.insert(operation.detach(), before=self._operation)
        condition = self._operation.condition
        self._operation.erase()
        return [
            self._session.insert(
                Apply(
                    result_types=[merge.kind.type],
                    arguments=[condition, one, two],
                    function="where",
                )
            ).result
            for merge, one, two in zip(self._merges, *arms, strict=True)
        ]
