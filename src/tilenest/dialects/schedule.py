"""Schedules and access records of map_reduce_post, as immutable attributes.

A `Sched` is an ordered list of loops over the op's domain, outermost first. A dim may occur several
times: an occurrence covers `step` points an iteration and runs inside the tile of the previous
occurrence (first: the whole extent); the last one has step 1, or `lanes` when its policy is
'vector'. Loops over kept dims placed inside the first folded loop hold their accumulators in
registers and are unrolled; a vector loop over a folded dim keeps one partial accumulator a lane and
copy, combined by a fixed tree at the end. Where elements change or meet
across lanes, the schedule names the atoms that do it.
"""

from __future__ import annotations

from tilenest.dialects.contracts import ReductionContract, StateLaw
from tilenest.layouts import AffineMap
from tilenest.records import record


@record
class Access:
    """How one operand is addressed: `map` from (loop dims; symbols) to its coordinates (empty for a
    scalar). `bounds`: 'proven' (inside wherever the work runs), 'zero' (outside reads give `fill`,
    outside writes are dropped), 'assume' (the user promised). Work runs over all of its extents;
    its inputs are only read where the clip of the output keeps a point."""

    map: AffineMap
    bounds: str = "proven"
    fill: bool | int | float = 0


@record
class ResultSpec:
    """One result over the common domain.

    `dims`: the loop dims it keeps, in the order of the result's own axes; all others are folded.
    `contract` is None for a pointwise result, which keeps every loop dim, and says of a folded one
    how its contributions may be regrouped. `is_masked` adds one bool to the fold region's yields:
    the element is stored only where it is true (pointwise results only). `posts` is how many of the
    op's `posts` operands feed its epilogue.
    """

    dims: tuple[int, ...]
    contract: ReductionContract | None = None
    is_masked: bool = False
    posts: int = 0

    @property
    def policy(self) -> str | None:
        """What regrouping a fold permits."""
        return None if self.contract is None else self.contract.policy

    @property
    def law(self) -> StateLaw:
        """How partial states of a fold meet."""
        laws = () if self.contract is None else self.contract.laws
        return laws[0] if laws else StateLaw()

    @property
    def merge(self) -> str | None:
        """The function they meet by, None where only a chain is known."""
        return self.law.merge


LOOP_POLICIES = ("plain", "vector", "unrolled", "transposed")


@record
class Loop:
    """One loop of a schedule: `step` points of `dim` an iteration."""

    dim: int
    step: int
    policy: str = "plain"


@record
class AtomChoice:
    """An entry of the catalogue that was proven for a step of the nest."""

    atom: str
    version: int = 1


@record
class Sched:
    """The nest of one map_reduce_post and the name of the preset it came from."""

    loops: tuple[Loop, ...]
    preset: str = "classic"
    atoms: tuple[AtomChoice, ...] = ()
    """one for each step that the loops leave to an atom: a square, or a fold along lanes for each
    folded result in turn"""

    @property
    def blocks(self) -> dict[int, int]:
        """For each dim that copies further inside step through, how many points they share."""
        first: dict[int, int] = {}
        found: dict[int, int] = {}
        for loop in self.loops:
            if loop.dim in first and loop.policy != "plain":
                found[loop.dim] = first[loop.dim]
            first.setdefault(loop.dim, loop.step)
        return found
