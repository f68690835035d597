"""The capture session: where the operations that kernels write are inserted.

In: a module, the function being built and an insertion point. Out: the module filled with
operations. Everything in this room finds the current session through a context variable, so kernels
are written as plain calls. Capture installs two hooks: `on_call` interprets a Python function on
staged arguments, `on_stage` cuts a pipeline. `Staged` and `Handle` are the bases of what kernels
hold: values, and the nests they stand in.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any, TypeVar

from tilenest.errors import CaptureError, ScopeError, shown
from tilenest.ir import (
    Block,
    BlockArgument,
    Builder,
    Function,
    Module,
    Operation,
    Region,
    TileType,
    Type,
    Value,
    ViewType,
)
from tilenest.layouts import Dim

OperationT = TypeVar("OperationT", bound=Operation)
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_current: ContextVar[Session | None] = ContextVar("tilenest_session", default=None)


class Staged:
    """What a kernel holds instead of data: an IR value of one session."""

    __slots__ = ("session", "value")

    def __init__(self, value: Value, session: Session) -> None:
        if not isinstance(value, Value):
            raise CaptureError(
                f"tn.{type(self).__name__} is called with {shown(value)}",
                remedy="views are what a kernel is given; load tiles and scalars from them, or "
                "make some with tn.zeros, tn.full, tn.scalar and tn.memory",
            )
        self.value = value
        self.session = session


class Handle:
    """An open nest: its kind, its parent, and one index scalar and one dim (or None) per axis.

    `active` is true while the nest's region is open; capture clears it when the region closes.
    """

    __slots__ = ("active", "dims", "indices", "kind", "parent", "session")

    def __init__(
        self,
        session: Session,
        kind: str,
        parent: Handle | None,
        indices: Sequence[Staged] = (),
        dims: Sequence[Dim | None] = (),
    ) -> None:
        self.session = session
        self.kind = kind
        self.parent = parent
        self.indices = tuple(indices)
        self.dims = tuple(dims)
        self.active = True


class ElementBody:
    """The body of an element map while its function runs: scalars only.

    `captured` maps the scalars it uses from outside to the arguments that stand for them inside.
    """

    __slots__ = ("block", "captured")

    def __init__(self, block: Block) -> None:
        self.block = block
        self.captured: dict[Value, BlockArgument] = {}

    def inside(self, value: Value) -> Value:
        """What stands for `value` in the body."""
        _check_element_type(value.type)
        block = value.defining_block
        if block is not None and _encloses(self.block, block):
            return value
        if value not in self.captured:
            self.captured[value] = self.block.add_argument(value.type)
        return self.captured[value]


class Session:
    """One capture in progress.

    `bounds` is the kernel's default. `nest_stack` holds the handles of the open nests, outermost
    first; capture pushes and pops them. `builder.location` is the user's place that new
    operations get.
    """

    __slots__ = (
        "bounds",
        "builder",
        "element_body",
        "function",
        "module",
        "nest_stack",
        "on_call",
        "on_stage",
        "sites",
    )

    def __init__(
        self,
        module: Module,
        function: Function,
        builder: Builder,
        bounds: str = "zero",
    ) -> None:
        self.module = module
        self.function = function
        self.builder = builder
        self.bounds = bounds
        self.on_call: Callable[[Callable[..., Any], tuple[Any, ...]], Any] = _call
        self.on_stage: Callable[[Handle, str | None], None] = _refuse_stage
        self.nest_stack: list[Handle] = []
        self.sites = 0
        self.element_body: ElementBody | None = None
        """The body of the `tn.map` that is being captured."""

    @contextmanager
    def active(self) -> Iterator[Session]:
        """Make this the current session for the duration of the context."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    @property
    def innermost(self) -> Handle | None:
        """The innermost open nest, None at the root."""
        return self.nest_stack[-1] if self.nest_stack else None

    def insert(self, operation: OperationT) -> OperationT:
        """Put an operation at the insertion point, at the current location."""
        if self.element_body is not None:
            for result in operation.results:
                _check_element_type(result.type)
        return self.builder.insert(operation)

    def inline(self, function: Callable[..., Any], arguments: tuple[Any, ...], whose: str) -> Any:
        """What a function that `whose` was given makes of these arguments."""
        if not _takes(function, arguments):
            raise CaptureError(
                f"{whose} is given {shown(function)}, which cannot be called with "
                f"{len(arguments)} arguments",
                remedy=f"give it a function of {len(arguments)} positional arguments",
            )
        return self.on_call(function, arguments)

    def next_site(self, bounds: str) -> int:
        """The number of a new access among those that check their bounds, 0 for any other."""
        if bounds != "check":
            return 0
        self.sites += 1
        return self.sites - 1

    def value_of(self, staged: Staged) -> Value:
        """The IR value of a staged object, once it is sure that it can be used here.

        Its block must be the current one or enclose it: an operation that owns a region is linked
        before its region is filled. Raises ScopeError for a value of another capture or of a region
        that has ended.
        """
        if staged.session is not self:
            raise ScopeError(
                "a value of another kernel call is used here",
                remedy="compute it in this kernel, or pass it as an argument",
            )
        self.check_visible(staged.value)
        if self.element_body is not None:
            return self.element_body.inside(staged.value)
        return staged.value

    def check_visible(self, value: Value) -> None:
        """Raise ScopeError unless the value's region is still open."""
        if not _encloses(value.defining_block, self.builder.block):
            raise ScopeError(
                "a value is used after the region that computes it has ended",
                remedy="assign it to a variable that is defined before the region (it is then "
                "carried out), or move this use into the region",
            )

    @contextmanager
    def filling(self, body: ElementBody) -> Iterator[None]:
        """Insert into an element body until the context ends."""
        saved, self.element_body = self.element_body, body
        try:
            with self.builder.at_end(body.block):
                yield
        finally:
            self.element_body = saved


