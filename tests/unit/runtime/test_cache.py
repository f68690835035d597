"""The object cache: what comes back, what is refused, and what survives crowds and damage."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tilenest.runtime.cache import CacheEntry, ObjectCache, cache_key, default_cache

KEY = cache_key({"candidate": "module"})
ENTRY = CacheEntry({"name": "gemm", "scratch": [1, 2]}, b"\x7fELF" + bytes(range(256)))


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "objects")


def file_of(cache: ObjectCache, key: str = KEY) -> Path:
    return cache.folder / key[0] / f"{key}.tno"


def test_an_entry_comes_back(cache: ObjectCache) -> None:
    assert cache.load(KEY) is None
    assert cache.store(KEY, ENTRY)
    assert cache.load(KEY) == ENTRY
    assert cache.load(cache_key({"candidate": "other"})) is None


def test_keys_differ_where_any_part_does() -> None:
    keys = {
        cache_key(parts)
        for parts in (
            {"a": "1", "b": "2"},
            {"a": "12", "b": ""},
            {"a": "", "b": "12"},
            {"a": "1"},
            {"ab": "12"},
        )
    }
    assert len(keys) == 5
    assert cache_key({"a": "1", "b": "2"}) == cache_key({"b": "2", "a": "1"})


def test_nothing_is_readable_by_others(cache: ObjectCache) -> None:
    cache.store(KEY, ENTRY)
    for path in (cache.folder, file_of(cache).parent):
        assert path.stat().st_mode & 0o777 == 0o700
    assert file_of(cache).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("length", [0, 1, 17, 40, 80, 200])
def test_a_truncated_entry_is_removed(cache: ObjectCache, length: int) -> None:
    cache.store(KEY, ENTRY)
    path = file_of(cache)
    path.write_bytes(path.read_bytes()[:length])
    assert cache.load(KEY) is None
    assert not path.exists()


def test_an_entry_with_more_behind_it_is_removed(cache: ObjectCache) -> None:
    cache.store(KEY, ENTRY)
    path = file_of(cache)
    path.write_bytes(path.read_bytes() + b"\0")
    assert cache.load(KEY) is None
    assert not path.exists()


def test_every_flipped_byte_is_noticed(cache: ObjectCache) -> None:
    cache.store(KEY, ENTRY)
    path = file_of(cache)
    good = path.read_bytes()
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x10]) + good[place + 1 :])
        assert cache.load(KEY) is None, place
        assert not path.exists()


def test_entries_that_others_may_write_to_are_not_used(cache: ObjectCache) -> None:
    cache.store(KEY, ENTRY)
    file_of(cache).chmod(0o666)
    assert cache.load(KEY) is None


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_folders_that_others_may_write_to_are_not_used(cache: ObjectCache, mode: int) -> None:
    cache.store(KEY, ENTRY)
    file_of(cache).parent.chmod(mode)
    assert cache.load(KEY) is None
    assert not cache.store(KEY, ENTRY)


def test_links_are_not_followed(cache: ObjectCache, tmp_path: Path) -> None:
    cache.store(KEY, ENTRY)
    elsewhere = tmp_path / "elsewhere"
    file_of(cache).rename(elsewhere)
    file_of(cache).symlink_to(elsewhere)
    assert cache.load(KEY) is None


def test_foreign_entries_are_not_used(cache: ObjectCache, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.store(KEY, ENTRY)
    owner = file_of(cache).stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert cache.load(KEY) is None
    assert not cache.store(KEY, ENTRY)


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    cache = ObjectCache(blocked / "objects")
    assert not cache.store(KEY, ENTRY)
    assert cache.load(KEY) is None


def test_the_least_recently_used_entries_go_first(tmp_path: Path) -> None:
    entry = CacheEntry({}, bytes(1000))
    keys = [f"a{number:063x}" for number in range(4)]
    cache = ObjectCache(tmp_path, limit_bytes=16 * 3500)
    for age, key in enumerate(keys[:3]):
        cache.store(key, entry)
        os.utime(file_of(cache, key), (age + 1, age + 1))
    assert cache.load(keys[0]) == entry
    cache.store(keys[3], entry)
    assert [cache.load(key) is not None for key in keys] == [True, False, True, True]


CROWD = """
import sys
import threading
from pathlib import Path
from tilenest.runtime.cache import CacheEntry, ObjectCache
cache = ObjectCache(Path(sys.argv[1]))
for turn in range(60):
    key = format(turn % 5, "064x")
    code = bytes([turn % 5]) * 20000
    found = cache.load(key)
    assert found is None or found.code == code, "torn"
    assert cache.store(key, CacheEntry({"turn": turn % 5}, code))
"""


def test_processes_may_crowd(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    crowd = [
        subprocess.Popen([sys.executable, "-c", CROWD, str(tmp_path)], env=environment)
        for _ in range(4)
    ]
    assert [process.wait() for process in crowd] == [0] * 4
    assert not list(tmp_path.glob("*/.new-*"))


def test_the_environment_chooses_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TILENEST_CACHE", raising=False)
    monkeypatch.setenv("TILENEST_CACHE_DIR", str(tmp_path))
    assert default_cache() == ObjectCache(tmp_path)
    monkeypatch.delenv("TILENEST_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    found = default_cache()
    assert found is not None and found.folder.is_relative_to(tmp_path / "xdg")
    monkeypatch.setenv("TILENEST_CACHE", "0")
    assert default_cache() is None


def test_a_pipe_in_place_of_an_entry_is_no_entry(cache: ObjectCache) -> None:
    cache.store(KEY, ENTRY)
    file_of(cache).unlink()
    os.mkfifo(file_of(cache), 0o600)
    found: list[CacheEntry | None] = []
    reader = threading.Thread(target=lambda: found.append(cache.load(KEY)), daemon=True)
    reader.start()
    reader.join(timeout=10)
    assert found == [None]
    assert cache.store(KEY, ENTRY)
    assert cache.load(KEY) == ENTRY


def test_a_folder_in_place_of_an_entry_is_no_entry(cache: ObjectCache) -> None:
    cache.store(KEY, ENTRY)
    file_of(cache).unlink()
    file_of(cache).mkdir(0o700)
    before = len(os.listdir("/proc/self/fd"))
    assert cache.load(KEY) is None
    assert not cache.store(KEY, ENTRY)
    assert cache.load(KEY) is None
    assert len(os.listdir("/proc/self/fd")) == before
