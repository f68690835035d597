"""What a region carries: the data-flow sets, decided for each variable when the body has run.

In: the variables before and after the body, which of them the body read first, and which are
live behind the loop. Out: for each value of a variable whether it is unchanged, carried, or
over. With `read` for what was read before it was written and `written` for what changed, a
value is carried when written and (read or live after); for `parallel` that set is the ancestor
update, which is an error. Otherwise a written value ends with the region.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tilenest.capture.frames import Accesses, Poison, ended
from tilenest.capture.staged import (
    Kind,
    common_kind,
    handle_on,
    is_dtypeless,
    kind_of,
    value_as,
)
from tilenest.capture.variables import (
    Environment,
    NameVariable,
    SlotVariable,
    Variable,
    describe,
    is_number,
    is_unchanged,
    leaves,
    namesakes,
    rebuild,
    same_structure,
)
from tilenest.errors import (
    AncestorUpdateError,
    CaptureError,
    CarriedTypeError,
    SourceLocation,
    TileError,
)
from tilenest.ir import Block, BlockArgument, Value
from tilenest.language import Element, Session

LeafKey = tuple[int, int, str]
"""The identity of a list (0 for a name), the place of the leaf, the label."""
Promotions = Mapping[LeafKey, Kind]


class Leaf:
    """One value of a variable: what it is before, during and after the body."""

    __slots__ = (
        "argument",
        "final",
        "handle",
        "initial",
        "is_carried",
        "key",
        "kind",
        "variable",
    )

    def __init__(
        self,
        key: LeafKey,
        variable: Variable,
        initial: object,
        kind: Kind,
        argument: BlockArgument | None = None,
    ) -> None:
        self.key = key
        self.variable = variable
        self.initial = initial
        self.kind = kind
        self.argument = argument
        self.final: object = None
        self.is_carried = False
        self.handle: Element | None = None

    @property
    def label(self) -> str:
        return self.variable.label


class _Entry:
    """A variable, its leaves, and what it will hold behind the region (set by `decide`)."""

    __slots__ = ("after", "before", "during", "leaves", "variable")

    def __init__(
        self, variable: Variable, before: object, during: object, leaves: list[Leaf | object]
    ) -> None:
        self.variable = variable
        self.before = before
        self.during = during
        self.leaves = leaves
        self.after: Callable[[], object] | None = None


class Carries:
    """The variables of one region."""

    def __init__(
        self,
        session: Session,
        environment: Environment,
        accesses: Accesses,
        kind: str,
        is_live: Callable[[str], bool],
        has_iterations: bool,
    ) -> None:
        self.session = session
        self.environment = environment
        self.accesses = accesses
        self.kind = kind
        self.is_live = is_live
        self.has_iterations = has_iterations
        self._entries: list[_Entry] = []
        self._new_names: list[str] = []
        self._finals: dict[Value, int] = {}

    # Before the body ------------------------------------------------------------------------

    def open(self, body: Block, promotions: Promotions) -> None:
        """Give every tile, scalar and promoted number an argument of its own."""
        for variable, before in self.environment.entries():
            found = [
                self._open_leaf(body, variable, place, leaf, promotions)
                for place, leaf in enumerate(leaves(before))
            ]
            during = before
            if any(isinstance(leaf, Leaf) for leaf in found):
                during = rebuild(before, iter([self._during(leaf) for leaf in found]))
                variable.set(during)
            self._entries.append(_Entry(variable, before, during, found))

    def _open_leaf(
        self, body: Block, variable: Variable, place: int, value: object, promotions: Promotions
    ) -> Leaf | object:
        key = _key(variable, place)
        kind = promotions.get(key)
        if kind is None and isinstance(value, Element):
            kind = kind_of(value)
        if kind is None:
            return value
        argument = body.add_argument(kind.type, variable.label)
        return Leaf(key, variable, value, kind, argument)

    def _during(self, leaf: Leaf | object) -> object:
        if not isinstance(leaf, Leaf):
            return leaf
        assert leaf.argument is not None
        return handle_on(self.session, leaf.argument, leaf.kind.is_weak)

    # After the body -------------------------------------------------------------------------

    def decide(self) -> Promotions:
        """Classify every variable. Numbers that must become scalars are returned: run again."""
        self._new_names = list(self.environment.new_names())
        for entry in self._entries:
            for final in leaves(entry.variable.get()):
                if isinstance(final, Element):
                    self._finals[final.value] = self._finals.get(final.value, 0) + 1
        promotions: dict[LeafKey, Kind] = {}
        for entry in self._entries:
            promotions.update(self._decide(entry))
        return promotions

    def _decide(self, entry: _Entry) -> Promotions:
        after = entry.variable.get()
        if after is entry.during:
            entry.after = lambda: entry.before
            return {}
        if not self._is_needed(entry, after):
            label = entry.variable.label
            entry.after = lambda: ended(label, self.kind)
            return {}
        if isinstance(after, Poison) or not same_structure(entry.before, after):
            raise self._mismatch(entry.variable, entry.before, after)
        promotions: dict[LeafKey, Kind] = {}
        results: list[Leaf | object] = []
        for place, (leaf, final) in enumerate(zip(entry.leaves, leaves(after), strict=True)):
            if isinstance(leaf, Leaf):
                promotions.update(self._decide_staged(leaf, final))
                results.append(leaf)
            else:
                settled, promoted = self._decide_host(entry.variable, place, leaf, final)
                promotions.update(promoted)
                results.append(settled)
        entry.after = lambda: rebuild(entry.before, iter([_published(leaf) for leaf in results]))
        return promotions

    def _is_needed(self, entry: _Entry, after: object) -> bool:
        """Whether the variable was read before it was written, or is read behind the region."""
        if isinstance(entry.variable, SlotVariable):
            return True
        name = entry.variable.name
        return self.is_live(name) or self._is_read(entry, after)

    def _is_read(self, entry: _Entry, after: object) -> bool:
        staged = [leaf for leaf in entry.leaves if isinstance(leaf, Leaf)]
        if isinstance(entry.variable, NameVariable) and len(staged) < len(entry.leaves):
            return entry.variable.name in self.accesses.read
        own = [final.value for final in leaves(after) if isinstance(final, Element)]
        return any(
            leaf.argument is not None
            and (
                leaf.argument.has_uses
                or self._finals.get(leaf.argument, 0) > own.count(leaf.argument)
            )
            for leaf in staged
        )

    def _decide_staged(self, leaf: Leaf, final: object) -> Promotions:
        assert leaf.argument is not None
        if isinstance(final, Element) and final.value is leaf.argument:
            return {}
        kind = self._final_kind(leaf.variable, leaf.initial, final)
        self._check_update(leaf.variable)
        if is_dtypeless(leaf.initial):
            common = common_kind(leaf.kind, kind)
            if common is None or not _admits(leaf.initial, common):
                raise self._mismatch(leaf.variable, leaf.initial, final)
            if common != leaf.kind:
                return {leaf.key: common}
        elif common_kind(leaf.kind, kind) != leaf.kind:
            raise self._mismatch(leaf.variable, leaf.initial, final)
        leaf.final = final
        leaf.is_carried = True
        return {}

    def _decide_host(
        self, variable: Variable, place: int, before: object, after: object
    ) -> tuple[object, Promotions]:
        """What a host value becomes: itself, the body's when that is sure, or a scalar."""
        if is_unchanged(before, after):
            return before, {}
        is_read = isinstance(variable, SlotVariable) or variable.name in self.accesses.read
        if self.kind == "parallel" and (is_number(before) or isinstance(after, Element)):
            self._check_update(variable)
        if self.has_iterations and not is_read and not isinstance(after, Element | Poison):
            return after, {}
        if not is_number(before):
            raise self._mismatch(variable, before, after)
        kind = self._final_kind(variable, before, after)
        common = common_kind(kind_of(before), kind)
        if common is None:
            raise self._mismatch(variable, before, after)
        return before, {_key(variable, place): common}

    def _final_kind(self, variable: Variable, before: object, after: object) -> Kind:
        if not isinstance(after, Element) and not is_number(after):
            raise self._mismatch(variable, before, after)
        return kind_of(after)

    # Errors ---------------------------------------------------------------------------------

    def _check_update(self, variable: Variable) -> None:
        if self.kind != "parallel":
            return
        raise AncestorUpdateError(
            f"{variable.label!r} is defined outside the parallel region and updated inside it",
            remedy="store to a view instead, define the variable inside the region, or use "
            "serial or reduce for what one instance hands to the next",
            location=self._place(variable),
        )

    def _mismatch(self, variable: Variable, before: object, after: object) -> TileError:
        if isinstance(after, Element) or is_number(before) or isinstance(before, Element):
            return CarriedTypeError(
                f"{variable.label!r} is {describe(before)} before the {self.kind} region and "
                f"{describe(after)} at the end of its body",
                remedy="keep one dtype and shape: start with a value of the type the body assigns "
                "(tn.zeros, tn.full, tn.scalar), or cast at the end of the body"
                f"{namesakes(before, after)}",
                location=self._place(variable),
            )
        return CaptureError(
            f"{variable.label!r} is {describe(before)} before the {self.kind} region and "
            f"{describe(after)} at the end of its body; only tiles, scalars and numbers can change",
            remedy="use another name inside the region, or decide it before the region",
            location=self._place(variable),
        )

    def _place(self, variable: Variable) -> SourceLocation | None:
        if isinstance(variable, NameVariable):
            return self.accesses.places.get(variable.name)
        return self.accesses.places.get(f"{id(variable.items)}[{variable.index}]")

    # Results --------------------------------------------------------------------------------

    @property
    def carried(self) -> list[Leaf]:
        """The values that go from one iteration to the next and out, in order."""
        return [leaf for leaf in self._staged_leaves() if leaf.is_carried]

    def _staged_leaves(self) -> list[Leaf]:
        return [leaf for entry in self._entries for leaf in entry.leaves if isinstance(leaf, Leaf)]

    def drop_unused(self, body: Block) -> None:
        """Uses of unchanged values go to the incoming ones; their arguments disappear."""
        for leaf in self._staged_leaves():
            if leaf.is_carried:
                continue
            argument = leaf.argument
            assert argument is not None
            if argument.has_uses:
                argument.replace_all_uses_with(value_as(self.session, leaf.initial, leaf.kind))
            body.remove_argument(argument.index)

    def publish(self) -> None:
        """Bind what every variable holds behind the region."""
        for entry in self._entries:
            assert entry.after is not None
            entry.variable.set(entry.after())
        for name in self._new_names:
            NameVariable(self.environment.frame, name).set(ended(name, self.kind))


def _key(variable: Variable, place: int) -> LeafKey:
    identity = id(variable.items) if isinstance(variable, SlotVariable) else 0
    return identity, place, variable.label


def _published(leaf: Leaf | object) -> object:
    if not isinstance(leaf, Leaf):
        return leaf
    return leaf.handle if leaf.is_carried else leaf.initial


def _admits(number: object, kind: Kind) -> bool:
    return common_kind(kind_of(number), kind) == kind
