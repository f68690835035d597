"""Loop nests: a scheduled map_reduce_post becomes Machine loops, registers and lanes."""

from tilenest.nests.addresses import Address, MemoryAccess, Place
from tilenest.nests.builder import Environment, NestBuilder
from tilenest.nests.coordinates import Coordinates
from tilenest.nests.emitter import Emitter, Index, new_region

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
