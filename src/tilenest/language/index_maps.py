"""Index maps: which element of one space each point of another is.

In: two shapes and a Python function of coordinates, or a shape and its strides. Out: an `IndexMap`,
a frozen formula with its run-time symbols, for views (`A.remap(map)`) and for the storage of a
memory (`tn.memory(dtype, layout)`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilenest.dialects import views
from tilenest.errors import CaptureError, RankError, ShapeError, shown
from tilenest.ir import Value
from tilenest.language.moves import Coordinate
from tilenest.language.positions import host_int, position_of
from tilenest.language.reindexing import Symbols
from tilenest.language.session import Session, current_session
from tilenest.layouts import AffineMap, Const, Dim, DimRef, IndexExpr
from tilenest.opaque import Opaque
from tilenest.records import record


@record(eq=False)
class IndexMap(Opaque):
    """Point d of `domain` is the element at `map(d; symbols)` of `codomain`."""

    domain: tuple[int | Dim | Value, ...]
    codomain: tuple[views.Size, ...]
    map: AffineMap
    symbols: tuple[Value, ...]
    session: Session

    @property
    def sizes(self) -> tuple[views.Size, ...]:
        """The extents of the domain."""
        return tuple(item.extent if isinstance(item, Dim) else item for item in self.domain)

    def _misuse(self) -> CaptureError:
        return CaptureError(
            "an index map is used as a value", remedy="give it to A.remap or to tn.memory"
        )


def index_map(domain: object, codomain: object, function: Callable[..., object]) -> IndexMap:
    """The map that takes (i, j, ...) of `domain` to `function(i, j, ...)` in `codomain`.

    Both are shapes; the function gives one coordinate per dimension of the codomain (a tuple; bare
    for one), computed with + - * // % from its arguments, ints and run-time scalars. Coordinates
    are exact: what may leave 64 bits is refused. Sizes that only run time knows and that the
    function multiplies are taken as those of one space, with fewer than 2**60 elements.
    """
    session = current_session()
    source, target = _items(session, domain), _items(session, codomain)
    symbols = Symbols()
    places = tuple(Coordinate(session, symbols, DimRef(axis)) for axis in range(len(source)))
    given = session.inline(function, places, "tn.index_map")
    results = given if isinstance(given, tuple | list) else (given,)
    if len(results) != len(target):
        raise RankError(
            f"the function of tn.index_map gives {len(results)} coordinates for {len(target)} dims",
            remedy="return one coordinate per dim of the codomain",
        )
    reader = Coordinate(session, symbols, Const(0))
    formulas = tuple(reader.formula(item) for item in results)
    map_ = AffineMap(len(source), len(symbols.values), formulas)
    sizes = tuple(item.extent if isinstance(item, Dim) else item for item in target)
    return IndexMap(source, sizes, map_, tuple(symbols.values), session)


def layout(shape: object, stride: object) -> IndexMap:
    """The storage in which neighbours along axis i of `shape` lie `stride[i]` elements apart.

    It is as long as it has to be: what no element uses is padding.
    """
    session = current_session()
    source = _items(session, shape)
    steps = [_step(item) for item in _tuple(stride)]
    if len(steps) != len(source):
        raise RankError(
            f"tn.layout gets {len(steps)} strides for {len(source)} axes",
            remedy="give one stride per axis, in elements",
        )
    extents = [item.extent if isinstance(item, Dim) else item for item in source]
    if any(isinstance(extent, Value) for extent in extents):
        raise ShapeError(
            "an extent of tn.layout is known only at run time",
            remedy="use ints and axes: storage has a fixed size",
        )
    counts = [extent for extent in extents if isinstance(extent, int)]
    place: IndexExpr = Const(0)
    for axis, step in enumerate(steps):
        place = place + DimRef(axis) * step
    last = sum(step * (count - 1) for step, count in zip(steps, counts, strict=True))
    length = 0 if 0 in counts else last + 1
    return IndexMap(source, (length,), AffineMap(len(source), 0, (place,)), (), session)


def size_of(session: Session, item: object) -> views.Size:
    """One extent: a host int of at least 0, an axis, or a run-time scalar."""
    if isinstance(item, Dim):
        return item.extent
    size = position_of(session, item)
    if isinstance(size, int) and size < 0:
        raise ShapeError(f"an extent is {shown(size)}", remedy="use at least 0")
    return size


def _items(session: Session, shape: object) -> tuple[int | Dim | Value, ...]:
    return tuple(
        item if isinstance(item, Dim) else size_of(session, item) for item in _tuple(shape)
    )


def _tuple(items: object) -> Sequence[object]:
    return items if isinstance(items, tuple | list) else (items,)


def _step(item: object) -> int:
    step = host_int(item)
    if step is None or step < 0:
        raise ShapeError(
            f"{shown(item)} is used as a stride of tn.layout",
            remedy="use ints from 0 on, in elements",
        )
    return step
