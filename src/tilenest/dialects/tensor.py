"""Whole-domain work: `tensor.map_reduce_post`, and the compiler's buffers.

The op stands on values before bufferization and on destinations after. It carries the domain, how
each operand is addressed and, once planned, the schedule of its loops; nests are built from it.
"""

from __future__ import annotations

from tilenest.dialects.schedule import Access, ResultSpec, Sched
from tilenest.ir import Block, Operation, attribute, operand, variadic


class MapReducePost(Operation):
    """Computes results over one domain of loops: map, fold, then an epilogue per folded cell.

        domain   static `extents` of loop dims d0..dn; `upper` clips dim `clipped[i]` at a run-time
                 bound
        inputs   views, bufs (tiles before bufferization) or scalars, read at
                 `input_access[i].map(d; symbols)`
        fold     region 0: (n indices, one element per input, one state per folded result)
                           -> one value per result, then one bool per masked result
        seeds    one per folded result, read at `seed_access`: its state before the first
                 contribution
        post     region 1+j for the j-th folded result:
                           (n indices, final state, its `posts` elements) -> stored value
        outputs  destinations, one per result, written at `output_access[j].map(d; symbols)`; none
                 on values, where the op has results instead (tile, or scalar when nothing is kept)

    A pointwise result's region value is stored directly. A folded result whose folded extents are 0
    is post(seed). Contributions of one cell are visited in lexicographic order of the folded dims;
    only a tree policy with a proven `merge` lets a schedule regroup them. Reads of a cell precede
    its write, so an output may be an input or a seed when both use the same map. Accesses of
    `symbols` are index values; all maps share one symbol list.
    """

    NAME = "tensor.map_reduce_post"
    inputs = variadic()
    seeds = variadic()
    posts = variadic()
    outputs = variadic()
    symbols = variadic()
    upper = variadic()
    extents = attribute(tuple)
    clipped = attribute(tuple, default=())
    """loop dims that `upper` clips, in order"""
    input_access = attribute(tuple)
    seed_access = attribute(tuple, default=())
    post_access = attribute(tuple, default=())
    output_access = attribute(tuple, default=())
    specs = attribute(tuple)
    """one ResultSpec per result"""
    sched = attribute(object, default=None)
    """Sched once planned"""

    @property
    def rank(self) -> int:
        return len(self.extents)

    @property
    def folded_results(self) -> list[int]:
        """Indices of the results that have a state."""
        return [i for i, spec in enumerate(self.specs) if spec.policy is not None]

    @property
    def fold_block(self) -> Block:
        return self.regions[0].block

    def post_block(self, folded: int) -> Block:
        """Epilogue of the folded-th folded result."""
        return self.regions[1 + folded].block

    def spec(self, result: int) -> ResultSpec:
        spec: ResultSpec = self.specs[result]
        return spec

    def schedule(self) -> Sched:
        assert isinstance(self.sched, Sched), "not scheduled"
        return self.sched

    def access(self, group: str, position: int) -> Access:
        """Access of operand `position` of 'input', 'seed', 'post' or 'output'."""
        access: Access = self.attributes[f"{group}_access"][position]
        return access


class Alloc(Operation):
    """A temporary of the compiler (a BufType), uninitialised, alive in the block that holds it."""

    NAME = "buf.alloc"


class Read(Operation):
    """The only element of a rank-0 buf, as a scalar for control flow and index arithmetic."""

    NAME = "buf.read"
    buffer = operand()
