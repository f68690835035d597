"""Machine code runs only where everything it was generated for is there."""

from __future__ import annotations

from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tilenest.dialects import capabilities_of
from tilenest.driver import Host, capture_kernel, host, lower
from tilenest.errors import TargetError
from tilenest.machine import AVX2, AVX512
from tilenest.records import replace
from tilenest.runtime import loading
from tilenest.runtime.cache import default_cache


def doubled(X: Any, Y: Any) -> None:
    n = tn.axis("n", 256)
    for row in tn.parallel(X.extent(0)):
        Y((row.index(), 0), (1, n)).store(X[(row.index(), 0), (1, n)] * 2.0)


def captured() -> Any:
    spec = tn.spec((3, 256), tn.float32)
    assert isinstance(doubled, FunctionType)
    return capture_kernel(doubled, [spec, spec], {})


@pytest.mark.parametrize(("machine", "lanes"), [(AVX2, 8), (AVX512, 16)], ids=["avx2", "avx512"])
def test_tn17d_planned_code_states_its_lanes(machine: Any, lanes: int) -> None:
    compilation = lower(captured(), Host(host().processor, machine))
    for module in (compilation.scheduled, compilation.machine):
        stated = capabilities_of(module.function("doubled"))
        assert f"lanes.{lanes}" in stated <= machine.features
    assert f"lanes.{lanes}" in compilation.needs
    assert host().processor.enabled <= compilation.needs


def lesser(machine: Host) -> Host:
    """The same processor without one of its features."""
    dropped = max(machine.processor.enabled)
    features = machine.processor.features.replace(f"+{dropped}", f"-{dropped}")
    return replace(machine, processor=replace(machine.processor, features=features))


def test_code_in_the_cache_is_not_run_by_a_lesser_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILENEST_CACHE_DIR", str(tmp_path))
    program, whole = captured(), host()
    assert not loading.load(program).is_from_cache
    assert loading.load(program).is_from_cache
    monkeypatch.setattr(loading, "host", lambda: lesser(whole))
    assert not loading.load(program).is_from_cache
    # The key tells the machines apart; what is kept with the code does so even without it.
    monkeypatch.setattr(loading, "_key", lambda _: "0" * 64)
    monkeypatch.setattr(loading, "host", lambda: whole)
    assert not loading.load(program).is_from_cache
    assert loading.load(program).is_from_cache
    monkeypatch.setattr(loading, "host", lambda: lesser(whole))
    found = loading.load(program)
    assert not found.is_from_cache
    x, y = np.ones((3, 256), np.float32), np.full((3, 256), np.nan, np.float32)
    assert found.function(x, y) == 0
    assert np.array_equal(y, x * 2)


@pytest.mark.parametrize("needs", [None, "avx2", ["lanes.1024"]], ids=["none", "text", "more"])
def test_code_that_does_not_say_what_it_needs_is_made_again(
    needs: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILENEST_CACHE_DIR", str(tmp_path))
    program = captured()
    loading.load(program)
    cache, key = default_cache(), loading._key(program)
    assert cache is not None
    entry = cache.load(key)
    assert entry is not None and entry.metadata["needs"]
    cache.store(key, replace(entry, metadata={**entry.metadata, "needs": needs}))
    assert not loading.load(program).is_from_cache
    assert loading.load(program).is_from_cache


def test_code_for_a_machine_that_has_more_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILENEST_CACHE", "0")
    wider = replace(host().machine, vector_bytes=1024)
    monkeypatch.setattr(loading, "_lower", lambda it: lower(it, replace(host(), machine=wider)))
    with pytest.raises(TargetError, match=r"needs lanes\.256, which this machine lacks"):
        loading.load(captured())
