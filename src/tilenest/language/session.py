"""The capture session: where the operations that kernels write are inserted.

In: a module, the function being built and an insertion point. Out: the module filled with
operations. Everything in this room finds the current session through a context variable, so kernels
are written as plain calls. Capture installs two hooks: `inline` interprets a Python function on
staged arguments, `on_stage` cuts a pipeline. `Staged` and `Handle` are the bases of what kernels
hold: values, and the nests they stand in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from tilenest.errors import CaptureError, ScopeError
from tilenest.ir import (
    Block,
    Builder,
    Function,
    Module,
    Operation,
    Region,
    TileType,
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


class Session:
    """One capture in progress.

    `bounds` and `math` are the kernel's defaults. `nest_stack` holds the handles of the open nests,
    outermost first; capture pushes and pops them. `builder.location` is the user's place that new
    operations get.
    """

    __slots__ = (
        "bounds",
        "builder",
        "element_depth",
        "function",
        "inline",
        "math",
        "module",
        "nest_stack",
        "on_stage",
    )

    def __init__(
        self,
        module: Module,
        function: Function,
        builder: Builder,
        bounds: str = "zero",
        math: str = "strict",
    ) -> None:
        self.module = module
        self.function = function
        self.builder = builder
        self.bounds = bounds
        self.math = math
        self.inline: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any] = _call
        self.on_stage: Callable[[Handle, str | None], None] = _refuse_stage
        self.nest_stack: list[Handle] = []
        self.element_depth = 0
        """How many element bodies (`tn.map`) are open: inside, only scalars may be computed."""

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
        if self.element_depth:
            self._check_element_operation(operation)
        return self.builder.insert(operation)

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
    def element_body(self, block: Block) -> Iterator[None]:
        """Fill the body of an element map: scalars only until the context ends."""
        self.element_depth += 1
        try:
            with self.builder.at_end(block):
                yield
        finally:
            self.element_depth -= 1

    def _check_element_operation(self, operation: Operation) -> None:
        values = [*operation.operands, *operation.results]
        if any(isinstance(value.type, TileType | ViewType) for value in values):
            raise CaptureError(
                f"{operation.NAME} cannot be used inside tn.map: its function computes one element",
                remedy="use whole tiles outside the map, or only scalars inside it",
            )


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


def _call(
    implementation: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    return implementation(*arguments, **keywords)


def _refuse_stage(handle: Handle, name: str | None) -> None:
    raise CaptureError(
        f"stage({name!r}) is used in a {handle.kind} nest that no kernel captures",
        remedy="call step.stage() directly in the body of `for step in nest.pipeline(...)`",
    )
