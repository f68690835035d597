"""Names that begin with two underscores mean in a kernel what they mean to Python's own call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.unit.capture.kernels import poisoned, run

__outside = 11.0
_Private__outside = 13.0


class Private:
    """Attributes that are named like the private ones, unmangled, hold other numbers."""

    def __init__(self) -> None:
        self.__value = 3.0
        setattr(self, "__value", 100.0)
        self.__named__ = 5.0
        self._value = 7.0

    def attribute(self, x: Any) -> Any:
        return x * self.__value

    def named(self, x: Any) -> Any:
        return x * self.__named__ + self._value

    def local(self, x: Any) -> Any:
        __scale = self.__value
        for __i in range(3):
            __scale = __scale + __i
        return x * __scale

    def nested(self, x: Any) -> Any:
        def __inner(__y: Any, *, __z: Any = 2.0) -> Any:
            return __y * self.__value + __z

        __again: Callable[[Any], Any] = lambda __w: __inner(__w) + 1.0  # noqa: E731  # a lambda is one of the forms
        return __again(x)

    def comprehension(self, x: Any) -> Any:
        return x * sum([__i * self.__value for __i in range(4)])

    def unpacked(self, x: Any) -> Any:
        __a, (__b, *__c) = 1.0, (2.0, 3.0, 4.0)
        return x * (__a + __b + __c[1])

    def keyword(self, x: Any) -> Any:
        # Python spells names of parameters anew, and those of keywords not.
        return self.__times(x, _Private__by=4.0)  # type: ignore[call-arg]  # spelled by hand

    def __times(self, x: Any, __by: float = 2.0) -> Any:
        return x * __by

    def outside(self, x: Any) -> Any:
        return x * __outside

    formula = lambda self, __x: __x * self.__value  # noqa: E731  # a lambda in a class

    class Inner:
        """The innermost class counts."""

        __value = 17.0

        def attribute(self, x: Any) -> Any:
            return x * self.__value


class __Under:
    """The class's own underscores are left off."""

    def __init__(self) -> None:
        self.__value = 19.0
        self._Under__other = 23.0

    def attribute(self, x: Any) -> Any:
        return x * self.__value + self.__other  # type: ignore[attr-defined]  # spelled by hand


class __:  # noqa: N801  # what the name is about
    """A class of underscores alone makes nothing private."""

    __value = 29.0

    def attribute(self, x: Any) -> Any:
        return x * self.__value


def made_inside() -> Callable[[Any], Any]:
    """A class in a function."""
    __factor = 31.0

    class Local:
        __value = 37.0

        def attribute(self, x: Any) -> Any:
            return x * self.__value

    local = Local()
    return lambda x: local.attribute(x) + __factor


UNDER, ONLY = globals()["__Under"], globals()["__"]
METHODS: dict[str, Callable[[Any], Any]] = {
    name: getattr(Private(), name)
    for name in (
        *("attribute", "named", "local", "nested", "comprehension", "unpacked"),
        *("keyword", "outside", "formula"),
    )
}
METHODS |= {
    "inner": Private.Inner().attribute,
    "under": UNDER().attribute,
    "only": ONLY().attribute,
    "made inside": made_inside(),
}


@pytest.mark.parametrize("name", METHODS)
def test_private_names_are_those_of_python(name: str) -> None:
    method = METHODS[name]

    def body(x: Any, y: Any) -> None:
        y(0, 1).store(method(x[0, 1]))

    wanted = method(np.float32(2.0))
    found = poisoned(1)
    run(body, np.full(1, 2.0, np.float32), found)
    assert found[0] == np.float32(wanted)


class Kernels:
    """Kernels that are methods, and names of parameters."""

    def __init__(self) -> None:
        self.__value = 3.0
        setattr(self, "__value", 100.0)

    def kernel(self) -> Callable[..., None]:
        def scaled(__x: Any, __y: Any) -> None:
            __y(0, 1).store(__x[0, 1] * self.__value)

        return scaled


def test_a_kernel_in_a_method_has_private_names() -> None:
    y = poisoned(1)
    run(Kernels().kernel(), np.full(1, 2.0, np.float32), y)
    assert y[0] == 6.0
