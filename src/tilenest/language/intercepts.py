"""What Python's `range`, `min`, `max` and `abs` mean when run-time scalars take part.

In: the arguments of the builtin. Out: what the builtin gives for host values, and staged values or
the axis of a loop otherwise. Capture calls these in place of the builtins; `cdiv` is the same idea
for the division that counts blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tilenest.errors import CaptureError, DomainError, DTypeError, ShapeError, shown
from tilenest.language.nests import DomainAxis, range_axis
from tilenest.language.positions import host_int, index_values, position_of
from tilenest.language.session import current_session
from tilenest.language.values import Element, Scalar, Tile, elementwise


def range_(*arguments: Any) -> range | DomainAxis:
    """`range(...)`; with a run-time scalar among its arguments, the axis of a staged loop."""
    if not any(isinstance(item, Element) for item in arguments):
        try:
            return range(*arguments)
        except (TypeError, ValueError) as error:
            kind = DTypeError if isinstance(error, TypeError) else ShapeError
            raise kind(
                f"range({', '.join(map(shown, arguments))}): {error}",
                remedy="use ints and integer scalars, and a step other than 0",
            ) from error
    match arguments:
        case (upper,):
            return range_axis(0, upper, 1)
        case (lower, upper):
            return range_axis(lower, upper, 1)
        case (lower, upper, step):
            return range_axis(lower, upper, step)
    raise CaptureError(
        f"range gets {len(arguments)} arguments", remedy="write range(start, stop, step)"
    )


def min_(*arguments: Any, **keywords: Any) -> Any:
    """`min(...)`; with a tile or scalar among the items, `tn.minimum` of them from the left."""
    return _extreme(min, "minimum", arguments, keywords)


def max_(*arguments: Any, **keywords: Any) -> Any:
    """`max(...)`; with a tile or scalar among the items, `tn.maximum` of them from the left."""
    return _extreme(max, "maximum", arguments, keywords)


def abs_(x: Any) -> Any:
    """`abs(x)`, staged for a tile or scalar."""
    return abs(x)


def cdiv(a: int | Scalar, b: int | Scalar) -> int | Scalar:
    """The least number of blocks of `b` that cover `a`: a host int for ints, else an index.

    A host `b` of 0 is a DomainError; a run-time one gives 0. It is -(-a // b), in index arithmetic:
    for the least run-time `a` of 64 bits that wraps.
    """
    numbers = host_int(a), host_int(b)
    if numbers[1] == 0:
        raise DomainError("tn.cdiv by 0", remedy="give a block extent of at least 1")
    if numbers[0] is not None and numbers[1] is not None:
        return -(-numbers[0] // numbers[1])
    session = current_session()
    blocks, extent = (
        Scalar(value, session)
        for value in index_values(session, [position_of(session, item) for item in (a, b)])
    )
    counted = -(-blocks // extent)
    assert isinstance(counted, Scalar)
    return counted


def _extreme(
    builtin: Callable[..., Any], name: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    is_one_iterable = len(arguments) == 1 and isinstance(arguments[0], Iterable)
    is_value = is_one_iterable and isinstance(arguments[0], Tile | Scalar)
    items = list(arguments[0]) if is_one_iterable and not is_value else list(arguments)
    if not any(isinstance(item, Element) for item in items):
        return builtin(items, **keywords) if is_one_iterable else builtin(*items, **keywords)
    if keywords or len(items) < 2:
        raise CaptureError(
            f"{builtin.__name__} of run-time values takes two or more of them and no keywords",
            remedy=f"use tn.{name}(a, b), or tn.{builtin.__name__}(tile, axis) over a tile's axis",
        )
    result = items[0]
    for item in items[1:]:
        result = elementwise(name, result, item)
    return result
