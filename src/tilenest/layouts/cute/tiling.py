"""Divides and products of CuTe layouts.

In: a layout and a tiler (`algebra.Tiler`). Out: the layout as tiles and what counts them, grouped
in one of the usual ways. A divide composes the layout with the tiler and its complement; a product
places copies of a layout by its own complement. With a tuple of tilers both work mode by mode, and
the zipped and tiled forms gather the tiles on the left.
"""

from __future__ import annotations

from tilenest.errors import ShapeError
from tilenest.layouts.cute.algebra import (
    Tiler,
    check_nesting,
    check_rank,
    complement,
    composition,
    layout_of,
)
from tilenest.layouts.cute.layout import Layout, joined
from tilenest.layouts.kinds import check_kind


def logical_divide(layout: Layout, tiler: Tiler) -> Layout:
    """layout o (tiler, complement of the tiler in the layout's size): a tile, and the tiles."""
    check_kind(layout, Layout, "what is divided")
    if isinstance(tiler, tuple):
        modes = layout.modes()
        check_rank(modes, tiler)
        check_nesting(tiler)
        return joined(*map(logical_divide, modes, tiler), *modes[len(tiler) :])
    tile = layout_of(tiler)
    rest = complement(tile, layout.size)
    if tile.size * rest.size != layout.size:
        raise ShapeError(
            f"{tile} does not divide {layout}: its tiles of {tile.size} and their {rest.size} "
            f"places make {tile.size * rest.size} of {layout.size}",
            remedy="use a tiler without stride 0 whose tiles fill the layout exactly",
        )
    return composition(layout, joined(tile, rest))


def zipped_divide(layout: Layout, tiler: Tiler) -> Layout:
    """The divide as two modes: all tile modes, then all others."""
    return _unzipped(logical_divide(layout, tiler), tiler)


def tiled_divide(layout: Layout, tiler: Tiler) -> Layout:
    """The divide as one mode of all tile modes, then every other mode by itself."""
    return _spread(zipped_divide(layout, tiler))


def logical_product(block: Layout, tiler: Tiler) -> Layout:
    """(block, complement of the block o tiler): a block, and where its copies go."""
    check_kind(block, Layout, "what is repeated")
    if isinstance(tiler, tuple):
        modes = block.modes()
        check_rank(modes, tiler)
        check_nesting(tiler)
        return joined(*map(logical_product, modes, tiler), *modes[len(tiler) :])
    tile = layout_of(tiler)
    return joined(block, composition(complement(block, block.size * tile.cosize), tile))


def zipped_product(block: Layout, tiler: Tiler) -> Layout:
    """The product as two modes: all block modes, then all others."""
    return _unzipped(logical_product(block, tiler), tiler)


def tiled_product(block: Layout, tiler: Tiler) -> Layout:
    """The product as one mode of all block modes, then every other mode by itself."""
    return _spread(zipped_product(block, tiler))


def blocked_product(block: Layout, tiler: Layout) -> Layout:
    """The product with mode i made of the block's mode i and, slower, the tiler's mode i."""
    return joined(*(joined(inside, copies) for inside, copies in _paired(block, tiler)))


def raked_product(block: Layout, tiler: Layout) -> Layout:
    """The product with mode i made of the tiler's mode i and, slower, the block's mode i."""
    return joined(*(joined(copies, inside) for inside, copies in _paired(block, tiler)))


def _paired(block: Layout, tiler: Layout) -> list[tuple[Layout, Layout]]:
    """The modes of a product of two layouts of equal rank, side by side."""
    check_kind(block, Layout, "what is repeated")
    check_kind(tiler, Layout, "a tiler")
    rank = max(block.rank, tiler.rank)
    one, other = logical_product(_of_rank(block, rank), _of_rank(tiler, rank)).modes()
    return list(zip(one.modes(), other.modes(), strict=True))


def _of_rank(layout: Layout, rank: int) -> Layout:
    return joined(*layout.modes(), *[Layout(1, 0)] * (rank - layout.rank))


def _unzipped(layout: Layout, tiler: Tiler) -> Layout:
    """Two modes: the left parts of what a tuple of tilers made, then the right ones."""
    if not isinstance(tiler, tuple):
        return layout
    modes = layout.modes()
    pairs = [_unzipped(mode, part).modes() for mode, part in zip(modes, tiler, strict=False)]
    rest = modes[len(tiler) :]
    return joined(joined(*(p[0] for p in pairs)), joined(*(p[1] for p in pairs), *rest))


def _spread(layout: Layout) -> Layout:
    tile, rest = layout.modes()
    return joined(tile, *rest.modes())
