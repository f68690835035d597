"""Tile arrays, against NumPy: regions borrowed, a whole assembled, and mistakes that only show
when slots are named at run time."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.filling import program, run
from tilenest.errors import OutOfBounds, TileArrayError


def test_regions_of_a_tile_make_it_again() -> None:
    a, b = run(program(), 4, 1)
    np.testing.assert_array_equal(b, a[:4, :12])


def test_regions_of_a_view_begin_at_its_origins() -> None:
    a, b = run(program("%A, [%c1, %c4]"), 4, 1)
    np.testing.assert_array_equal(b, a[1:5, 4:16])


def test_a_slot_set_twice_is_refused() -> None:
    with pytest.raises(TileArrayError, match=r"slot \(0, 0\) .* set twice"):
        run(program(), 4, 0)


def test_a_slot_that_is_missing_is_refused() -> None:
    with pytest.raises(TileArrayError, match=r"slot \(0, 3\) is not set, nor are 1 more"):
        run(program(), 3, 1)


def test_a_slot_outside_is_refused() -> None:
    with pytest.raises(OutOfBounds, match=r"slot \(0, 4\) lies outside .* of 2 x 4 slots"):
        run(program(), 4, 2)
