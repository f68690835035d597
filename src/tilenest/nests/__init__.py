"""Loop nests: a scheduled map_reduce_post becomes Machine loops, registers and lanes."""

from tilenest.nests.addresses import Address, MemoryAccess, Place
from tilenest.nests.builder import NestBuilder
from tilenest.nests.coordinates import Coordinates
from tilenest.nests.emitter import Emitter, Index, new_region
from tilenest.nests.frame import Environment

__all__ = [
    "Address",
    "Coordinates",
    "Emitter",
    "Environment",
    "Index",
    "MemoryAccess",
    "NestBuilder",
    "Place",
    "new_region",
]
