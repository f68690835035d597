"""`tn.reduce`: the dims of a tile combined by a binary function.

In: a tile, the axes to combine, a reducer, a seed and a policy. Out: the IR value of one
`exec.reduce` whose states are the remaining dims as one tile (or a scalar when none remain): its
body projects the tile at the reduced coordinates and updates the states.
"""

from __future__ import annotations

from collections.abc import Callable

from tilenest.dialects import OrderingContract, Reduce, ReductionContract, Yield, law_of
from tilenest.errors import ArgumentTypeError, CaptureError, ShapeError, shown
from tilenest.ir import INDEX, Block, Region, Value, index, int32, int64
from tilenest.language.creation import iota
from tilenest.language.dtypes import Number
from tilenest.language.elementary import isnan, where
from tilenest.language.elements import check_domain, constant, dims_of, map_elements, required
from tilenest.language.nests import ReductionPolicy
from tilenest.language.positions import Position
from tilenest.language.reducers import Reducer, fmax, fmin, maximum, minimum
from tilenest.language.reindexing import broadcast_value, project_value
from tilenest.language.session import Session, current_session
from tilenest.language.values import Element, Scalar, Tile, as_tile, axes_of, operand_of, wrap
from tilenest.layouts import Dim
from tilenest.opaque import Opaque

Update = Callable[[Tile | Scalar, Tile | Scalar], object]
"""(states, contributions) -> next states, elementwise"""


def reduce(
    x: Tile,
    axis: object,
    reducer: Reducer | Update,
    init: Element | Number | None = None,
    policy: ReductionPolicy = ReductionPolicy.unordered_tree,
) -> Tile | Scalar:
    """`x` without `axis` (an axis, a position or a tuple of them; None: all), combined.

    The result keeps x's dtype and its other dims; it is a scalar when none remain. It starts from
    `init`, once: a number, a scalar or a tile that broadcasts over the remaining dims; without it
    from the reducer's result over nothing, which an empty axis gives. Under `fold_right`
    contributions are visited from the last to the first and stand on the left. `reducer` may be a
    Python function of (state, element); it then needs `init`, and a fold unless it combines as one
    of the known reducers does. Reducing over no axes gives x, combined with `init` if there is one.
    """
    _check_order(x, axis, reducer)
    session, x = current_session(), as_tile(x, "reduce")
    if not isinstance(policy, ReductionPolicy):
        raise CaptureError(
            f"{shown(policy)} is no reduction policy",
            remedy="use one of tn.reduction, as tn.reduction.fold_left",
        )
    reduced = axes_of(x, axis)
    kept = tuple(dim for dim in x.dims if dim not in reduced)
    seed = _seed(session, kept, x, reducer, init)
    if not reduced:
        return x if init is None else _next_state(session, reducer, policy, wrap(seed, session), x)
    return wrap(_reduction(session, x, reduced, seed, reducer, policy), session)


def _check_order(x: object, axis: object, reducer: object) -> None:
    """Refuse the arguments in another order, and what combines nothing."""
    if any(callable(given) and not isinstance(given, Opaque) for given in (x, axis)):
        raise ArgumentTypeError(
            "tn.reduce is given a function in front of the tile and its axis",
            remedy="the tile comes first, then the axis: tn.reduce(x, n, tn.maximum)",
        )
    if not callable(reducer) or isinstance(reducer, Opaque):
        raise ArgumentTypeError(
            f"tn.reduce combines by {shown(reducer)}",
            remedy="give it a reducer, as tn.maximum, or a function of two values and init=",
        )


_EXTREMES = {
    ("ascending", "first"): minimum,
    ("ascending", "last"): fmin,
    ("descending", "first"): maximum,
    ("descending", "last"): fmax,
}
"""What finds the first element of an order with NaN at this end of it."""


