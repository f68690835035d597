"""Layouts drawn: as text, and as SVG.

In: a map with known extents, or a correspondence; the last axis runs across, the others down. Out:
a grid with what each cell goes to: its offset or coordinates, or every place that holds a copy of
it. In SVG equal colours mean an equal owner, one of the coordinates, or an equal bank. Large
layouts show their first rows and columns, and say what is left out. Equal layouts give equal bytes.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from math import prod

from tilenest import svg
from tilenest.errors import ShapeError
from tilenest.layouts.correspondence import DEFAULT_BUDGET, LayoutCorr
from tilenest.layouts.kinds import check_kind, whole_number
from tilenest.layouts.layout_map import LayoutMap, Point
from tilenest.layouts.spaces import Space
from tilenest.records import record

MOST_ROWS = 64
MOST_COLUMNS = 32
_MOST_PLACES = 4
_MOST_CHARACTERS = 64
_UNDEFINED = "-"


@record
class Grid:
    """Cells as text with the number that colours each, heads of rows and columns, and notes."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]
    colours: tuple[tuple[int | None, ...], ...]
    notes: tuple[str, ...]


def as_text(layout: LayoutMap | LayoutCorr, title: str = "") -> str:
    """The layout as a grid of text, one line a row."""
    grid = _grid(layout, title)
    table = [("", *grid.columns)]
    table += [(head, *cells) for head, cells in zip(grid.rows, grid.cells, strict=True)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]
    return "\n".join([*([grid.title] if grid.title else []), *lines, *grid.notes]) + "\n"


def as_svg(
    layout: LayoutMap | LayoutCorr,
    title: str = "",
    colour_by: str | None = None,
    banks: int | None = None,
) -> str:
    """The layout as an SVG drawing. The colour is the coordinate of the codomain's axis `colour_by`
    (of a distribution the first by default), with `banks` modulo their number."""
    check_kind(layout, LayoutMap | LayoutCorr, "what is drawn")
    if banks is not None and whole_number(banks, "the number of banks") < 1:
        raise ShapeError(f"there are no {banks} banks", remedy="use at least one bank")
    owner = _owner(layout, colour_by, banks)
    grid = _grid(layout, title, owner, banks)
    texts = [*grid.columns, *(cell for row in grid.cells for cell in row)]
    width = max(map(len, texts), default=0) * svg.CHARACTER + 2 * svg.CHARACTER
    margin = max(map(len, grid.rows), default=0) * svg.CHARACTER + 2 * svg.CHARACTER
    top = svg.LINE * bool(grid.title)
    shapes = [svg.words(margin / 2, top - svg.LINE / 2, grid.title, "start")] if grid.title else []
    for column, head in enumerate(grid.columns):
        shapes.append(svg.words(margin + (column + 0.5) * width, top + svg.LINE / 2, head))
    for row, head in enumerate(grid.rows):
        y = top + (row + 1) * svg.LINE
        shapes.append(svg.words(margin / 2, y + svg.LINE / 2, head))
        for column, cell in enumerate(grid.cells[row]):
            shapes += _cell(margin + column * width, y, width, cell, grid.colours[row][column])
    bottom = top + (len(grid.rows) + 1) * svg.LINE
    for place, note in enumerate(grid.notes):
        shapes.append(svg.words(margin / 2, bottom + (place + 0.5) * svg.LINE, note, "start"))
    right = max(
        margin + len(grid.columns) * width,
        margin / 2 + (max(map(len, (grid.title, *grid.notes))) + 2) * svg.CHARACTER,
    )
    height = bottom + len(grid.notes) * svg.LINE + svg.CHARACTER
    return svg.document(right + svg.CHARACTER, height, shapes)


def _owner(layout: LayoutMap | LayoutCorr, colour_by: str | None, banks: int | None) -> int | None:
    """The position of the coordinate that colours the cells, or None for no colour."""
    names = [axis.name for axis in layout.codomain.axes]
    if colour_by is None:
        is_distribution = isinstance(layout, LayoutCorr) or len(names) > 1
        return 0 if names and (is_distribution or banks) else None
    check_kind(colour_by, str, "the axis to colour by")
    if colour_by not in names:
        raise ShapeError(
            f"{layout.codomain} has no axis {colour_by!r} to colour by",
            remedy="name an axis of the codomain",
        )
    return names.index(colour_by)


