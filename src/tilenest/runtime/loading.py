"""From a captured kernel to a function that can be called: out of the object cache, or compiled.

In: a `Captured` kernel. Out: `Loaded`: the native function and, on request, every stage of its
compilation. The cache's key is all that the code depends on: the program's text, what its entry
checks, the machine, the compiler. A second process that captures the same program only loads. What
code needs of a machine is kept with it, and this one has all of that or the code never runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from tilenest.backends.llvm import (
    ENTRY,
    ArrayArgument,
    EntryDescription,
    load_object,
    process_symbols,
    undefined_symbols,
)
from tilenest.driver import Captured, Compilation, host, lower
from tilenest.errors import InternalError, TargetError, TileError
from tilenest.records import replace
from tilenest.runtime.cache import CacheEntry, cache_key, default_cache
from tilenest.runtime.endings import follow
from tilenest.runtime.foreign import function_at, library_symbols
from tilenest.runtime.identity import compiler_identity
from tilenest.runtime.threads import native_pool


class Loaded:
    """A kernel's machine code in this process."""

    def __init__(self, captured: Captured, code: bytes, made: Compilation | None) -> None:
        self.captured = captured
        self.is_from_cache = made is None
        if made is not None:
            self.compilation = made
        loaded = load_object(code, _symbols(code))
        self.function: Callable[..., int | bytes] = function_at(loaded.address(ENTRY), loaded)
        follow(self, self.function)

    @cached_property
    def compilation(self) -> Compilation:
        """Every stage; made again for code that came from the cache."""
        return _lower(self.captured)


def load(captured: Captured, *, checks_overlap: bool = True) -> Loaded:
    """The kernel's code. Without the check of overlap, the caller makes sure itself that no element
    of a written array belongs to another one."""
    if not checks_overlap:
        captured = replace(captured, entry=_unchecked(captured.entry))
    objects = default_cache()
    key = _key(captured)
    found = None if objects is None else objects.load(key)
    if found is not None and not missing_features(found.metadata.get("needs")):
        return Loaded(captured, found.code, None)
    compilation = _lower(captured)
    needs = sorted(compilation.needs)
    missing = missing_features(needs)
    if missing:
        raise TargetError(
            f"the code of {captured.name} needs {', '.join(missing)}, which this machine lacks",
            "compile it for this machine",
        )
    if objects is not None:
        seconds = dict(compilation.timings)
        metadata = {"kernel": captured.name, "seconds": seconds, "needs": needs}
        objects.store(key, CacheEntry(metadata, compilation.object_code))
    return Loaded(captured, compilation.object_code, compilation)


def missing_features(needs: object) -> list[str]:
    """Of the features that code needs, those that this machine lacks; of a list that is none,
    something."""
    if not isinstance(needs, list):
        return ["a list of its features"]
    return sorted(set(map(str, needs)) - host().features)


def _lower(captured: Captured) -> Compilation:
    try:
        return lower(captured, host())
    except TileError:
        raise
    except Exception as error:
        raise InternalError(
            f"compiling {captured.name} failed: {type(error).__name__}: {error}"
        ) from error


def _unchecked(entry: EntryDescription) -> EntryDescription:
    """Address ranges are compared for written arrays only, so none counts as written."""
    return EntryDescription(
        tuple(
            replace(argument, is_written=False) if isinstance(argument, ArrayArgument) else argument
            for argument in entry.arguments
        )
    )


def _symbols(code: bytes) -> dict[str, int]:
    """Addresses of the outside names that this code uses: of the pool, of TVM-FFI, of libc."""
    wanted = undefined_symbols(code)
    raising = sorted(name for name in wanted if name.startswith("TVMFFI"))
    found = library_symbols(raising)
    if any(name.startswith("tilenest_pool_") for name in wanted):
        found |= native_pool().symbols
    return found | process_symbols(wanted - found.keys())


def _key(captured: Captured) -> str:
    return cache_key(
        {
            "program": captured.text,
            "entry": repr(captured.entry),
            "host": repr(host()),
            "compiler": compiler_identity(),
        }
    )
