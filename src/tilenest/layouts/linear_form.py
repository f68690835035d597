"""A formula that is a plain sum, as its numbers.

In: coefficients of coordinates and symbols by position, and a constant. Out: one frozen record,
which `IndexExpr.linear` gives and who reads strides off a formula takes.
"""

from __future__ import annotations

from tilenest.records import record


@record
class LinearForm:
    """A formula that is a plain sum: (position, coefficient) pairs and a constant."""

    dims: tuple[tuple[int, int], ...]
    syms: tuple[tuple[int, int], ...]
    const: int
