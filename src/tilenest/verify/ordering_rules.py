"""Rules `TN10`, `TN10b`, `TN10c`: orderings are total, permutations single-valued, scans in order.

In: operations that keep an ordering contract; all rules about single ops hold. Out: faults, where
two values would have no order, where a place of the result would have no position or an element
several, and where a scan would be regrouped without a law.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import Orderings, ordered_extent, trip_counts
from tilenest.dialects import (
    ENDS,
    ORDERS,
    PADDINGS,
    REDUCTION_POLICIES,
    TIES,
    Call,
    OrderingContract,
    Reduce,
)
from tilenest.ir import (
    Asker,
    DType,
    Fault,
    Operation,
    Rule,
    Subject,
    TileType,
    Value,
    describe_type,
)
from tilenest.verify.expectations import Findings, expect_choice, is_bool, type_is_over

_KEPT_POSITION = {"first": "minimum", "last": "maximum"}


def _ordered(subject: Subject) -> Iterator[tuple[Call | Reduce, OrderingContract]]:
    kinds: tuple[type[Call | Reduce], ...] = (Call, Reduce)
    for kind in kinds:
        for op in subject.of(kind):
            if isinstance(op.ordering, OrderingContract):
                yield op, op.ordering


# TN10 ------------------------------------------------------------------------------------------


def _orders(subject: Subject) -> Iterator[Fault]:
    kinds: tuple[type[Call | Reduce], ...] = (Call, Reduce)
    for kind in kinds:
        for op in subject.of(kind):
            if not isinstance(op.ordering, OrderingContract | None):
                yield Fault(op, "`ordering` is no contract", "use an #ordering_contract")
    for op, contract in _ordered(subject):
        choices = list(_choices(contract))
        for message, remedy in choices or _order(op, contract, subject.analyses):
            yield Fault(op, message, remedy)


def _choices(contract: OrderingContract) -> Findings:
    yield from expect_choice("`order`", contract.order, ORDERS)
    yield from expect_choice("`ties`", contract.ties, TIES)
    yield from expect_choice("`nan`", contract.nan, ENDS)
    yield from expect_choice("`padding`", contract.padding, PADDINGS)


def _order(op: Operation, contract: OrderingContract, ask: Asker) -> Findings:
    dtype = contract.element.dtype
    if isinstance(op, Call):
        yield from _elements(op, contract)
    answer = ask.get(Orderings, op)
    assert answer is not None
    # Equal integers are the same, so without positions nobody sees which one came first.
    is_unseen = contract.ties == "any" and not dtype.is_float and not _positions(op)
    if not answer.total.is_proven and not is_unseen:
        yield (
            f"{dtype.text} has no total order: {answer.total}",
            'say where NaN stand and which of equal elements comes first, as nan = "last" and '
            'ties = "first"',
        )


def _elements(op: Call, contract: OrderingContract) -> Findings:
    first = op.arguments[0].type if op.arguments else None
    if not isinstance(first, TileType) or not type_is_over(first, contract.element.dtype):
        given = "nothing" if first is None else f"a {describe_type(first)}"
        yield f"orders {contract.element.dtype.text}, and gets {given}", "name the element type"
    elif contract.axis not in range(len(first.dims)):
        yield f"orders along dim {contract.axis} of {len(first.dims)}", "name a dim it has"
    is_masked = any(is_bool(argument.type) for argument in op.arguments[1:])
    if is_masked and contract.padding == "none":
        yield "gets a mask, and what it leaves out has no place", 'say padding = "last"'


# TN10b -----------------------------------------------------------------------------------------


def _permutations(subject: Subject) -> Iterator[Fault]:
    for op, contract in _ordered(subject):
        is_plain = contract.order == "source" and contract.permutation is None
        if is_plain or any(_choices(contract)):
            continue
        extent = _extent(op)
        findings = [*_places(contract, extent), *_holding(op, extent)]
        if isinstance(op, Reduce):
            findings += _meeting(op, contract)
        for message, remedy in findings or _stated(op, contract, subject.analyses):
            yield Fault(op, message, remedy)


def _extent(op: Operation) -> int | None:
    if not isinstance(op, Reduce):
        return ordered_extent(op)
    counts = trip_counts(op)
    return counts[0] if len(counts) == 1 else None


def _positions(op: Operation) -> list[Value]:
    """The results that are positions of elements."""
    return list(op.results[1:] if isinstance(op, Call) else op.results)


def _places(contract: OrderingContract, extent: int | None) -> Findings:
    count = contract.selected
    if count is not None and (count < 0 or (extent is not None and count > extent)):
        yield f"selects {count} of {extent} elements", "select at most all"


def _holding(op: Operation, extent: int | None) -> Findings:
    """Positions are integers that can say every one of them."""
    for value in _positions(op):
        dtype = getattr(value.type, "dtype", None)
        if not isinstance(dtype, DType) or not dtype.is_integer:
            yield f"gives positions as a {describe_type(value.type)}", "use an integer type"
        elif extent is not None and extent > _most(dtype) + 1:
            yield f"{dtype.text} does not hold {extent} positions", "use a wider integer type"


def _most(dtype: DType) -> int:
    return int((1 << (dtype.bits - dtype.is_signed)) - 1)


def _meeting(op: Reduce, contract: OrderingContract) -> Findings:
    """The lowest or the highest of the positions that qualify."""
    wanted = _KEPT_POSITION.get(contract.ties)
    merges = [law.merge for law in op.contract.laws]
    if contract.selected != 1 or merges != [wanted]:
        yield (
            f"positions meet by {merges}, and of equal elements the {contract.ties} is selected",
            "select one position, by minimum for the first and maximum for the last",
        )


def _stated(op: Operation, contract: OrderingContract, ask: Asker) -> Findings:
    answer = ask.get(Orderings, op)
    assert answer is not None
    if contract.permutation is not None and not answer.permutation.is_proven:
        yield (
            f"{contract.permutation} is no permutation: {answer.permutation}",
            "give every place one position of its own",
        )


# TN10c -----------------------------------------------------------------------------------------


def _scans(subject: Subject) -> Iterator[Fault]:
    for op, contract in _ordered(subject):
        if not any(_choices(contract)):
            findings = _scan(op, contract, subject.analyses)
            yield from (Fault(op, *finding) for finding in findings)


def _scan(op: Operation, contract: OrderingContract, ask: Asker) -> Findings:
    combining = contract.reduction
    if contract.order != "source":
        if combining is not None:
            yield "combines elements and moves them", 'a scan keeps order = "source"'
        return
    if combining is None:
        yield "a scan does not say how it combines", "give it a reduction contract"
    elif combining.policy not in REDUCTION_POLICIES:
        yield from expect_choice("`policy`", combining.policy, REDUCTION_POLICIES)
    elif combining.policy == "unordered_tree":
        yield "a scan permutes its contributions", "use ordered_tree, or a fold"
    elif combining.is_tree:
        answer = ask.get(Orderings, op)
        assert answer is not None
        if not answer.blocks.is_legal:
            reason = answer.blocks.reason
            yield f"a tree scans by blocks: {reason}", "give it a law, or use a fold"


ORDERING_RULES = (
    Rule("TN10", "orderings have a total order", _orders),
    Rule("TN10b", "permutations are total and single-valued", _permutations),
    Rule("TN10c", "scans combine in source order", _scans),
)
