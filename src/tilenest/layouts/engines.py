"""The proof engines, loaded when a question is not decided by structure alone.

In: nothing. Out: the engines by name, and in the order in which they are asked. Most programs never
ask a question that reaches them, and need not load them.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType

from tilenest.records import record


@record(eq=False)
class Engines:
    """One module an engine, from the cheapest to the strongest."""

    affine: ModuleType
    bits: ModuleType
    mixed: ModuleType
    isl: ModuleType
    products: ModuleType

    @property
    def in_order(self) -> tuple[ModuleType, ...]:
        return self.affine, self.bits, self.mixed, self.isl, self.products


@cache
def _import_engines() -> Engines:
    from tilenest.layouts import (
        affine_engine,
        bit_engine,
        isl_engine,
        mixed_engine,
        product_engine,
    )

    return Engines(affine_engine, bit_engine, mixed_engine, isl_engine, product_engine)


engines = _import_engines
