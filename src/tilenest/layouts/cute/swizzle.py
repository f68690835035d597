"""Swizzles: exclusive ors that permute the integers, and layouts behind them.

In: how many bits, from which bit on, and how far apart. Out: `Swizzle<B,M,S>` as a function on
integers from 0 on, and a layout whose values go through one. B bits are copied: with S > 0 from bit
M + S down to bit M, with S < 0 from bit M up to bit M - S. The copied bits stay, so a swizzle is
its own inverse. Definition after the CuTe documentation.
"""

from __future__ import annotations

from tilenest.errors import ShapeError
from tilenest.layouts.cute.int_tuples import IntTuple
from tilenest.layouts.cute.layout import Layout
from tilenest.layouts.kinds import check_kind, whole_number
from tilenest.records import record

_MOST_BITS = 63
_set = object.__setattr__


@record
class Swizzle:
    """`Swizzle<bits, base, shift>`."""

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for field in ("bits", "base", "shift"):
            _set(self, field, whole_number(getattr(self, field), f"the {field} of a swizzle"))
        if self.bits < 0 or self.base < 0 or abs(self.shift) < self.bits:
            raise ShapeError(
                f"{self} is no swizzle: its bits may not overlap those they are copied to",
                remedy="use at least 0 bits, a base of at least 0, and a shift at least as large "
                "as the number of bits",
            )
        if self.base + abs(self.shift) + self.bits > _MOST_BITS:
            raise ShapeError(
                f"{self} reaches past bit {_MOST_BITS} of a number",
                remedy="swizzle the bits of signed 64-bit numbers",
            )

    def __call__(self, number: int) -> int:
        number = whole_number(number, "what is swizzled")
        copied = number & (((1 << self.bits) - 1) << (self.base + max(self.shift, 0)))
        return number ^ (copied >> self.shift if self.shift >= 0 else copied << -self.shift)

    @property
    def width(self) -> int:
        """How many low bits it reads or writes."""
        return self.base + abs(self.shift) + self.bits if self.bits else 0

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


@record
class Swizzled:
    """A swizzle after a layout: the value at c is `swizzle(offset + layout(c))`."""

    swizzle: Swizzle
    layout: Layout
    offset: int = 0

    def __post_init__(self) -> None:
        check_kind(self.swizzle, Swizzle, "what follows a layout")
        check_kind(self.layout, Layout, "what is swizzled")
        _set(self, "offset", whole_number(self.offset, "the offset"))
        ends = [stride * (extent - 1) for extent, stride in self.layout.flat_modes()]
        if self.offset + sum(min(end, 0) for end in ends) < 0:
            raise ShapeError(
                f"{self.swizzle} cannot follow {self.offset} + {self.layout}, which is negative "
                "somewhere",
                remedy="swizzle numbers from 0 on: raise the offset",
            )

    def __call__(self, coordinate: IntTuple) -> int:
        return self.swizzle(self.offset + self.layout(coordinate))

    def __str__(self) -> str:
        offset = f"{self.offset} o " if self.offset else ""
        return f"{self.swizzle} o {offset}{self.layout}"
