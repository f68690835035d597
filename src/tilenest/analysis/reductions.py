"""Reductions: how their states meet, and where their contributions may be computed.

In: an `exec.reduce` or a map_reduce_post. Out: for every state its grouping, its law, what order of
contributions its contract leaves open, and a verdict with a reason for every regrouping. A law that
somebody claims counts only where the body shows it, or where the user is trusted with it.

A body shows the law (+) of a state when its step is `state (+) f(elements)`: one of the functions
of `MERGES`, in any bracketing, on scalars or in a map over tiles; one operand is the state itself
or such a step of it, the other depends on no state. `fma(a, b, state)` counts as addition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from tilenest.analysis.effects import effects_of
from tilenest.dialects import (
    MERGES,
    Apply,
    Map,
    MapReducePost,
    Reduce,
    ReductionContract,
    StateLaw,
    identity_of,
    law_of,
)
from tilenest.ir import (
    Analysis,
    Asker,
    Block,
    BlockArgument,
    Edit,
    EditKind,
    EffectKind,
    Operation,
    OpResult,
    Type,
    Value,
    element_dtype,
)
from tilenest.layouts import AffineMap
from tilenest.records import record, replace


class Regrouping(Enum):
    """Ways to compute one cell of a reduction."""

    SERIAL = "serial"
    """One contribution after the other, from the seed, in the order of the policy."""
    PIECES = "contiguous pieces"
    """A tree over pieces of the domain, whose partial states meet in source order."""
    LANES = "lanes"
    """Partial states of every n-th contribution, which meet at the end."""
    WORKERS = "workers"
    """Partial states that meet in whichever order they are finished."""


@record
class Permission:
    """Whether something may be done, and why or why not."""

    what: str
    is_legal: bool
    reason: str

    def __str__(self) -> str:
        return f"{self.what}: {'legal' if self.is_legal else 'not legal'}, {self.reason}"


class Accuracy(Enum):
    """What a result may differ in from the reference fold, by the contract alone."""

    SAME = "the same number, however it is grouped"
    CHAIN = "the rounding of one order"
    REGROUPED = "the rounding of any grouping in source order"
    PERMUTED = "the rounding of any order"


@record
class StateAnswer:
    """What is known of one state of a reduction."""

    policy: str
    orientation: str
    grouping: AffineMap
    """from the coordinates of a contribution to those of the cell it belongs to, where those are
    coordinates of the domain; every contribution meets all other elements of a state"""
    law: StateLaw
    """with its identity; without a merge where only a chain is known"""
    accuracy: Accuracy
    permissions: tuple[Permission, ...]
    """one a regrouping, in their order"""

    def permission(self, regrouping: Regrouping) -> Permission:
        return self.permissions[list(Regrouping).index(regrouping)]

    def allows(self, regrouping: Regrouping) -> bool:
        return self.permission(regrouping).is_legal


class Reductions(Analysis[Operation, tuple[StateAnswer, ...]]):
    """One answer a state of an `exec.reduce`, one a folded result of a map_reduce_post."""

    NAME = "reductions"

    @classmethod
    def compute(cls, subject: Operation, _: Asker, /) -> tuple[StateAnswer, ...]:
        if isinstance(subject, Reduce):
            return _of_nest(subject)
        assert isinstance(subject, MapReducePost), f"{subject.NAME} reduces nothing"
        return _of_work(subject)

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        """Schedules, positions and names do not change what is permitted."""
        is_apart = edit.kind is EditKind.ATTRIBUTE and edit.detail in _APART
        return not is_apart and edit.kind is not EditKind.LABEL


_APART = frozenset({"sched", "ordering"})


def lacking_merges(op: Reduce, answers: Sequence[StateAnswer]) -> list[int]:
    """The states that a tree is asked of and that have no known merge."""
    if not op.contract.is_tree:
        return []
    return [place for place, answer in enumerate(answers) if answer.law.merge is None]


def shown_laws(op: Reduce) -> tuple[StateLaw, ...]:
    """The laws of a nest as its body shows them, whatever it claims; none where it shows none. The
    identity follows from the merge and the type, so it is not spelled out."""
    laws = _shown(op)
    return laws if any(law.merge is not None for law in laws) else ()


# Answers ---------------------------------------------------------------------------------------


def _of_nest(op: Reduce) -> tuple[StateAnswer, ...]:
    laws = _resolved(op.contract, _shown(op))
    grouping = AffineMap(op.rank, 0, ())
    return tuple(
        _answer(op.contract, law, grouping, state.type)
        for law, state in zip(laws, _states(op), strict=True)
    )


def _shown(op: Reduce) -> tuple[StateLaw, ...]:
    """The law of each state that the body shows."""
    if has_plain_body(op):
        return proven_laws(op.update, _states(op), op.update.terminator.operands)
    return (StateLaw(),) * len(op.initial)


def _states(op: Reduce) -> Sequence[Value]:
    return op.update.arguments[op.rank : op.rank + len(op.initial)]


def has_plain_body(op: Reduce) -> bool:
    """Whether the order of contributions shows in nothing but the states: no effects but reads."""
    return all(len(region.blocks) == 1 for region in op.regions) and effects_of(op).kinds <= {
        EffectKind.READ,
        EffectKind.FAULT,
    }


def _of_work(op: MapReducePost) -> tuple[StateAnswer, ...]:
    block, folded = op.fold_block, op.folded_results
    states = block.arguments[len(block.arguments) - len(folded) :]
    nexts = [block.terminator.operands[result] for result in folded]
    answers = []
    for state, law, result in zip(states, proven_laws(block, states, nexts), folded, strict=True):
        contract = op.spec(result).contract
        assert contract is not None
        grouping = AffineMap.projection(op.rank, op.spec(result).dims)
        # What is built from the op merges by what its contract says, and otherwise not at all.
        (own,) = _resolved(contract, (law,)) if contract.laws else (StateLaw(),)
        answers.append(_answer(contract, own, grouping, state.type))
    return tuple(answers)


def _resolved(contract: ReductionContract, found: Sequence[StateLaw]) -> tuple[StateLaw, ...]:
    """The laws to go by: what the body shows, within what is claimed, or what is trusted."""
    if contract.laws and len(contract.laws) != len(found):
        return (StateLaw(),) * len(found)
    return tuple(law_within(contract, place, shown) for place, shown in enumerate(found))


def law_within(contract: ReductionContract, place: int, shown: StateLaw) -> StateLaw:
    """The law of a state to go by: a claim holds where the body shows the same merge, or on trust.

    Whether a shown merge is exact follows from the function and the dtype. It is a fact that nobody
    needs to claim, and a claim of it proves nothing.
    """
    if not contract.laws:
        return shown
    claimed = contract.laws[place]
    if contract.provenance == "trusted":
        return claimed
    return replace(claimed, is_exact=shown.is_exact) if claimed.merge == shown.merge else StateLaw()


def _answer(
    contract: ReductionContract, law: StateLaw, grouping: AffineMap, state: Type
) -> StateAnswer:
    if law.identity is None and law.merge in MERGES:
        law = replace(law, identity=identity_of(law.merge, element_dtype(state)))
    permissions = tuple(_permission(regrouping, contract, law) for regrouping in Regrouping)
    return StateAnswer(
        contract.policy,
        contract.orientation,
        grouping,
        law,
        _accuracy(contract, law),
        permissions,
    )


def _accuracy(contract: ReductionContract, law: StateLaw) -> Accuracy:
    if law.is_exact:
        return Accuracy.SAME
    if law.merge is None or not contract.is_tree:
        return Accuracy.CHAIN
    return Accuracy.PERMUTED if contract.policy == "unordered_tree" else Accuracy.REGROUPED


def _permission(regrouping: Regrouping, contract: ReductionContract, law: StateLaw) -> Permission:
    what, policy = regrouping.value, contract.policy
    if regrouping is Regrouping.SERIAL:
        return Permission(what, True, "it is the order that defines the result")
    if law.merge is None:
        return Permission(what, False, "no merge of partial states is known")
    if law.is_exact and (law.merge in MERGES or regrouping is Regrouping.PIECES):
        order = "order" if law.merge in MERGES else "grouping"
        return Permission(what, True, f"`{law.merge}` gives the same number in any {order}")
    if policy == "unordered_tree":
        return Permission(what, True, "unordered_tree allows any grouping and order")
    if policy == "ordered_tree" and regrouping is Regrouping.PIECES:
        return Permission(what, True, "ordered_tree allows pieces that meet in source order")
    kept = "keeps source order" if policy == "ordered_tree" else "is a chain"
    why = "need not commute" if law.is_exact else "rounds"
    return Permission(what, False, f"{policy} {kept}, and `{law.merge}` {why}")


# Laws that a body shows ------------------------------------------------------------------------


def proven_laws(
    body: Block, states: Sequence[Value], nexts: Sequence[Value]
) -> tuple[StateLaw, ...]:
    """The law of each state, in order."""
    dependent = _dependent_on(body, states)
    return tuple(
        _law(state, following, dependent) for state, following in zip(states, nexts, strict=True)
    )


def _law(state: Value, following: Value, dependent: set[Value]) -> StateLaw:
    merge = _merge_of(state, following, dependent)
    return StateLaw() if merge is None else law_of(merge, element_dtype(state.type))


def _merge_of(state: Value, following: Value, dependent: set[Value]) -> str | None:
    """(+) when `following` is built from `state` once and independent values by (+) alone."""
    step = _step_of(following)
    if step is None:
        return None
    operands = [_operand_of(following, argument, dependent) for argument in step.arguments]
    touched = [i for i, operand in enumerate(operands) if operand is not None]
    function = _merge_name(step, touched)
    if function is None:
        return None
    inner = operands[touched[0]]
    if inner is state:
        return function
    is_chain = isinstance(inner, Value) and _merge_of(state, inner, dependent) == function
    return function if is_chain else None


def _merge_name(step: Apply, touched: list[int]) -> str | None:
    """The merge that a step is when only these arguments depend on states."""
    if step.function == "fma":
        return "add" if touched == [2] else None
    return step.function if step.function in MERGES and len(touched) == 1 else None


def _step_of(value: Value) -> Apply | None:
    """The scalar function that makes a value: its own op, or the last one of its map."""
    owner = value.owner if isinstance(value, OpResult) else None
    if isinstance(owner, Map):
        yielded = owner.body.terminator.operands[0]
        owner = yielded.owner if isinstance(yielded, OpResult) else None
    return owner if isinstance(owner, Apply) else None


def _operand_of(value: Value, argument: Value, dependent: set[Value]) -> Value | Map | None:
    """What an argument of the step stands for: None where it depends on no state, the value itself
    where it is one, the map where it is computed inside the map from a dependent element."""
    assert isinstance(value, OpResult)
    owner = value.owner
    if not isinstance(owner, Map):
        return argument if argument in dependent else None
    if isinstance(argument, BlockArgument) or not _is_inside(owner, argument):
        source = _source_of(owner, argument)
        return source if source in dependent else None
    return owner if any(source in dependent for source in _sources(owner, argument)) else None


def _is_inside(op: Map, value: Value) -> bool:
    return value.defining_block is op.body


def _source_of(op: Map, element: Value) -> Value | None:
    """The value outside the map whose element this is; None for a coordinate."""
    if not isinstance(element, BlockArgument) or not _is_inside(op, element):
        return element
    rank = len(op.body.arguments) - len(op.inputs)
    return op.inputs[element.index - rank] if element.index >= rank else None


def _sources(op: Map, element: Value) -> Iterator[Value]:
    """The values outside the map that something inside is computed from."""
    if isinstance(element, OpResult) and _is_inside(op, element):
        for operand in element.owner.operands:
            yield from _sources(op, operand)
        return
    source = _source_of(op, element)
    if source is not None:
        yield source


def _dependent_on(body: Block, states: Sequence[Value]) -> set[Value]:
    """What is computed from states, also where an operation uses them in a region only."""
    dependent: set[Value] = set(states)
    for op in body.walk():
        # The first value on the way into an operation is one from before it.
        if any(operand in dependent for inner in op.walk() for operand in inner.operands):
            dependent.update(op.results)
            for region in op.regions:
                for block in region.blocks:
                    dependent.update(block.arguments)
    return dependent
