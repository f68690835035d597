"""A module as an SVG drawing: regions are boxes in boxes, levels of nests stand at the side.

In: a module. Out: a line of text for every operation, in the box of its region; every nest and loop
has a bar at the left, as tall as its regions, with its level and its indices. Equal modules give
equal bytes. A large module shows its first operations and says how many more there are.
"""

from __future__ import annotations

from itertools import islice

from tilenest import svg
from tilenest.ir.contents import ModuleContents
from tilenest.ir.core import Function, Operation, Region
from tilenest.ir.interfaces import RegionUse
from tilenest.ir.printer import print_module_lines

MOST_OPERATIONS = 500
MOST_DEEP = 16
"""How far boxes are drawn in boxes; what lies further in is not shown."""
_MOST_CHARACTERS = 96
_MARGIN = 8
_BAR = 96
_BAR_CHARACTERS = 10


def as_svg(module: ModuleContents) -> str:
    """The module as a drawing."""
    return _Drawing(module).text()


class _Drawing:
    """What is drawn so far, from the top down."""

    def __init__(self, module: ModuleContents) -> None:
        self.module = module
        self.lines, self.line_of = print_module_lines(module)
        self.levels = max((_levels(f.region) for f in module.functions), default=0)
        shown = [self._words_of(op) for op in islice(module.walk(), MOST_OPERATIONS)]
        longest = max(map(len, [*shown, *(f"@{f.name}" for f in module.functions)]), default=0)
        deepest = max((_depth(f.region) for f in module.functions), default=0)
        self.left = _MARGIN + self.levels * _BAR
        self.right = self.left + (longest + 2) * svg.CHARACTER + 2 * _MARGIN * deepest
        self.bottom = _MARGIN
        self.shapes: list[str] = []
        self.shown = 0

    def text(self) -> str:
        for function in self.module.functions:
            if self.shown < MOST_OPERATIONS:
                self._function(function)
        hidden = sum(1 for _ in self.module.walk()) - self.shown
        if hidden:
            self._row(f"{hidden} more operations are not shown", 0)
        return svg.document(self.right + _MARGIN, self.bottom + _MARGIN, self.shapes)

    def _function(self, function: Function) -> None:
        self._row(f"@{function.name}"[:_MOST_CHARACTERS], 0)
        self._region(function.region, 1, 0)
        self.bottom += _MARGIN

    def _region(self, region: Region, depth: int, level: int) -> None:
        """The box of a region, and everything in it."""
        place, top = len(self.shapes), self.bottom
        self.shapes.append("")
        self.bottom += _MARGIN // 2
        for number, block in enumerate(region.blocks):
            if number:
                self._row(f"block {number}", depth)
            for op in block.operations:
                if self.shown < MOST_OPERATIONS:
                    self._operation(op, depth, level)
        self.bottom += _MARGIN // 2
        x = self.left + (depth - 1) * _MARGIN
        width = self.right - (depth - 1) * _MARGIN - x
        self.shapes[place] = svg.box(x, top, width, self.bottom - top)

    def _operation(self, op: Operation, depth: int, level: int) -> None:
        self.shown += 1
        is_nest = op.REGION_USE is RegionUse.REPEATED
        top = self.bottom
        self._row(self._words_of(op), depth)
        if depth < MOST_DEEP:
            for region in op.regions:
                self._region(region, depth + 1, level + is_nest)
        if is_nest:
            self._bar(op, level, top)

    def _bar(self, op: Operation, level: int, top: int) -> None:
        """The level of a nest, from its line to the end of its last region."""
        x = _MARGIN + level * _BAR
        self.shapes.append(svg.box(x, top, _BAR - _MARGIN, self.bottom - top, level))
        name = f"{level} {op.NAME.rpartition('.')[2]}"[:_BAR_CHARACTERS]
        self.shapes.append(svg.words(x + _MARGIN / 2, top + svg.LINE / 2, name, "start"))

    def _row(self, text: str, depth: int) -> None:
        x = self.left + depth * _MARGIN
        self.shapes.append(svg.words(x, self.bottom + svg.LINE / 2, text, "start"))
        self.bottom += svg.LINE

    def _words_of(self, op: Operation) -> str:
        """The first line of an operation, without the braces of its regions."""
        line = self.lines[self.line_of[op]].strip().partition(" {")[0]
        return line if len(line) <= _MOST_CHARACTERS else f"{line[: _MOST_CHARACTERS - 3]}..."


def _depth(region: Region, depth: int = 1) -> int:
    """How many boxes stand in each other."""
    if depth == MOST_DEEP:
        return depth
    inner = (nested for op in region.operations() for nested in op.regions)
    return max((_depth(nested, depth + 1) for nested in inner), default=depth)


def _levels(region: Region, depth: int = 1) -> int:
    """How many nests stand in each other, as far in as boxes are drawn."""
    if depth > MOST_DEEP:
        return 0
    return max(
        (
            (op.REGION_USE is RegionUse.REPEATED)
            + max((_levels(nested, depth + 1) for nested in op.regions), default=0)
            for op in region.operations()
        ),
        default=0,
    )
