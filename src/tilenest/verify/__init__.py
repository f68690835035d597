"""The rules of TileIR: what every op demands and which ops each form holds.

A rule has an id; every violation is one diagnostic with op, place, failed fact and remedy.
"""

from tilenest.verify.invariants import INVARIANTS, TN_RULES, Invariant
from tilenest.verify.program import OP_RULES, RULE_STEPS, diagnose_module, verify_module

__all__ = [
    "INVARIANTS",
    "OP_RULES",
    "RULE_STEPS",
    "TN_RULES",
    "Invariant",
    "diagnose_module",
    "verify_module",
]
