"""The object cache on disk: compiled kernels that outlive the process.

In: a key (a digest of all that the code depends on) and an entry: machine code with metadata. Out:
the entry again, in this process or another, or None. A file is a checksum, the metadata and the
code; it is written beside its place and renamed, so readers never see half of one. What is damaged
is removed and counts as absent; what others may write to is never used. Each of sixteen shards
drops its least recently used files past its share of the limit. No fault of the file system
reaches the caller.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import struct
import threading
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tilenest.records import record

_MAGIC = b"tilenest object 1\n"
_LENGTHS = struct.Struct("<QQ")
_CHECKSUM_BYTES = 32
_HEADER_BYTES = len(_MAGIC) + _LENGTHS.size + _CHECKSUM_BYTES
_SUFFIX = ".tno"
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_SHARDS = 16
DEFAULT_LIMIT = 256 << 20


@record
class CacheEntry:
    """Machine code and what is needed to load it, as plain JSON values."""

    metadata: Mapping[str, Any]
    code: bytes


def cache_key(parts: Mapping[str, str]) -> str:
    """A digest of named texts; lengths are part of it, so no two mappings run together."""
    digest = hashlib.sha256()
    for name, text in sorted(parts.items()):
        for item in (name.encode(), text.encode()):
            digest.update(len(item).to_bytes(8, "little"))
            digest.update(item)
    return digest.hexdigest()


@record
class ObjectCache:
    """The cache below one folder."""

    folder: Path
    limit_bytes: int = DEFAULT_LIMIT

    def load(self, key: str) -> CacheEntry | None:
        """The entry of this key; None when there is none, or none that can be trusted."""
        path = self._path(key)
        try:
            if not _is_private_folder(path.parent):
                return None
            data = _read_private_file(path)
        except OSError:
            return None
        entry = _decode(data)
        with contextlib.suppress(OSError):
            if entry is None:
                path.unlink()
            else:
                os.utime(path)
        return entry

    def store(self, key: str, entry: CacheEntry) -> bool:
        """Keep an entry; False when the folder cannot be used."""
        path = self._path(key)
        data = _encode(entry)
        try:
            for folder in (self.folder, path.parent):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if not _is_private_folder(folder):
                    return False
            _write_then_rename(path, data)
            self._evict(path.parent)
        except OSError:
            return False
        return True

    def _path(self, key: str) -> Path:
        return self.folder / key[0] / f"{key}{_SUFFIX}"

    def _evict(self, shard: Path) -> None:
        share = self.limit_bytes // _SHARDS
        files = []
        for path in shard.iterdir():
            with contextlib.suppress(OSError):
                status = path.stat()
                files.append((status.st_mtime_ns, status.st_size, path))
        total = sum(size for _, size, _ in files)
        for _, size, path in sorted(files):
            if total <= share:
                break
            path.unlink(missing_ok=True)
            total -= size


def _is_private_folder(folder: Path) -> bool:
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and _is_private(status)


def _is_private(status: os.stat_result) -> bool:
    return status.st_uid == os.geteuid() and not status.st_mode & _WRITABLE_BY_OTHERS


def _read_private_file(path: Path) -> bytes:
    """The bytes of a regular file that only we can write to, else nothing."""
    # Opening a pipe would wait for its writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(path, flags)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not _is_private(status):
            return b""
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _write_then_rename(path: Path, data: bytes) -> None:
    fresh = path.parent / f".new-{os.getpid()}-{threading.get_ident()}"
    fresh.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(fresh, flags, 0o600), "wb") as file:
            file.write(data)
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _encode(entry: CacheEntry) -> bytes:
    metadata = json.dumps(entry.metadata, sort_keys=True).encode()
    body = _LENGTHS.pack(len(metadata), len(entry.code)) + metadata + entry.code
    return _MAGIC + hashlib.sha256(body).digest() + body


def _decode(data: bytes) -> CacheEntry | None:
    if len(data) < _HEADER_BYTES or not data.startswith(_MAGIC):
        return None
    checksum = data[len(_MAGIC) : len(_MAGIC) + _CHECKSUM_BYTES]
    body = memoryview(data)[len(_MAGIC) + _CHECKSUM_BYTES :]
    if hashlib.sha256(body).digest() != checksum:
        return None
    metadata_bytes, code_bytes = _LENGTHS.unpack_from(body)
    start = _LENGTHS.size
    if len(body) != start + metadata_bytes + code_bytes:
        return None
    metadata = json.loads(bytes(body[start : start + metadata_bytes]))
    return CacheEntry(metadata, bytes(body[start + metadata_bytes :]))


def default_cache() -> ObjectCache | None:
    """The cache the environment asks for: `TILENEST_CACHE=0` for none, `TILENEST_CACHE_DIR` for a
    folder, else the user's cache folder (which follows `XDG_CACHE_HOME`)."""
    if os.environ.get("TILENEST_CACHE") == "0":
        return None
    folder = os.environ.get("TILENEST_CACHE_DIR")
    if folder:
        return ObjectCache(Path(folder))
    return ObjectCache(Path(_import_platformdirs().user_cache_path("tilenest")) / "objects")


@cache
def _import_platformdirs() -> Any:
    import platformdirs

    return platformdirs
