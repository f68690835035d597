"""The catalogue of atoms: what a target does in one step, as contracts with a stable id.

In: nothing but data. Out: contracts, which a call in Machine form names by id and the verifier
looks up. A contract says what is computed, on which types, in which order and rounding, by whom,
how operands and results lie over those who take part, what else happens, and what of the machine it
needs. Maps go from iteration coordinates to the coordinates of an operand: (register, lane).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from tilenest.errors import InternalError
from tilenest.ir import EffectKind, Type, VectorType, describe_type, element_dtype
from tilenest.layouts import AffineMap
from tilenest.records import record


@record
class ValuePattern:
    """One operand or result, or several: 'scalar', 'vector', as many vectors as one of them has
    lanes ('square'), or any number of values of any shape ('values')."""

    shape: str
    kinds: str
    """the kinds of element it may have, as `DType.kind` names them"""

    def count(self, lanes: int, given: int) -> int:
        """How many of `given` values it stands for."""
        return {"square": lanes, "values": given}.get(self.shape, 1)

    def misfit(self, type_: Type) -> str | None:
        """Why a value of this type does not fit; None where it does."""
        if element_dtype(type_).kind not in self.kinds:
            return f"has elements of kind {self.kinds!r}, not {describe_type(type_)}"
        is_vector = isinstance(type_, VectorType)
        if self.shape == "values" or is_vector == (self.shape != "scalar"):
            return None
        wanted = "scalar" if self.shape == "scalar" else "vector"
        return f"is a {wanted}, not {describe_type(type_)}"


ORDERS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "none": frozenset(),
        "source": frozenset({"fold_left", "ordered_tree", "unordered_tree"}),
        "reverse": frozenset({"fold_right", "unordered_tree"}),
        "neighbours": frozenset({"ordered_tree", "unordered_tree"}),
        "halving": frozenset({"unordered_tree"}),
    }
)
"""How an atom may combine, and the policies of a reduction that permit it: not at all; one element
after the other, from the first or from the last; neighbours, and then what they gave; or lane l and
lane l + lanes/2, and so on."""
ROUNDINGS = ("exact", "each", "fused", "wide")
"""What an atom rounds: nothing, as it only moves elements; every step, to the type of the elements;
a product and its sum at once; or the result alone, as its steps are of a wider type."""


@record
class Arithmetic:
    """How an atom rounds and in which order it combines: one of `ORDERS` and of `ROUNDINGS`."""

    order: str
    rounding: str

    def __post_init__(self) -> None:
        if self.order not in ORDERS or self.rounding not in ROUNDINGS:
            raise InternalError(f"nothing is known of atoms that are {self.order}, {self.rounding}")


MOVES = Arithmetic("none", "exact")


@record
class AtomContract:
    """What one atom promises."""

    id: str
    version: int
    semantics: frozenset[str]
    """what it can compute, by names without a target; a call says which"""
    operands: tuple[ValuePattern, ...]
    results: tuple[ValuePattern, ...]
    arithmetic: Arithmetic
    participants: str
    """the scope whose units take part together"""
    operand_layouts: tuple[AffineMap, ...] = ()
    """one a pattern; none where operands are not laid out over participants"""
    result_layouts: tuple[AffineMap, ...] = ()
    effects: frozenset[EffectKind] = frozenset()
    needs: frozenset[str] = frozenset()
    """features a machine must have"""
    protocol: str = ""
    """whose tokens it takes and gives; empty where nothing waits for it"""
    is_uniform: bool = True
    """whether all operands and results have one element type"""

    def __str__(self) -> str:
        return f"{self.id} v{self.version}"

    def mismatch(self, operands: Sequence[Type], results: Sequence[Type]) -> str | None:
        """Why these types do not fit, tokens aside; None where they do."""
        types = (*operands, *results)
        if self.is_uniform and len({element_dtype(type_) for type_ in types}) > 1:
            return f"has one element type, not {', '.join(map(describe_type, types))}"
        widths = {type_.lanes for type_ in types if isinstance(type_, VectorType)}
        lanes = min(widths, default=1)
        if len(widths) > 1 or lanes & (lanes - 1):
            return f"has one number of lanes, a power of two, not {sorted(widths)}"
        return _misfit("operand", self.operands, operands, lanes) or _misfit(
            "result", self.results, results, lanes
        )


def _misfit(
    group: str, patterns: Sequence[ValuePattern], types: Sequence[Type], lanes: int
) -> str | None:
    wanted = [pattern for pattern in patterns for _ in range(pattern.count(lanes, len(types)))]
    if len(wanted) != len(types):
        return f"has {len(wanted)} {group}s at {lanes} lanes, not {len(types)}"
    for place, (pattern, type_) in enumerate(zip(wanted, types, strict=True)):
        reason = pattern.misfit(type_)
        if reason is not None:
            return f"{group} {place} {reason}"
    return None


@record
class Catalogue:
    """The atoms of one target, in order of preference."""

    contracts: tuple[AtomContract, ...] = ()

    def __post_init__(self) -> None:
        ids = [contract.id for contract in self.contracts]
        if len(set(ids)) != len(ids):
            raise InternalError("two contracts of one catalogue have the same id")

    def __iter__(self) -> Iterator[AtomContract]:
        return iter(self.contracts)

    def find(self, name: str) -> AtomContract | None:
        """The contract with this id, whatever its version."""
        return next((contract for contract in self.contracts if contract.id == name), None)
