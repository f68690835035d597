"""What a function was specialised on, as facts about a call's arguments that its text can hold.

In: numbers seen at capture, or written down by hand, and calls. Out: `Guard` records in the
attribute `guards` of a function, each by the position of an argument, and whether a call meets one:
the only place that says what guards mean. A call may enter the function if it meets every one of
them; `otherwise` says what becomes of other calls. Compiled code tests the same on its own. Once
the code is planned, a `Capability` beside them is what it needs of the machine, which is asked
before the code is loaded.
"""

from __future__ import annotations

from tilenest.ir import Function
from tilenest.records import record

GUARD_KINDS = ("extent", "stride", "unit_stride", "first_alike")
AXIS_KINDS = GUARD_KINDS[:-1]
"""Those that are about one axis."""
OTHERWISE = ("compile", "refuse")
"""What happens to a call that meets not every guard: another variant is made, or it is an error."""


@record
class PassedArray:
    """An array of a call: extents and strides in elements, None for those that are not known, and
    the first argument that is the same array; one without elements is the same as none before."""

    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    alike: int

    def uses_stride(self, axis: int) -> bool:
        """Whether any element lies where it does because of this stride."""
        return 0 not in self.shape and self.shape[axis] != 1

    def __str__(self) -> str:
        return f"extents {list(self.shape)} and strides {list(self.strides)}"


PassedArguments = tuple[PassedArray | None, ...]
"""The arguments of a call; None for those that are no arrays."""


@record
class Guard:
    """One fact about `argument`, by its kind.

    The extent of `axis` is `value`; its stride in elements is `value`; its stride is 1, or is not
    where `value` is 0; the first argument that is the same array is argument `value`, itself if it
    is the same as none before. A stride that is not used may be any: callers and the libraries
    between say what they like there.
    """

    kind: str
    argument: int
    value: int
    axis: int | None = None

    def is_met(self, call: PassedArguments) -> bool:
        """Whether a call is known to meet it."""
        array = call[self.argument]
        if self.kind == "first_alike":
            return self.value == (self.argument if array is None else array.alike)
        assert array is not None and self.axis is not None, self
        extent, stride = array.shape[self.axis], array.strides[self.axis]
        match self.kind:
            case "extent":
                return extent == self.value
            case "stride":
                return stride == self.value or not array.uses_stride(self.axis)
            case "unit_stride":
                is_met = stride is not None and (stride == 1) == bool(self.value)
                return is_met or not array.uses_stride(self.axis)
        raise AssertionError(self)

    def __str__(self) -> str:
        place = f"argument {self.argument}"
        if self.kind == "first_alike":
            alone = "the same array as none before"
            return f"{place} is {alone if self.value == self.argument else self._same}"
        what = "stride" if "stride" in self.kind else "extent"
        return f"{what} {self.axis} of {place} is {self._number}"

    @property
    def _same(self) -> str:
        return f"the same array as argument {self.value}"

    @property
    def _number(self) -> str:
        if self.kind == "unit_stride":
            return "1" if self.value else "not 1"
        return str(self.value)


@record
class Capability:
    """A feature that the machine has, by the name in its target's list."""

    feature: str

    def __str__(self) -> str:
        return f"the machine has {self.feature}"


def guards_of(function: Function) -> tuple[Guard, ...] | None:
    """The guards about calls; None where a function is called with whatever its types say."""
    stated: object = function.attributes.get("guards")
    if not isinstance(stated, tuple):
        return None
    return tuple(guard for guard in stated if not isinstance(guard, Capability))


def capabilities_of(function: Function) -> frozenset[str]:
    """The features that a function states to need."""
    stated: object = function.attributes.get("guards")
    if not isinstance(stated, tuple):
        return frozenset()
    return frozenset(guard.feature for guard in stated if isinstance(guard, Capability))


def otherwise_of(function: Function) -> str | None:
    """What happens to calls that the guards turn away: one of `OTHERWISE`, or `@` and the name of
    the function that takes them."""
    otherwise: str | None = function.attributes.get("otherwise")
    return otherwise
