"""A remap that was applied to the nests of a function, as the function remembers it.

In: levels before and after, the map between their instances, and whom it was proven for. Out: plain
records that an attribute may hold, so that the proof can be done again by whoever reads the text.
The records promise nothing: the verifier judges them.
"""

from __future__ import annotations

from tilenest.layouts import AffineMap
from tilenest.records import record


@record
class RemapLevel:
    """One level; the fields are those of an execution level."""

    identity: str
    name: str
    kind: str
    extent: int | str
    scope: str = "auto"
    nest: str = ""
    policy: str = ""


@record
class RemapSymbol:
    """A run-time extent that stands for a formula over others."""

    name: str
    meaning: AffineMap
    arguments: tuple[str, ...]


@record
class RemapObserver:
    """Whoever looks at the old levels at a depth, and now at another one where it was `moved`."""

    name: str
    kind: str
    depth: int
    repeatable: bool = False
    moved: int | None = None


@record
class AppliedRemap:
    """`map` takes new coordinates to old ones, where each result of `active` is at least 0; every
    old instance has to run. The maps share `symbols`, the names of run-time extents; `definitions`
    say what new ones among them are."""

    old: tuple[RemapLevel, ...]
    new: tuple[RemapLevel, ...]
    map: AffineMap
    active: AffineMap
    steps: tuple[str, ...]
    observers: tuple[RemapObserver, ...] = ()
    symbols: tuple[str, ...] = ()
    definitions: tuple[RemapSymbol, ...] = ()
