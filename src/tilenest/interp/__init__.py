"""The meaning of TileIR, run in NumPy: the oracle every pass and target is checked against."""

from tilenest.interp.entry import interpret

__all__ = ["interpret"]
