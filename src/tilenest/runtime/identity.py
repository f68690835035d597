"""Which compiler this is: what besides the program and the machine decides the code.

In: the package's own files and the code generator's version. Out: one text, part of every key of
the object cache. Files count with size and time of change, so work on the compiler itself never
meets code of an older one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tilenest.backends.llvm import code_generator_version


@cache
def compiler_identity() -> str:
    """A digest of our source files' state, and the code generator."""
    files = sorted(_source_files(str(Path(__file__).parents[1])))
    digest = hashlib.sha256(repr(files).encode())
    return f"tilenest {digest.hexdigest()} {code_generator_version()}"


def _source_files(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_size, status.st_mtime_ns
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _source_files(entry.path)
