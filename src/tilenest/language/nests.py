"""Execution nests as kernels write them: requests to open one, and the handles of open ones.

In: a kind (parallel, serial, pipeline, reduce), a domain and options. Out: a `Nest`, which capture
turns into a region when a `for` runs over it, and a `NestHandle` for the loop's variable: the
region's coordinates, and the methods that open nests inside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Never

from tilenest.analysis import enclosing
from tilenest.dialects import Parallel, Pipeline, Serial, Synchronize
from tilenest.errors import CaptureError, DTypeError, RankError, ScopeError, ShapeError, shown
from tilenest.language.positions import host_int
from tilenest.language.session import Handle, Session, current_session
from tilenest.language.values import Scalar
from tilenest.layouts import Dim, check_kind
from tilenest.opaque import Opaque
from tilenest.records import record

Bound = int | Scalar
"""A host int, or an integer scalar known at run time."""


class Scope(Enum):
    """Where a parallel nest's instances run (`tn.exec`)."""

    device = "device"
    group = "group"
    subgroup = "subgroup"
    worker = "worker"
    vector = "vector"


class ReductionPolicy(Enum):
    """Which orders a reduction may combine its contributions in (`tn.reduction`).

    A tree may also permute them (`unordered_tree`) or only regroup them (`ordered_tree`); a fold
    keeps the chain from the left, or from the right with the element as left operand.
    """

    unordered_tree = "unordered_tree"
    ordered_tree = "ordered_tree"
    fold_left = "fold_left"
    fold_right = "fold_right"


@record(eq=False)
class DomainAxis(Opaque):
    """One axis of a nest: `range(lower, upper, step)`, and the dim it runs over, if any."""

    lower: Bound
    upper: Bound
    step: Bound = 1
    dim: Dim | None = None

    def _misuse(self) -> CaptureError:
        return CaptureError(
            "a range with a run-time bound is used as a list of numbers",
            remedy="loop over it, as for i in range(n)",
        )


@record(eq=False)
class Nest(Opaque):
    """A nest that `for` may open: `for handle in nest`. Capture reads the fields.

    `parent` is the handle whose method made it; the functions at the root have a root handle there.
    """

    kind: str
    axes: tuple[DomainAxis, ...]
    parent: Handle | None = None
    scope: Scope | None = None
    window: int = 0
    interval: int = 1
    policy: ReductionPolicy = ReductionPolicy.unordered_tree

    @property
    def dims(self) -> tuple[Dim | None, ...]:
        """One dim (or None) per axis."""
        return tuple(axis.dim for axis in self.axes)

    def _misuse(self) -> CaptureError:
        return CaptureError(
            f"a {self.kind} nest is used as a value",
            remedy="loop over it, and take the coordinate of the loop's variable: block.index()",
        )

    def __iter__(self) -> Iterator[NestHandle]:
        raise CaptureError(
            f"a {self.kind} nest is iterated by Python code that is not captured",
            remedy="write the loop in the kernel, or in a Python function that the kernel calls",
        )


