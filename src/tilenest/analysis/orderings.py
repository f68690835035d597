"""Orderings: whether a contract orders every value, and whether its scan may run in blocks.

In: an operation that keeps an `OrderingContract`. Out: whether any two elements are ordered,
whether the permutation that follows is total and single-valued, and whether a scan of contiguous
blocks keeps the contract. Elements are ordered by value and then by position, so an order is total
where NaN have an end and equal elements a first one: whatever sorts then finds one permutation.
"""

from __future__ import annotations

from tilenest.analysis.reductions import Permission
from tilenest.dialects import Call, OrderingContract, Reduce, ReductionContract
from tilenest.ir import Analysis, Asker, DType, Edit, EditKind, Operation, TileType
from tilenest.layouts import (
    Answer,
    Expressions,
    Space,
    Witness,
    disproven,
    is_bounded,
    is_injective,
    is_total,
    proven,
    unknown,
)
from tilenest.records import record

_ENGINE = "contract"
_MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


@record
class OrderingAnswer:
    """What follows from an ordering contract where it stands."""

    total: Answer
    """whether of any two elements one comes first"""
    permutation: Answer
    """whether every place of the result has one position of the source, and no two the same"""
    blocks: Permission
    """whether a scan may run in contiguous blocks, each led by what those before it come to"""


class Orderings(Analysis[Operation, OrderingAnswer | None]):
    """The answer for an operation that keeps a contract, None for any other."""

    NAME = "orderings"

    @classmethod
    def compute(cls, subject: Operation, _: Asker, /) -> OrderingAnswer | None:
        contract = _ordering_of(subject)
        return None if contract is None else _answer(contract, ordered_extent(subject))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        """Only the contract counts, and the types of what is ordered."""
        if edit.kind is EditKind.ATTRIBUTE:
            return edit.detail == "ordering"
        return edit.kind in (EditKind.OPERANDS, EditKind.DEFINITIONS)


def _ordering_of(op: Operation) -> OrderingContract | None:
    """The contract that an operation keeps."""
    found = op.ordering if isinstance(op, Call | Reduce) else None
    return found if isinstance(found, OrderingContract) else None


def ordered_extent(op: Operation) -> int | None:
    """How many elements a call orders along its axis, where that is known."""
    contract = _ordering_of(op)
    if contract is None or not isinstance(op, Call) or not op.arguments:
        return None
    type_ = op.arguments[0].type
    if not isinstance(type_, TileType) or contract.axis not in range(len(type_.dims)):
        return None
    return type_.dims[contract.axis].extent


def _answer(contract: OrderingContract, extent: int | None) -> OrderingAnswer:
    """What follows from a contract over so many elements."""
    total = _total(contract)
    return OrderingAnswer(total, _permutation(contract, extent, total), _blocks(contract))


# Orders ----------------------------------------------------------------------------------------


def _total(contract: OrderingContract) -> Answer:
    dtype = contract.element.dtype
    if contract.order == "source":
        return proven(_ENGINE, "positions are ordered")
    if dtype.is_float and contract.nan == "unordered":
        pair = ((_nan_bits(dtype), 0), (0, 1))
        return disproven(
            _ENGINE, "NaN is neither before nor behind a number, as (bits, position)", Witness(pair)
        )
    if contract.ties == "any":
        pair = ((0, 0), (0, 1))
        return disproven(
            _ENGINE, "of equal elements none comes first, as (bits, position)", Witness(pair)
        )
    return proven(_ENGINE, "values are ordered, NaN among them, and equal ones by position")


def _nan_bits(dtype: DType) -> int:
    """The quiet NaN without a payload: all ones but the sign, down to the highest mantissa bit."""
    mantissa = _MANTISSA[dtype.text]
    exponent = (1 << (dtype.bits - 1 - mantissa)) - 1
    return exponent << mantissa | 1 << (mantissa - 1)


def _permutation(contract: OrderingContract, extent: int | None, total: Answer) -> Answer:
    stated = contract.permutation
    if stated is None:
        return total
    if extent is None:
        return unknown(_ENGINE, "the number of elements is not known")
    places = extent if contract.selected is None else contract.selected
    if not 0 <= places <= extent:
        return disproven(_ENGINE, f"{places} places have no positions of {extent}", Witness(()))
    if (stated.n_dims, stated.n_syms, len(stated.results)) != (1, 0, 1):
        return disproven(_ENGINE, f"{stated} takes no place to a position", Witness(()))
    layout = Expressions(
        Space.box(places, prefix="place"), Space.box(extent, prefix="position"), stated.results
    )
    answers = (is_total(layout), is_bounded(layout), is_injective(layout))
    return next((answer for answer in answers if not answer.is_proven), answers[-1])


# Scans -----------------------------------------------------------------------------------------


def _blocks(contract: OrderingContract) -> Permission:
    what, combining = "blocks", contract.reduction or ReductionContract("fold_left")
    if contract.order != "source":
        return Permission(what, False, "elements change places")
    if not combining.laws or any(law.merge is None for law in combining.laws):
        return Permission(what, False, "no associative merge is known by contract")
    if combining.is_tree or all(law.is_exact for law in combining.laws):
        return Permission(what, True, "prefixes of contiguous blocks may meet in source order")
    return Permission(what, False, f"{combining.policy} is a chain")
