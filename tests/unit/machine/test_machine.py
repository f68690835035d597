"""Machine facts: from CPU features and from a folder laid out as Linux lays out its caches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilenest.machine import (
    AVX2,
    AVX512,
    CacheSizes,
    host_machine,
    lanes_feature,
    read_cache_sizes,
)
from tilenest.records import replace


@pytest.mark.parametrize(
    ("features", "vector_bytes", "registers"),
    [
        (["avx2", "fma", "avx512f", "avx512vl"], 64, 32),
        (["avx2", "fma", "avx512f"], 32, 16),
        (["avx2", "fma"], 32, 16),
        (["avx2"], 16, 16),
        (["neon"], 16, 32),
        ([], 16, 16),
    ],
)
def test_vectors_follow_the_features(
    features: list[str], vector_bytes: int, registers: int
) -> None:
    machine = host_machine(features, cores=2)
    assert (machine.vector_bytes, machine.vector_registers) == (vector_bytes, registers)


def test_features_name_the_lanes_of_the_registers() -> None:
    assert AVX2.features == {"vectors", "lanes.2", "lanes.4", "lanes.8"}
    assert AVX512.features == AVX2.features | {"lanes.16"}
    assert replace(AVX2, vector_bytes=1).features == set()
    assert [lanes_feature(lanes) for lanes in (5, 8, 9)] == ["lanes.8", "lanes.8", "lanes.16"]


def test_lanes_are_elements_a_vector() -> None:
    assert [AVX512.lanes(size) for size in (1, 4, 8, 128)] == [64, 16, 8, 1]
    assert AVX2.lanes(4) == 8


def test_cores_and_caches_are_taken_as_given() -> None:
    machine = host_machine([], 0, CacheSizes(1, 2, 3), "tiny")
    assert (machine.name, machine.cores) == ("tiny", 1)
    assert (machine.l1_bytes, machine.l2_bytes, machine.l3_bytes) == (1, 2, 3)


def write_cache(folder: Path, name: str, kind: str, level: str, size: str) -> None:
    (folder / name).mkdir()
    for file, text in (("type", kind), ("level", level), ("size", size)):
        (folder / name / file).write_text(f"{text}\n", encoding="ascii")


def test_cache_sizes_are_read(tmp_path: Path) -> None:
    write_cache(tmp_path, "index0", "Data", "1", "48K")
    write_cache(tmp_path, "index1", "Instruction", "1", "32K")
    write_cache(tmp_path, "index2", "Unified", "2", "2048K")
    write_cache(tmp_path, "index3", "Unified", "3", "30M")
    assert read_cache_sizes(tmp_path) == CacheSizes(48 << 10, 2 << 20, 30 << 20)


def test_what_is_missing_or_odd_keeps_its_default(tmp_path: Path) -> None:
    write_cache(tmp_path, "index0", "Data", "one", "48K")
    write_cache(tmp_path, "index1", "Unified", "2", "lots")
    (tmp_path / "index2").mkdir()
    assert read_cache_sizes(tmp_path) == CacheSizes()
    assert read_cache_sizes(tmp_path / "absent") == CacheSizes()