class NestHandle(Handle, Opaque):
    """The variable of a loop over a nest. Valid inside the loop's body only (ScopeError after)."""

    __slots__ = ("nest",)

    def __init__(self, session: Session, nest: Nest, indices: Sequence[Scalar]) -> None:
        super().__init__(session, nest.kind, nest.parent, indices, nest.dims)
        self.nest = nest

    def index(self, axis: Dim | None = None) -> Scalar | tuple[Scalar, ...]:
        """The coordinate: one scalar for a nest of rank 1, else a tuple.

        With an axis, its coordinate in this nest or the nearest nest around it that runs over it.
        """
        self._check_active("index()")
        if axis is not None:
            return self._index_along(axis)
        if not self.indices:
            raise RankError(
                "the root has no coordinate", remedy="take the index of a nest you loop over"
            )
        scalars = _scalars(self)
        return scalars[0] if len(scalars) == 1 else scalars

    def _misuse(self) -> CaptureError:
        return CaptureError(
            f"the handle of a {self.kind} nest is used as a number",
            remedy="take its coordinate: handle.index()",
        )

    def parallel(self, *domain: object, scope: Scope | None = None) -> Nest:
        """Independent instances inside this nest; see `tn.parallel`."""
        return Nest("parallel", self._axes(domain), self, scope=_checked_scope(scope))

    def serial(self, *domain: object) -> Nest:
        """Ordered instances inside this nest; see `tn.serial`."""
        return Nest("serial", self._axes(domain), self)

    def pipeline(self, *domain: object, window: int = 0, interval: int = 1) -> Nest:
        """Ordered instances that may overlap inside this nest; see `tn.pipeline`."""
        return Nest(
            "pipeline",
            self._axes(domain),
            self,
            window=_at_least(0, window, "window"),
            interval=_at_least(1, interval, "interval"),
        )

    def reduce(
        self, *domain: object, policy: ReductionPolicy = ReductionPolicy.unordered_tree
    ) -> Nest:
        """Contributions combined into the variables that the body updates, under `policy`."""
        if not isinstance(policy, ReductionPolicy):
            raise _policy_error(policy)
        return Nest("reduce", self._axes(domain), self, policy=policy)

    def stage(self, name: str | None = None) -> None:
        """Begin the next stage of this pipeline's body."""
        self._check_active("stage()")
        if self.kind != "pipeline":
            raise CaptureError(
                f"stage() is used on a {self.kind} nest",
                remedy="call it on the loop variable of a pipeline",
            )
        check_kind(name, str | None, "the name of a stage")
        self.session.on_stage(self, name)

    def _axes(self, domain: tuple[object, ...]) -> tuple[DomainAxis, ...]:
        self._check_active("a nest")
        if self.session.element_body is not None:
            raise CaptureError(
                "a nest is opened inside tn.map, whose function computes one element",
                remedy="open the nest outside the map",
            )
        innermost = self.session.innermost
        if innermost is not None and innermost is not self:
            raise ScopeError(
                f"a nest is opened in a {self.kind} nest while a {innermost.kind} nest inside it "
                "is open",
                remedy="use the loop variable of the innermost loop, as step.serial(...)",
            )
        return domain_axes(domain)

    def _index_along(self, axis: Dim) -> Scalar:
        handle: Handle | None = self
        while handle is not None:
            if axis in handle.dims:
                return _scalars(handle)[handle.dims.index(axis)]
            handle = handle.parent
        given: object = axis
        raise ShapeError(
            "neither this nest nor one around it runs over "
            f"{given if isinstance(given, Dim) else shown(given)}",
            remedy="pass the axis itself to the nest, as tn.parallel(axis)",
        )

    def _check_active(self, what: str) -> None:
        if not self.active or self.session is not current_session():
            raise ScopeError(
                f"{what} is used on a {self.kind} nest that has ended",
                remedy="use the loop variable inside its loop only; assign what you need from it "
                "to a variable",
            )

    def __iter__(self) -> Never:
        raise CaptureError(
            f"the handle of a {self.kind} nest cannot be iterated or unpacked",
            remedy="unpack its coordinates, as i, j = block.index()",
        )


def root() -> NestHandle:
    """The kernel itself as a nest, for `tn.root().reduce(...)`."""
    return NestHandle(current_session(), Nest("root", ()), ())


def parallel(*domain: object, scope: Scope | None = None) -> Nest:
    """Independent instances, one per point of the domain, at the root of the kernel.

    A domain item is an int, a run-time integer scalar, a `range(a, b, step)` or a `tn.axis`. That
    the instances do not interfere is your promise. `scope` asks for a level of `tn.exec`.
    """
    return root().parallel(*domain, scope=scope)


def serial(*domain: object) -> Nest:
    """Instances in lexicographic order, which may carry variables, at the root of the kernel."""
    return root().serial(*domain)


