"""Frozen facts about the machines that programs are compiled for; no behaviour, no policy."""

from tilenest.machine.facts import AVX2, AVX512, Machine
from tilenest.machine.host import CacheSizes, host_machine, read_cache_sizes

__all__ = ["AVX2", "AVX512", "CacheSizes", "Machine", "host_machine", "read_cache_sizes"]
