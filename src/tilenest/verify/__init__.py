"""The rules of TileIR: what every op demands and which ops each form holds.

A rule has an id; every violation is one diagnostic with op, place, failed fact and remedy.
"""

from tilenest.verify.program import OP_RULES, diagnose_module, verify_module

__all__ = ["OP_RULES", "diagnose_module", "verify_module"]
