"""The machine this process runs on, from data handed in, and where its cache sizes are read.

In: the CPU features a backend reports, and sizes read from the operating system. Out: a `Machine`.
Reading and describing are apart, so that any machine can be described in a test.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from tilenest.machine.facts import Machine
from tilenest.records import record

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


@record
class CacheSizes:
    """Bytes of the data caches; the defaults are what a small machine has."""

    l1: int = 32 << 10
    l2: int = 512 << 10
    l3: int = 8 << 20


def host_machine(
    features: Collection[str], cores: int, caches: CacheSizes | None = None, name: str = "host"
) -> Machine:
    """The machine with these CPU features (LLVM's names, such as "avx2" and "avx512f")."""
    sizes = caches or CacheSizes()
    if "avx512f" in features and "avx512vl" in features:
        vector_bytes, registers = 64, 32
    elif "avx2" in features and "fma" in features:
        vector_bytes, registers = 32, 16
    elif "neon" in features:
        vector_bytes, registers = 16, 32
    else:
        vector_bytes, registers = 16, 16
    return Machine(name, vector_bytes, registers, sizes.l1, sizes.l2, sizes.l3, max(1, cores))


def read_cache_sizes(folder: Path = _CACHES) -> CacheSizes:
    """The cache sizes Linux reports for the first core; defaults where it reports none."""
    found: dict[int, int] = {}
    for entry in sorted(folder.glob("index*")):
        try:
            kind = (entry / "type").read_text(encoding="ascii").strip()
            level = int((entry / "level").read_text(encoding="ascii"))
            size = _bytes_of((entry / "size").read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            continue
        if kind in ("Data", "Unified"):
            found[level] = size
    defaults = CacheSizes()
    return CacheSizes(
        found.get(1, defaults.l1), found.get(2, defaults.l2), found.get(3, defaults.l3)
    )


def _bytes_of(text: str) -> int:
    unit = _UNITS.get(text[-1:], 1)
    return int(text[:-1] if unit > 1 else text) * unit
