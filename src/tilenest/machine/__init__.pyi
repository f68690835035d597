from tilenest.machine.atoms import Arithmetic, AtomContract, Catalogue, ValuePattern
from tilenest.machine.cpu import (
    ASSERT,
    CPU_ATOMS,
    CPU_RESOURCES,
    LANE_REDUCTIONS,
    PRINT,
    TRANSPOSE_LANES,
    cpu_target,
)
from tilenest.machine.facts import AVX2, AVX512, Machine, lanes_feature
from tilenest.machine.host import CacheSizes, host_machine, read_cache_sizes
from tilenest.machine.resources import ResourceClass, Synchronisation, accesses
from tilenest.machine.scopes import (
    CPU_SCOPES,
    DEVICE,
    LANGUAGE_SCOPES,
    OPEN_SCOPE,
    WORKER,
)
from tilenest.machine.selection import (
    AtomSite,
    Clause,
    Comparison,
    Refusal,
    Selection,
    failing,
    select,
)
from tilenest.machine.target import MemoryNeed, Target

__all__ = [
    "ASSERT",
    "AVX2",
    "AVX512",
    "CPU_ATOMS",
    "CPU_RESOURCES",
    "CPU_SCOPES",
    "DEVICE",
    "LANE_REDUCTIONS",
    "LANGUAGE_SCOPES",
    "OPEN_SCOPE",
    "PRINT",
    "TRANSPOSE_LANES",
    "WORKER",
    "Arithmetic",
    "AtomContract",
    "AtomSite",
    "CacheSizes",
    "Catalogue",
    "Clause",
    "Comparison",
    "Machine",
    "MemoryNeed",
    "Refusal",
    "ResourceClass",
    "Selection",
    "Synchronisation",
    "Target",
    "ValuePattern",
    "accesses",
    "cpu_target",
    "failing",
    "host_machine",
    "lanes_feature",
    "read_cache_sizes",
    "select",
]
