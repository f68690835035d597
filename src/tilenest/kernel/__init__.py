"""`@tn.kernel`, and the kernel and compiled objects behind it."""

from tilenest.kernel.compiled import Compiled
from tilenest.kernel.decorators import kernel
from tilenest.kernel.kernel import Kernel

__all__ = ["Compiled", "Kernel", "kernel"]
