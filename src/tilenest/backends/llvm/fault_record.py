"""What compiled code says of an access that left its array: four numbers, as bytes.

In: the bytes an entry hands back. Out: a `Fault`. `fault` writes the code that makes them.
"""

from __future__ import annotations

import struct

from tilenest.records import record

_LAYOUT = struct.Struct("=4q")
FAULT_BYTES = _LAYOUT.size


@record
class Fault:
    """The access of this number used `index` on an axis of `extent`."""

    site: int
    axis: int
    index: int
    extent: int

    @classmethod
    def of(cls, data: bytes) -> Fault:
        """What the bytes of a record say."""
        return cls(*_LAYOUT.unpack(data))
