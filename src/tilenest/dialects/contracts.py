"""Contracts: what a reduction or an ordering promises, as immutable attributes.

In: nothing. Out: records that capture writes once, and that passes, the plan and targets read; none
may grant itself more. A contract holds what the operation does not say already: the contributions
and their source order are the domain of the nest in lexicographic order, the seeds are its initial
values, types are those of the states. The grouping is every contribution to every cell of a state
for `exec.reduce`, and the projection to the kept `dims` for a result of map_reduce_post.
"""

from __future__ import annotations

import math

from tilenest.ir import DType, ScalarType
from tilenest.layouts import AffineMap
from tilenest.records import record

_SELECTING = frozenset({"minimum", "maximum", "fmin", "fmax"})
MERGES = _SELECTING | {"add", "mul", "and", "or", "xor"}
"""The scalar functions that partial states may meet by; all are associative and commutative, but
for the rounding of floats. The function says what a NaN among the contributions does: to `fmin` and
`fmax` it is as good as none, by the others it shows."""
REDUCTION_POLICIES = ("unordered_tree", "ordered_tree", "fold_left", "fold_right")
TREE_POLICIES = ("unordered_tree", "ordered_tree")
"""The policies under which contributions may meet before they meet the seed."""
ORIENTATIONS = ("state_first", "element_first")
PROVENANCES = ("builtin", "derived", "trusted")


@record
class StateLaw:
    """How partial values of one state meet."""

    merge: str | None = None
    """a function of `MERGES`; or `@name`, a function of the module from all states of the left part
    and then of the right part to all states; None where only a chain is known"""
    identity: bool | int | float | None = None
    """What a partial value starts from; None: the number that `merge` has for the type, or the lift
    of the first contribution."""
    is_exact: bool = False
    """Every grouping gives the same number, so none needs permission. Scalar functions commute, so
    that no order does either; of another function nobody knows."""


@record
class ReductionContract:
    """What regrouping a reduction permits, and what makes it possible.

    `policy` is a permission, never a wish: unordered_tree (regroup and permute), ordered_tree
    (regroup), fold_left, fold_right (a chain; the latter visits the domain in reverse).
    """

    policy: str = "unordered_tree"
    laws: tuple[StateLaw, ...] = ()
    """one a state; none where nobody resolved them"""
    orientation: str = "state_first"
    """on which side of the update, and so of `merge`, what came before stands"""
    provenance: str = "derived"
    """Who vouches for the laws: `builtin` reducers and `derived` ones are proven from the body,
    `trusted` ones are the user's word."""

    @property
    def is_tree(self) -> bool:
        return self.policy in TREE_POLICIES

    @property
    def functions(self) -> frozenset[str]:
        """The names of functions of the module that states meet by; one, if the laws are sound."""
        merges = (law.merge or "" for law in self.laws)
        return frozenset(merge[1:] for merge in merges if merge.startswith("@"))


def contract_of(policy: str, *merges: str | None) -> ReductionContract:
    """The contract of states that merge by these functions, derived and nothing more."""
    return ReductionContract(policy, tuple(StateLaw(merge) for merge in merges))


def law_of(merge: str | None, dtype: DType) -> StateLaw:
    """What is known of a state of this type that merges by a scalar function."""
    is_selecting = merge in _SELECTING
    is_exact = merge is not None and (is_selecting or not dtype.is_float)
    return StateLaw(merge, is_exact=is_exact)


def identity_of(merge: str, dtype: DType) -> bool | int | float:
    """The number that leaves every element unchanged under a scalar function."""
    if dtype.is_bool:
        return merge in ("and", "minimum", "mul")
    if merge == "add":
        return -0.0 if dtype.is_float else 0
    if merge == "mul":
        return 1.0 if dtype.is_float else 1
    if merge in ("fmin", "fmax"):
        return math.nan
    if merge in ("or", "xor"):
        return 0
    if dtype.is_float:
        return math.inf if merge == "minimum" else -math.inf
    low = -(1 << (dtype.bits - 1)) if dtype.is_signed else 0
    high = (1 << (dtype.bits - 1)) - 1 if dtype.is_signed else (1 << dtype.bits) - 1
    if merge == "and":
        return -1 if dtype.is_signed else high
    return high if merge == "minimum" else low


ORDERS = ("ascending", "descending", "source")
TIES = ("first", "last", "any")
ENDS = ("first", "last", "unordered")
PADDINGS = ("none", "last")


@record
class OrderingContract:
    """How a sort, a selection or a scan orders the elements along one axis.

    -0 and +0 are equal. A scan keeps the `source` order, and `reduction` says how it combines.
    """

    element: ScalarType
    """of the values that are ordered"""
    order: str = "ascending"
    axis: int = 0
    """the dim of the elements along which they are ordered"""
    ties: str = "first"
    """Which of equal elements comes first: the one of the lowest position, of the highest, or any.
    """
    nan: str = "last"
    """The end at which NaN stand, in either order; `unordered` where nobody said."""
    padding: str = "none"
    """Where positions that a mask leaves out stand: `last`, behind everything; `none` where every
    position counts."""
    selected: int | None = None
    """how many elements, from the first, are asked for; None: all"""
    permutation: AffineMap | None = None
    """from places in the result to positions in the source, where it does not depend on values"""
    reduction: ReductionContract | None = None