def _grid(
    layout: LayoutMap | LayoutCorr, title: str, owner: int | None = None, banks: int | None = None
) -> Grid:
    check_kind(layout, LayoutMap | LayoutCorr, "what is drawn")
    check_kind(title, str, "the title")
    space = layout.domain
    legs = (layout,) if isinstance(layout, LayoutMap) else (layout.left, layout.right)
    if any(leg.symbols for leg in legs):
        raise ShapeError(
            f"a layout from {space} to {layout.codomain} depends on run-time numbers",
            remedy="draw a layout with extents known at compile time",
        )
    extents = space.shape({})
    outer, across = Space(space.axes[:-1]), extents[-1] if extents else 1
    shown = [row for row in islice(outer.points(), MOST_ROWS) if across]
    columns = range(min(across, MOST_COLUMNS))
    tail = [(column,) for column in columns] if extents else [()]
    places = _places(layout, [[(*row, *column) for column in tail] for row in shown])
    return Grid(
        svg.printable(title),
        tuple(",".join(map(str, row)) for row in shown),
        tuple(map(str, columns)) if extents else ("",),
        tuple(tuple(_text(found) for found in row) for row in places),
        tuple(tuple(_colour(found, owner, banks) for found in row) for row in places),
        (
            *_legend(layout, owner, banks),
            *_elisions(prod(extents[:-1]), len(shown), across, len(tail)),
        ),
    )


def _places(
    layout: LayoutMap | LayoutCorr, points: list[list[Point]]
) -> list[list[tuple[Point, ...]]]:
    """Where each cell goes: nowhere, to one place, or to several."""
    if isinstance(layout, LayoutMap):
        values = [[layout.apply(point) for point in row] for row in points]
        return [[() if value is None else (value,) for value in row] for row in values]
    size = layout.occurrences.size
    if size is None or size > DEFAULT_BUDGET:
        raise ShapeError(
            f"{layout.occurrences} has too many occurrences to draw",
            remedy=f"draw at most {DEFAULT_BUDGET}, or a map",
        )
    held: dict[Point, set[Point]] = defaultdict(set)
    for point, place in layout.pairs():
        held[point].add(place)
    return [[tuple(sorted(held.get(point, ()))) for point in row] for row in points]


def _text(places: tuple[Point, ...]) -> str:
    if not places:
        return _UNDEFINED
    shown = [",".join(map(str, place)) for place in places[:_MOST_PLACES]]
    more = [f"+{len(places) - _MOST_PLACES}"] if len(places) > _MOST_PLACES else []
    text = "|".join([*shown, *more])
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


def _colour(places: tuple[Point, ...], owner: int | None, banks: int | None) -> int | None:
    if not places or owner is None:
        return None
    coordinate = places[0][owner]
    return coordinate % banks if banks else coordinate


def _legend(layout: LayoutMap | LayoutCorr, owner: int | None, banks: int | None) -> list[str]:
    """What the numbers in a cell are, where there are several, and what its colour is."""
    names = [axis.name for axis in layout.codomain.axes]
    lines = [f"cells say {','.join(names)}"] if len(names) > 1 else []
    if owner is not None:
        lines.append(f"colours say {names[owner]}" + (f" modulo {banks}" if banks else ""))
    return [svg.printable(line) for line in lines]


def _elisions(n_rows: int, shown_rows: int, n_columns: int, shown_columns: int) -> list[str]:
    notes: list[str] = []
    if shown_rows < n_rows and n_columns:
        notes.append(f"rows {shown_rows} to {n_rows - 1} are not shown")
    if shown_columns < n_columns and n_rows:
        notes.append(f"columns {shown_columns} to {n_columns - 1} are not shown")
    if not n_rows * n_columns:
        notes.append("the layout has no point")
    return notes


def _cell(x: float, y: float, width: float, text: str, colour: int | None) -> list[str]:
    return [
        svg.box(x, y, width, svg.LINE, colour),
        svg.words(x + width / 2, y + svg.LINE / 2, text),
    ]
