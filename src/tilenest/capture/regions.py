"""Regions: `for` over a nest becomes one `exec` operation that carries what its body changes.

In: a loop and a nest. Out: the operation, and an environment in which each variable holds what
it holds after the loop. On entry every variable with a tile or scalar gets a block argument of
its own, so that two variables that share a value stay distinct; the body runs once; then the
sets decide: a variable written inside is carried when it was read before or is live after, an
unchanged one goes back to its incoming value and its argument disappears. A host number that
changes becomes a scalar, and the body runs again.
"""

from __future__ import annotations

import ast
from typing import Any

from tilenest.analysis import effects_of
from tilenest.capture.assignment import bind_target
from tilenest.capture.carries import Carries, Promotions
from tilenest.capture.frames import Accesses, Frame
from tilenest.capture.interpreter import Interpreter
from tilenest.capture.memory import carry_states
from tilenest.capture.staged import handle_on, index_value, value_as
from tilenest.capture.stages import Cut, split_stages
from tilenest.capture.variables import Environment
from tilenest.dialects import Nest as NestOperation
from tilenest.dialects import Parallel, Pipeline, Reduce, ReductionContract, Serial, Yield
from tilenest.errors import CaptureError, CarriedTypeError, ScopeError
from tilenest.ir import INDEX, Block, EffectKind, Operation, Region, Value
from tilenest.language import DomainAxis, Handle, Nest, NestHandle, Scalar
from tilenest.records import record

_MOST_RUNS = 12
"""Runs of one body before host numbers that keep changing their kind are given up on."""


def nest_loop(interpreter: Interpreter, node: ast.For, nest: Nest, frame: Frame) -> None:
    """`for handle in nest:`"""
    innermost, parent = interpreter.session.innermost, nest.parent
    is_at_root = innermost is None and (parent is None or parent.kind == "root")
    if innermost is not parent and not is_at_root:
        raise ScopeError(
            f"a {nest.kind} nest is looped over outside the region that it was made in",
            remedy="make the nest where the loop stands, from the innermost loop's variable",
        )
    _loop(interpreter, node, nest, frame, is_handle=True)


def range_loop(interpreter: Interpreter, node: ast.For, axis: DomainAxis, frame: Frame) -> None:
    """`for i in range(run-time scalar):`, a serial nest whose variable is the index itself."""
    nest = Nest("serial", (axis,), interpreter.session.innermost)
    _loop(interpreter, node, nest, frame, is_handle=False)


def _loop(
    interpreter: Interpreter, node: ast.For, nest: Nest, frame: Frame, is_handle: bool
) -> None:
    if node.orelse:
        raise CaptureError(
            f"the loop over a {nest.kind} nest has an `else`",
            remedy="write the statements behind the loop: it has no `break`",
        )
    interpreter.at(node.iter, frame)
    session = interpreter.session
    if session.element_body is not None:
        raise CaptureError(
            "a loop stands inside tn.map, whose function computes one element",
            remedy="compute with whole tiles and nests, or unroll over host numbers",
        )
    bounds = _Bounds(
        [index_value(session, axis.lower) for axis in nest.axes],
        [index_value(session, axis.upper) for axis in nest.axes],
        [index_value(session, axis.step) for axis in nest.axes],
    )
    promotions: Promotions = {}
    for _ in range(_MOST_RUNS):
        region = _OpenRegion(interpreter, node, nest, frame, bounds, promotions)
        region.run(is_handle)
        changed = region.carries.decide()
        if not changed:
            region.finish()
            return
        region.discard()
        promotions = {**promotions, **changed}
    labels = ", ".join(sorted(key[-1] for key in promotions))
    raise CarriedTypeError(
        f"the dtype of {labels} changes with every run of the loop",
        remedy="start with a scalar of the right dtype, as tn.scalar(0, tn.int64)",
    )


@record
class _Bounds:
    lower: list[Value]
    upper: list[Value]
    step: list[Value]


