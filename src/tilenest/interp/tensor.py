"""The meaning of tensor work: map_reduce_post on values and on destinations, temporaries.

In: operands as arrays or storage. Out: tiles, or written destinations. Every array here has one
axis per loop dim (extent 1 where it does not vary). All operands are read before anything is
written; folded dims are walked point by point in order, the rest is one NumPy evaluation, and what
does not depend on a state is evaluated once for the whole domain. Where no output keeps a point its
inputs need not be inside, since the work does not run there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tilenest.analysis import output_clips
from tilenest.dialects import Access, Alloc, MapReducePost, Read
from tilenest.errors import InternalError, OutOfBounds
from tilenest.interp.frame import Frame, Handler, as_array
from tilenest.interp.index_maps import coordinates, inside, open_grid, read_at, write_at
from tilenest.interp.scalar import number
from tilenest.interp.values import Array, RuntimeValue, Storage, poison, shape_of
from tilenest.ir import BufType, Operation, Value, element_dtype
from tilenest.layouts import AffineMap, DimRef
from tilenest.records import record

Slices = tuple[slice, ...]

WHOLE_DOMAIN_LIMIT = 1 << 24
"""Points of a domain up to which intermediate values are kept for all of it at once."""
EVERYWHERE = np.ones((), np.bool_)


@record
class Work:
    """One execution: the op, its extents after clipping, its symbols."""

    frame: Frame
    op: MapReducePost
    extents: tuple[int, ...]
    symbols: tuple[int, ...]

    def kept_extents(self, result: int) -> list[int]:
        """The extents over the dims a result keeps, 1 elsewhere."""
        kept = self.op.spec(result).dims
        return [extent if dim in kept else 1 for dim, extent in enumerate(self.extents)]

    def grid(self, result: int) -> list[Array]:
        """Coordinates over what the result keeps; folded dims stand at 0."""
        return open_grid(self.kept_extents(result))

    @property
    def walked(self) -> list[int]:
        """The dims some result folds."""
        specs = [self.op.spec(result) for result in self.op.folded_results]
        return [dim for dim in range(self.op.rank) if any(dim not in spec.dims for spec in specs)]

    def walk(self) -> Iterator[Slices]:
        """Parts of the domain, one per point of the walked dims, in the order of the policies."""
        policies = {self.op.spec(result).policy for result in self.op.folded_results}
        points = itertools.product(*(range(self.extents[dim]) for dim in self.walked))
        ordered: Iterable[tuple[int, ...]]
        if "fold_right" not in policies:
            ordered = points
        elif policies <= {"fold_right", "unordered_tree"}:
            ordered = list(points)[::-1]
        else:
            raise InternalError("one traversal cannot visit its domain in both directions")
        walked = self.walked
        for point in ordered:
            at = dict(zip(walked, point, strict=True))
            yield tuple(
                slice(at[dim], at[dim] + 1) if dim in at else slice(None)
                for dim in range(self.op.rank)
            )

    @property
    def kept(self) -> Array:
        """Where the clip of the output keeps a point, broadcastable over the domain."""
        grid, kept = open_grid(self.extents), np.ones((1,) * self.op.rank, np.bool_)
        for clip in output_clips(self.op):
            at = AffineMap(self.op.rank, len(self.symbols), (DimRef(clip.dim) + clip.offset,))
            extent = self.frame.storage(self.op.outputs[0]).array.shape[clip.axis]
            kept = kept & inside(coordinates(at, grid, self.symbols), (extent,), self.op.rank)
        return kept

    def read_inputs(self) -> list[Array]:
        """The elements that the fold region takes."""
        grid, kept = open_grid(self.extents), self.kept
        return [
            self.read(value, self.op.access("input", place), grid, kept)
            for place, value in enumerate(self.op.inputs)
        ]

    def read(
        self, value: Value, access: Access, grid: Sequence[Array], asked: Array = EVERYWHERE
    ) -> Array:
        """An operand's elements over the grid, the fill where nobody asks for what is outside."""
        held = self.frame.values[value]
        array = held.array if isinstance(held, Storage) else self.frame.array(value)
        places = coordinates(access.map, grid, self.symbols)
        valid = inside(places, array.shape, self.op.rank)
        if _has_points(grid):
            _refuse_outside(held, access, places, ~valid & asked)
        fill = number(access.fill, element_dtype(value.type))
        return np.asarray(read_at(array, places, valid, fill))


