"""What compiled code says of an access that left its array: five numbers, as bytes.

In: the bytes an entry hands back. Out: a `Fault`. `fault` writes the code that makes them.
"""

from __future__ import annotations

import struct

from tilenest.records import record

_LAYOUT = struct.Struct("=5q")
FAULT_BYTES = _LAYOUT.size


@record
class Fault:
    """The access of this number used `index` on an axis of `extent`, `depth` views below the view
    that it goes through."""

    site: int
    axis: int
    index: int
    extent: int
    depth: int

    @classmethod
    def of(cls, data: bytes) -> Fault:
        """What the bytes of a record say."""
        return cls(*_LAYOUT.unpack(data))