def pipeline(*domain: object, window: int = 0, interval: int = 1) -> Nest:
    """As `serial`, and instances may overlap: `window` of them at a time (0: as many as fit), a new
    one every `interval` steps. `stage()` cuts the body into stages."""
    return root().pipeline(*domain, window=window, interval=interval)


def domain_axes(domain: Sequence[object]) -> tuple[DomainAxis, ...]:
    """The axes of a nest's domain; at least one."""
    if not domain:
        raise RankError(
            "a nest has no domain", remedy="give it at least one item, as tn.parallel(n)"
        )
    return tuple(_domain_axis(item) for item in domain)


def _domain_axis(item: object) -> DomainAxis:
    if isinstance(item, DomainAxis):
        return item
    if isinstance(item, Dim):
        return DomainAxis(0, item.extent, 1, item)
    if isinstance(item, range):
        return range_axis(item.start, item.stop, item.step)
    return range_axis(0, item, 1)


def range_axis(lower: object, upper: object, step: object) -> DomainAxis:
    """`range(lower, upper, step)` of host ints and integer scalars; a host step is positive."""
    axis = DomainAxis(_bound(lower), _bound(upper), _bound(step))
    if isinstance(axis.step, int) and axis.step <= 0:
        raise ShapeError(
            f"a nest runs over a range with step {shown(axis.step)}",
            remedy="count upwards and compute the coordinate, as i = n - 1 - step.index()",
        )
    return axis


def _bound(item: object) -> Bound:
    number = host_int(item)
    if number is not None:
        return number
    if isinstance(item, Scalar) and item.dtype.is_integer:
        item.session.value_of(item)
        return item
    raise DTypeError(
        f"{shown(item)} is used as the bound of a nest",
        remedy="use an int, an integer scalar, a range or a tn.axis",
    )


def _scalars(handle: Handle) -> tuple[Scalar, ...]:
    scalars = tuple(index for index in handle.indices if isinstance(index, Scalar))
    assert len(scalars) == len(handle.indices)
    return scalars


def _checked_scope(scope: Scope | None) -> Scope | None:
    if scope is None or isinstance(scope, Scope):
        return scope
    raise CaptureError(
        f"{shown(scope)} is no scope of execution", remedy="use one of tn.exec, as tn.exec.worker"
    )


def _policy_error(policy: object) -> CaptureError:
    return CaptureError(
        f"{shown(policy)} is no reduction policy",
        remedy="use one of tn.reduction, as tn.reduction.fold_left",
    )


def _at_least(least: int, value: object, name: str) -> int:
    """An option of a pipeline."""
    number = host_int(value)
    if number is None or number < least:
        raise CaptureError(
            f"a pipeline has {name}={shown(value)}", remedy=f"use an int of at least {least}"
        )
    return number


def sync(nest: NestHandle) -> None:
    """Let all instances of a parallel nest come here before any goes on; what they stored is then
    seen by all of them. `nest` is the handle of the nearest one, or `tn.root()` outside of any."""
    session = current_session()
    around = [handle for handle in session.nest_stack if handle.kind == "parallel"]
    nearest = around[-1] if around else None
    kind = getattr(nest, "kind", None)
    if nest is not nearest and not (nearest is None and kind == "root"):
        given = shown(nest) if kind is None else f"the handle of a {kind} nest"
        raise CaptureError(
            f"tn.sync is given {given}, which is not that of the nearest parallel nest",
            remedy="synchronize the instances of the parallel nest that the call stands in",
        )
    for owner in enclosing(session.insert(Synchronize())):
        if isinstance(owner, Parallel):
            return
        if not isinstance(owner, Serial | Pipeline):
            raise CaptureError(
                "tn.sync stands in a run-time `if` or a reduction, where some instances may not "
                "come",
                remedy="call it in the body of the nest itself, or in a serial nest in it",
            )