def select_position(x: Tile, dim: Dim, ordering: OrderingContract) -> Tile | Scalar:
    """The int64 position along `dim` of the element that comes first in the order."""
    session = current_session()
    nan = ordering.nan if x.dtype.is_float else "first"
    best = reduce(x, dim, _EXTREMES[ordering.order, nan])
    is_best = x == best
    if x.dtype.is_float:
        # A NaN equals nothing. Where they come last, one is the best where all are.
        is_best = is_best | isnan(x if nan == "first" else best)
    # Positions fit 32 bits but for the longest axes, and twice as many lanes hold them.
    positions = iota(dim, int32 if dim.extent < 1 << 31 else int64)
    reducer, behind = (minimum, dim.extent) if ordering.ties == "first" else (maximum, -1)
    candidates = as_tile(where(is_best, positions, behind), "select_position")
    kept = tuple(other for other in x.dims if other is not dim)
    seed = _seed(session, kept, candidates, reducer, None)
    policy = ReductionPolicy.unordered_tree
    found = _reduction(session, candidates, (dim,), seed, reducer, policy, ordering)
    return wrap(found, session).cast(int64)


def _seed(
    session: Session,
    kept: tuple[Dim, ...],
    x: Tile,
    reducer: Reducer | Update,
    init: Element | Number | None,
) -> Value:
    """The states before the first contribution."""
    if init is None:
        if not isinstance(reducer, Reducer):
            raise CaptureError(
                "tn.reduce gets a function of its own without init=",
                remedy="say what the result over nothing is, as init=0.0",
            )
        check_domain(reducer.function, x.dtype)
        init = reducer.over_nothing(x.dtype)
    value = required(session, operand_of(session, init), x.dtype, "init= of tn.reduce")
    if kept == dims_of(value):
        return value
    if dims_of(value):
        return broadcast_value(session, value, kept)
    return map_elements(session, x.dtype, kept, [value], lambda _, each: each[0])


def _reduction(
    session: Session,
    x: Tile,
    reduced: tuple[Dim, ...],
    seed: Value,
    reducer: Reducer | Update,
    policy: ReductionPolicy,
    ordering: OrderingContract | None = None,
) -> Value:
    body = Block([*(INDEX for _ in reduced), seed.type])
    operation = Reduce(
        result_types=[seed.type],
        regions=[Region([body])],
        lower=[constant(session, 0, index) for _ in reduced],
        upper=[constant(session, dim.extent, index) for dim in reduced],
        step=[constant(session, 1, index) for _ in reduced],
        initial=[seed],
        contract=_contract(reducer, x, policy),
        ordering=ordering,
    )
    tile = session.value_of(x)
    session.insert(operation)
    with session.builder.at_end(body):
        place: dict[Dim, Position] = dict(zip(reduced, body.arguments, strict=False))
        element = wrap(project_value(session, tile, place), session)
        state = wrap(body.arguments[-1], session)
        following = _next_state(session, reducer, policy, state, element)
        session.insert(Yield(values=[session.value_of(following)]))
    return operation.result


def _contract(reducer: Reducer | Update, x: Tile, policy: ReductionPolicy) -> ReductionContract:
    """A reducer knows its law; a function of the user's is looked at once it is captured."""
    if not isinstance(reducer, Reducer):
        return ReductionContract(policy.value)
    is_reversed = policy is ReductionPolicy.fold_right
    return ReductionContract(
        policy.value,
        laws=(law_of(reducer.function, x.dtype),),
        orientation="element_first" if is_reversed else "state_first",
        provenance="builtin",
    )


def _next_state(
    session: Session,
    reducer: Reducer | Update,
    policy: ReductionPolicy,
    state: Tile | Scalar,
    element: Tile | Scalar,
) -> Tile | Scalar:
    """One contribution combined into the states, which keep their type."""
    if not isinstance(reducer, Reducer):
        result = session.inline(reducer, (state, element), "tn.reduce")
    elif policy is ReductionPolicy.fold_right:
        result = reducer(element, state)
    else:
        result = reducer(state, element)
    value = required(session, operand_of(session, result), state.dtype, "the next state")
    if dims_of(value) == state.dims:
        return wrap(value, session)
    if state.dims:
        return wrap(broadcast_value(session, value, state.dims), session)
    raise ShapeError(
        f"the reduction's state is a scalar, its next state a tile of shape {result.shape}",
        remedy="return a value with the dims of the state",
    )
