"""Where operations say they run, after the levels around them changed.

In: the operations of a chain that say so, and the proofs of a remap. Out: for each of them the new
depths, and its active set over the new coordinates. A depth below the chain moves with what stands
around it. Levels of one instance that go, and levels that come around, change no more than depths.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilenest.analysis import ExecChain, Placed, enclosing_nests
from tilenest.dialects import Nest, Placement
from tilenest.errors import RemapError
from tilenest.execution import ExecRemap, RemapProof
from tilenest.ir import Operation, Rewriter
from tilenest.layouts import AffineMap, Const, DimRef, IndexExpr
from tilenest.records import record


@record
class Replacing:
    """A chain, a remap of it that is proven, and how deep the inside of each kept nest is now."""

    chain: ExecChain
    remap: ExecRemap
    proofs: Sequence[RemapProof]
    depths: Mapping[int, int]

    def placement(self, placed: Placed) -> Placement:
        """Where an operation runs now."""
        stated = placed.stated
        anchor = self._depth(placed, stated.anchor, "anchor")
        frontier = self._depth(placed, stated.frontier, "frontier")
        active = stated.active
        return Placement(
            anchor, frontier, None if active is None else self._active(placed, active, frontier)
        )

    def _depth(self, placed: Placed, depth: int, kind: str) -> int:
        if placed.cut_of(depth) is None:
            return depth if depth < placed.outside else depth + self._shift(placed)
        for proof in self.proofs:
            observer = proof.observer
            if observer is not None and (observer.name, observer.kind) == (placed.name, kind):
                return placed.outside + proof.new_cut.depth
        raise AssertionError(f"{placed.name} does not observe the chain")

    def _shift(self, placed: Placed) -> int:
        """How many more levels of the chain are around an operation now."""
        nest = self.chain.starts.index(placed.inside) - 1
        kept = min(place for place in self.depths if place >= nest)
        return self.depths[kept] - placed.inside

    def _active(self, placed: Placed, active: AffineMap, frontier: int) -> AffineMap:
        """The same points, over the new coordinates above the frontier."""
        outside, inside = placed.outside, placed.inside
        new = [
            DimRef(outside + place) if outside + place < frontier else Const(0)
            for place in range(self.remap.new.depth)
        ]
        results = self.remap.formula.results[:inside]
        if any(result.sym_mask for result in results):
            raise RemapError(
                f"the active set of {placed.operation.NAME} depends on extents known at run time",
                remedy="give the extents as numbers, or leave the active set open",
                location=placed.operation.location,
            )
        dims: list[IndexExpr] = [DimRef(place) for place in range(outside)]
        dims += [result.substitute(new, ()) for result in results]
        below = active.n_dims - len(dims)
        dims += [DimRef(frontier - below + place) for place in range(below)]
        return active.with_dims(dims[: active.n_dims], frontier)


def leave_levels(nest: Nest, rewriter: Rewriter) -> None:
    """Count depths inside a nest of one instance without its levels, since it is about to go."""
    first = _depth(nest)
    for op, stated in _stated_in(nest):
        rewriter.set_attribute(op, "place", stated.without_levels(first, nest.rank))


def enter_levels(copy: Operation, rewriter: Rewriter) -> None:
    """Count depths in what came from another function with the levels that are around it here."""
    depth = _depth(copy)
    for op, stated in _stated_in(copy) if depth else ():
        rewriter.set_attribute(op, "place", stated.below_levels(depth))


def _depth(op: Operation) -> int:
    return sum(nest.rank for nest in enclosing_nests(op))


def _stated_in(holder: Operation) -> Iterator[tuple[Operation, Placement]]:
    for op in holder.walk():
        stated = op.attributes.get("place")
        if isinstance(stated, Placement):
            yield op, stated