class _OpenRegion:
    """One attempt at a region: from the open operation to its results, or to nothing."""

    def __init__(
        self,
        interpreter: Interpreter,
        node: ast.For,
        nest: Nest,
        frame: Frame,
        bounds: _Bounds,
        promotions: Promotions,
    ) -> None:
        self.interpreter = interpreter
        self.node = node
        self.nest = nest
        self.frame = frame
        interpreter.at(node.iter, frame)
        self.body = Block([INDEX] * len(nest.axes))
        self.operation = interpreter.session.insert(_operation(nest, bounds, Region([self.body])))
        self.environment = Environment(frame, interpreter.frames)
        self.accesses = Accesses()
        self.carries = Carries(
            interpreter.session,
            self.environment,
            self.accesses,
            kind=nest.kind,
            is_live=lambda name: frame.code.is_live_after(node, name),
            has_iterations=_has_iterations(nest),
        )
        self.carries.open(self.body, promotions)
        self.cuts: list[Cut] = []

    def run(self, is_handle: bool) -> None:
        """Interpret the body once."""
        interpreter, frame, session = self.interpreter, self.frame, self.interpreter.session
        coordinates = self.body.arguments[: len(self.nest.axes)]
        for place, argument in enumerate(coordinates):
            argument.name = _index_name(self.node.target, place, len(coordinates))
        indices = [Scalar(argument, session) for argument in coordinates]
        handle = NestHandle(session, self.nest, indices)
        written = frame.written_names()
        frame.accesses.append(self.accesses)
        frame.contexts.append(self.nest.kind)
        interpreter.environments.append(self.environment)
        on_stage = session.on_stage
        if is_handle:
            session.nest_stack.append(handle)
            session.on_stage = self._stage
        try:
            with session.builder.at_end(self.body):
                bind_target(
                    interpreter, self.node.target, handle if is_handle else indices[0], frame
                )
                signal = interpreter.execute(self.node.body, frame)
                assert signal is None, "jumps out of a region are refused where they stand"
        finally:
            session.on_stage = on_stage
            if is_handle:
                session.nest_stack.pop()
            handle.active = False
            interpreter.environments.pop()
            frame.contexts.pop()
            frame.accesses.pop()
        self.environment.check_lists(f"a {self.nest.kind} region")
        if not self.carries.has_iterations:
            frame.set_written_names(written)

    def discard(self) -> None:
        """Undo everything: the operation, and what the body did to variables."""
        self.operation.erase()
        self.environment.restore()

    def finish(self) -> None:
        """Yield the carried values, drop unused arguments and bind what holds afterwards."""
        interpreter, session = self.interpreter, self.interpreter.session
        place = interpreter.at(self.node.iter, self.frame)
        carried = self.carries.carried
        with session.builder.at_end(self.body):
            finals = [value_as(session, leaf.final, leaf.kind) for leaf in carried]
            session.insert(Yield(values=finals))
        before = session.builder.before
        session.builder.before = self.operation
        initial = [value_as(session, leaf.initial, leaf.kind) for leaf in carried]
        self.carries.drop_unused(self.body)
        session.builder.before = before
        if carried:
            self.operation.set_group("initial", initial)
        for leaf in carried:
            result = self.operation.add_result(leaf.kind.type, leaf.label)
            leaf.handle = handle_on(session, result, leaf.kind.is_weak)
        carry_states(self.operation)
        if isinstance(self.operation, Pipeline):
            split_stages(self.operation, self.cuts, place)
        self.carries.publish()

    def _stage(self, handle: Handle, name: str | None) -> None:
        """Cut the body of this pipeline."""
        session = self.interpreter.session
        if session.innermost is not handle or session.builder.block is not self.body:
            raise CaptureError(
                "stage() is called inside a loop or a run-time `if` of the pipeline's body",
                remedy="call it between the statements of the body itself: every iteration "
                "passes every stage",
            )
        if name is not None and any(cut.name == name for cut in self.cuts):
            raise CaptureError(
                f"the pipeline has two stages named {name!r}", remedy="name every stage once"
            )
        if not self.cuts and any(_touches_memory(op) for op in self.body.operations):
            raise CaptureError(
                "the pipeline's body reads or writes memory before its first stage",
                remedy="call stage() before the first load or store",
            )
        self.cuts.append(Cut(name, self.body.operations.last if self.cuts else None))


def _touches_memory(operation: Operation) -> bool:
    return not effects_of(operation).kinds <= {EffectKind.ALLOCATE}


def _operation(nest: Nest, bounds: _Bounds, region: Region) -> NestOperation:
    make: type[NestOperation]
    attributes: dict[str, Any] = {}
    match nest.kind:
        case "parallel":
            make = Parallel
            if nest.scope is not None:
                attributes["scope"] = nest.scope.value
        case "serial":
            make = Serial
        case "pipeline":
            make = Pipeline
            attributes.update(window=nest.window, interval=nest.interval)
        case _:
            make = Reduce
            attributes["contract"] = ReductionContract(nest.policy.value)
    return make(
        lower=bounds.lower, upper=bounds.upper, step=bounds.step, regions=[region], **attributes
    )


def _has_iterations(nest: Nest) -> bool:
    """Whether the domain is known not to be empty."""
    return all(
        isinstance(axis.lower, int) and isinstance(axis.upper, int) and axis.lower < axis.upper
        for axis in nest.axes
    )


def _index_name(target: ast.expr, place: int, rank: int) -> str | None:
    if not isinstance(target, ast.Name):
        return None
    return target.id if rank == 1 else f"{target.id}_{place}"