def map_reduce_post(frame: Frame, op: MapReducePost) -> list[Array]:
    extents = list(op.extents)
    for dim, bound in zip(op.clipped, frame.integers(op.upper), strict=True):
        extents[dim] = max(0, min(extents[dim], bound))
    work = Work(frame, op, tuple(extents), tuple(frame.integers(op.symbols)))
    folded = op.folded_results
    states = [_seed(work, place) for place in range(len(folded))]
    posts = _read_posts(work)
    direct, masks = _fold(work, states)
    finals = {
        result: _post(work, place, states[place], posts[place])
        for place, result in enumerate(folded)
    }
    values = [finals.get(result, direct.get(result)) for result in range(len(op.specs))]
    complete = [value for value in values if value is not None]
    assert len(complete) == len(op.specs)
    if not op.outputs:
        return [_as_result(work, j, value, masks.get(j)) for j, value in enumerate(complete)]
    for result, value in enumerate(complete):
        _write(work, result, value, masks.get(result))
    return []


def _seed(work: Work, place: int) -> Array:
    result = work.op.folded_results[place]
    access = work.op.access("seed", place)
    first = work.read(work.op.seeds[place], access, work.grid(result))
    return np.array(np.broadcast_to(first, work.kept_extents(result)))


def _read_posts(work: Work) -> list[list[Array]]:
    """Per folded result the elements its epilogue takes."""
    groups = []
    operands = iter(enumerate(work.op.posts))
    for result in work.op.folded_results:
        taken = itertools.islice(operands, work.op.spec(result).posts)
        grid = work.grid(result)
        groups.append([work.read(value, work.op.access("post", i), grid) for i, value in taken])
    return groups


def _fold(work: Work, states: list[Array]) -> tuple[dict[int, Array], dict[int, Array]]:
    """Run the fold region over the domain, updating the states in place; the values and the masks
    of the pointwise results."""
    specs = work.op.specs
    folded = work.op.folded_results
    yields = work.op.fold_block.operations.last
    assert yields is not None
    outcome = {
        slot: poison(element_dtype(value.type), work.extents)
        for slot, value in enumerate(yields.operands)
        if slot not in folded
    }
    for where, values in _evaluate_fold(work, states):
        for slot, value in enumerate(values):
            if slot in outcome:
                outcome[slot][where] = value
            else:
                _part(states[folded.index(slot)], where)[...] = value
    masked = [result for result, spec in enumerate(specs) if spec.is_masked]
    masks = {result: outcome[len(specs) + place] for place, result in enumerate(masked)}
    return {slot: value for slot, value in outcome.items() if slot < len(specs)}, masks


def _evaluate_fold(work: Work, states: list[Array]) -> Iterator[tuple[Slices, list[Array]]]:
    """Per walked point: the slices of the domain it covers, and what the region yields there."""
    op, frame = work.op, work.frame
    block = op.fold_block
    state_arguments = block.arguments[op.rank + len(op.inputs) :]
    arguments = [*open_grid(work.extents), *work.read_inputs()]
    frame.values.update(zip(block.arguments, arguments, strict=False))
    dependent = _run_independent(work, state_arguments)
    used = {value for dependent_op in dependent for value in dependent_op.operands}
    varying = {
        value: array
        for value in used - set(state_arguments)
        if isinstance(array := frame.values.get(value), np.ndarray) and array.ndim == op.rank
    }
    for where in work.walk():
        frame.values.update((value, _part(array, where)) for value, array in varying.items())
        # Copies, because a region may hand one state's array to another.
        frame.values.update(
            (argument, _part(state, where).copy())
            for argument, state in zip(state_arguments, states, strict=True)
        )
        with frame.lifting():
            values = [as_array(value) for value in frame.run_operations(dependent)]
        yield where, values