def current_session() -> Session:
    """The session that kernels write to. Raises CaptureError outside a kernel."""
    session = _current.get()
    if session is None:
        raise CaptureError(
            "a tile operation is used outside a kernel",
            remedy="call it from a function decorated with @tn.kernel, or from one it calls",
        )
    return session


def function(implementation: FunctionT) -> FunctionT:
    """Mark a library function as written in the kernel language: capture interprets its source."""
    if not isinstance(implementation, FunctionType):
        raise CaptureError(
            f"@tn.function decorates a {type(implementation).__name__}, not a function",
            remedy="decorate a function defined with def",
        )
    implementation.__tile_function__ = True  # type: ignore[attr-defined]  # a mark on the function
    return implementation


def is_tile_function(candidate: object) -> bool:
    """Whether `candidate` was marked by `function`."""
    return getattr(candidate, "__tile_function__", False) is True


def _encloses(outer: Block | None, inner: Block) -> bool:
    block: Block | None = inner
    while block is not None and block is not outer:
        block = _parent_block(block)
    return block is not None


def _parent_block(block: Block) -> Block | None:
    region: Region | None = block.parent
    owner = None if region is None else region.parent
    return owner.parent if isinstance(owner, Operation) else None


def _check_element_type(type_: Type) -> None:
    if isinstance(type_, TileType | ViewType):
        raise CaptureError(
            "a tile or view is used inside tn.map, whose function computes one element",
            remedy="use only scalars inside, and whole tiles outside the map",
        )


def _call(implementation: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return implementation(*arguments)


def _takes(function: object, arguments: tuple[Any, ...]) -> bool:
    """Whether it can be called with these; a builtin that does not say what it takes may be."""
    if not callable(function):
        return False
    try:
        inspect.signature(function).bind(*arguments)
    except ValueError:
        return True
    except TypeError:
        return False
    return True


def _refuse_stage(handle: Handle, name: str | None) -> None:
    raise CaptureError(
        f"stage({shown(name)}) is used in a {handle.kind} nest that no kernel captures",
        remedy="call step.stage() directly in the body of `for step in nest.pipeline(...)`",
    )
