"""`@tn.kernel`: from a function to a kernel.

In: a function, or the defaults of the kernel's accesses and mathematics. Out: a `Kernel`. Nothing
of the function's source is read until the first call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

from tilenest.errors import TargetError
from tilenest.kernel.kernel import BOUNDS, Kernel, check_choice

MATHS = ("strict", "fast")


@overload
def kernel(function: Callable[..., None], /) -> Kernel: ...
@overload
def kernel(
    *, bounds: str = "zero", math: str = "strict"
) -> Callable[[Callable[..., None]], Kernel]: ...
def kernel(
    function: Callable[..., None] | None = None,
    /,
    *,
    bounds: str = "zero",
    math: str = "strict",
) -> Kernel | Callable[[Callable[..., None]], Kernel]:
    """Make a function a kernel: `@tn.kernel`, or `@tn.kernel(bounds="assume")`.

    `bounds` is what accesses outside an array do unless they say it themselves: "zero", "assume"
    or "check". `math` is "strict": the elementary functions are within 2 ulp. "fast" is a name for
    what no target has yet, and is refused.
    """
    check_choice("bounds", bounds, BOUNDS)
    check_choice("math", math, MATHS)
    if math == "fast":
        raise TargetError(
            'math="fast" is not in this version: no target has functions with larger errors',
            'leave it out, or write math="strict"',
        )

    def make(decorated: Callable[..., None]) -> Kernel:
        return Kernel(decorated, bounds=bounds)

    return make if function is None else make(function)