def _run_independent(work: Work, states: Sequence[Value]) -> list[Operation]:
    """Run what no state reaches, once for the whole domain; the other operations."""
    operations = list(work.op.fold_block.operations)
    if math.prod(work.extents) > WHOLE_DOMAIN_LIMIT:
        return operations
    pending: set[Value] = set(states)
    dependent = []
    with work.frame.lifting():
        for op in operations:
            if op.TERMINATOR or op.regions or not pending.isdisjoint(op.operands):
                dependent.append(op)
                pending.update(op.results)
            else:
                work.frame.step(op)
    return dependent


def _part(array: Array, where: Slices) -> Array:
    """The slices of the domain of an array that may not vary along an axis."""
    slices = zip(where, array.shape, strict=True)
    return _view(array, [slice(None) if extent == 1 else part for part, extent in slices])


def _view(array: Array, slices: Sequence[slice]) -> Array:
    """Basic indexing that gives an array even at rank 0."""
    key: tuple[Any, ...] = (..., *slices)
    return np.asarray(array[key])


def _post(work: Work, place: int, state: Array, elements: list[Array]) -> Array:
    result = work.op.folded_results[place]
    block = work.op.post_block(place)
    (value,) = work.frame.run_lifted(block, [*work.grid(result), state, *elements])
    return np.broadcast_to(value, work.kept_extents(result))


def _as_result(work: Work, result: int, value: Array, mask: Array | None) -> Array:
    """A value over the loop dims as the result's tile; what was not visited is poison."""
    type_ = work.op.results[result].type
    kept = work.op.spec(result).dims
    stored = poison(element_dtype(type_), shape_of(type_))
    folded = tuple(dim for dim in range(work.op.rank) if dim not in kept)
    visited = _view(stored, [slice(work.extents[dim]) for dim in kept])
    order = [sorted(kept).index(dim) for dim in kept]
    chosen = True if mask is None else mask.transpose(order)
    np.copyto(visited, value.squeeze(folded).transpose(order), where=chosen)
    return stored


def _write(work: Work, result: int, value: Array, mask: Array | None) -> None:
    access = work.op.access("output", result)
    storage = work.frame.storage(work.op.outputs[result])
    if storage.array.dtype != value.dtype:
        raise InternalError(f"{value.dtype} is written to {storage.name} of {storage.array.dtype}")
    grid = work.grid(result)
    places = coordinates(access.map, grid, work.symbols)
    valid = inside(places, storage.array.shape, work.op.rank)
    wanted = EVERYWHERE if mask is None else mask
    if _has_points(grid):
        _refuse_outside(storage, access, places, ~valid & wanted)
    write_at(storage.array, places, valid & wanted, value)


def _has_points(grid: Sequence[Array]) -> bool:
    return all(axis.size for axis in grid)


def _refuse_outside(
    held: RuntimeValue, access: Access, places: Sequence[Array], outside: Array
) -> None:
    """Raise where an element that is asked for lies outside and the access does not allow it."""
    shape = np.broadcast_shapes(outside.shape, *(place.shape for place in places))
    if access.bounds == "zero" or not np.broadcast_to(outside, shape).any():
        return
    first = tuple(np.argwhere(np.broadcast_to(outside, shape))[0])
    place = tuple(int(np.broadcast_to(axis, shape)[first]) for axis in places)
    name = held.name if isinstance(held, Storage) else "a value"
    text = f'an access of {name} at index {place} lies outside (bounds="{access.bounds}")'
    if access.bounds == "proven":
        raise InternalError(text)
    raise OutOfBounds(text, remedy='keep the access inside, mask it, or use bounds="zero"')


def allocate(_: Frame, op: Alloc) -> list[Storage]:
    type_ = op.result.type
    assert isinstance(type_, BufType)
    return [Storage(poison(type_.dtype, type_.shape), "a buffer")]


def read_scalar(frame: Frame, op: Read) -> list[Array]:
    return [frame.storage(op.buffer).array.copy()]


HANDLERS: dict[type[Operation], Handler] = {
    MapReducePost: map_reduce_post,
    Alloc: allocate,
    Read: read_scalar,
}
