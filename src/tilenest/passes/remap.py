"""Rearranging the execution levels of a program: split, fuse, unite, permute, and the like.

In: a module and the name of a nest. Out: a `Remapping`, a value: every step gives another one and
changes nothing. `proofs()` says what is known of every law; `apply()` rewrites the nests, every use
of their coordinates, and the states they hand on, all or nothing, and lets the function remember
the remap with whom it was proven for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilenest.analysis import (
    ExecChain,
    applied_remap,
    chain_along,
    chain_to,
    chains_of,
    has_branches,
    kept_boundaries,
    observers_of,
    placed_in,
    proofs_of_record,
    remaps_of,
)
from tilenest.decisions import Decision
from tilenest.dialects import REDUCTION_POLICIES, Nest
from tilenest.errors import ArgumentTypeError, RemapError, VerifyError, shown
from tilenest.execution import (
    Definition,
    ExecLevel,
    ExecRemap,
    ExecStructure,
    Observer,
    PrefixCut,
    Reanchor,
    RemapProof,
    coalesce,
    compose,
    fuse,
    identity,
    insert_unit,
    judge,
    permute,
    remove_unit,
    reshape,
    split,
    unite,
)
from tilenest.ir import Function, Module, Rewriter, Value, names_in_text
from tilenest.layouts import check_kind, tuple_of
from tilenest.passes.remap_nests import ChainBuilder, stretches_of
from tilenest.passes.remap_places import Replacing
from tilenest.records import record, replace
from tilenest.verify import verify_module


@record(eq=False)
class Remapping:
    """The levels of a run of nests, and how they are to be rearranged."""

    module: Module
    chain: ExecChain
    remap: ExecRemap
    definitions: tuple[Definition, ...] = ()
    """of every name of an extent that a step made"""
    reanchors: tuple[Reanchor, ...] = ()
    """what goes with the remap: operations that are repeated in deeper levels"""
    expected: tuple[Observer, ...] = ()
    """who does not look at the levels yet, and shall find them as well"""

    @property
    def levels(self) -> ExecStructure:
        """The levels as they will be, outermost first."""
        return self.remap.new

    @property
    def observers(self) -> tuple[Observer, ...]:
        """Who looks at the levels as they are, and has to find what it sees."""
        return (*observers_of(self.chain), *self.expected)

    def __str__(self) -> str:
        return f"{self.chain.structure} -> {self.levels}: {self.remap}"

    def __repr__(self) -> str:
        return f"<Remapping of {self.chain.structure} to {self.levels}>"

    # Steps -----------------------------------------------------------------------------------
    #
    # Each of them raises a `RemapError` where it names a level that is not there, or one twice.

    def split(self, level: str, factor: int) -> Remapping:
        """A level as blocks of `factor` instances; a tail is a predicate. Raises a `RemapError` for
        a factor below 1, and an `ArgumentTypeError` for one that is no whole number."""
        return self.then(split(self._named(level), level, factor))

    def fuse(self, *levels: str) -> Remapping:
        """Adjacent levels as one, the last of them fastest. Raises a `RemapError` for levels that
        do not follow one another, or differ in kind, policy or scope."""
        return self.then(fuse(self._named(*levels), *levels))

    def unite(self, *levels: str) -> Remapping:
        """Adjacent levels as axes of one nest; each of them stays the level it is. Raises a
        `RemapError` as `fuse` does."""
        return self.then(unite(self._named(*levels), *levels))

    def permute(self, *levels: str) -> Remapping:
        """Levels in another order; those that are not named stay where they are. Raises a
        `RemapError` for a name that is no level's; whether the order is legal, `apply` says."""
        structure, named = self._named(*levels), iter(levels)
        order = [
            next(named) if level.identity in levels else level.identity
            for level in structure.levels
        ]
        return self.then(permute(structure, order))

    def reshape(self, levels: tuple[str, ...], extents: tuple[int, ...]) -> Remapping:
        """Adjacent levels of one nest as levels of other extents, in the same order. Raises a
        `RemapError` for levels of several nests, for extents known at run time only, and for new
        ones that have no room for every instance."""
        levels = tuple_of(levels, str, "the levels")
        return self.then(reshape(self._named(*levels), levels, extents))

    def coalesce(self) -> Remapping:
        """No levels of one instance, and one level a nest. Raises nothing of its own."""
        return self.then(coalesce(self.levels))

    def insert_unit(
        self, depth: int, name: str, kind: str = "serial", *, policy: str = ""
    ) -> Remapping:
        """A further level of one instance, with `depth` levels around it; of the kind "reduce", it
        has a policy such as "fold_left". Raises a `RemapError` for a depth or a name that there
        cannot be, and a `VerifyError` for a kind that is none, or a policy where there is none."""
        check_kind(kind, str, "the kind of a level")
        check_kind(policy, str, "the policy of a level")
        if kind == "reduce" and policy not in REDUCTION_POLICIES:
            raise RemapError(
                f"a reduce level has no policy {policy!r}",
                remedy=f"pass policy= one of {', '.join(REDUCTION_POLICIES)}",
            )
        level = ExecLevel(name, name, kind, 1, policy=policy)  # type: ignore[arg-type]  # refused by the level where it is none
        return self.then(insert_unit(self.levels, depth, level))

    def remove_unit(self, level: str) -> Remapping:
        """The levels without one of a single instance. Raises a `RemapError` for a level of any
        other extent."""
        return self.then(remove_unit(self._named(level), level))

    def _named(self, *levels: str) -> ExecStructure:
        """The levels as they will be, which have each of these once."""
        for level in levels:
            check_kind(level, str, "the name of a level")
        known = [level.identity for level in self.levels.levels]
        for place, level in enumerate(levels):
            if level in known and level not in levels[:place]:
                continue
            fault = "named twice" if level in known else "not there"
            raise RemapError(
                f"level {level!r} is {fault}",
                remedy=f"name each level once; the levels are {', '.join(known) or 'none'}",
            )
        return self.levels

    def then(self, step: ExecRemap) -> Remapping:
        """A further step, from the levels as they are by now. Raises a `RemapError` for one that
        begins at other levels, that speaks of run-time extents which nobody knows, or that comes
        after a `reanchor`."""
        check_kind(step, ExecRemap, "a step")
        if self.reanchors:
            raise RemapError(
                f"the step ({step}) follows a re-anchoring of {self.reanchors[-1].observer}, which "
                f"was said of the levels {self.levels}",
                remedy="take all steps first, and re-anchor then",
            )
        known = dict.fromkeys((*self.definitions, *step.new.definitions))
        whole = compose(self.remap, step)
        named = {*self.chain.counted, *(entry.name for entry in known)}
        missing = [name for name in whole.symbols if name not in named]
        if missing:
            raise RemapError(
                f"the step ({step}) needs {', '.join(missing)}, which no level of the program has "
                "as its extent",
                remedy=f"define new names by those there are: {', '.join(sorted(named)) or 'none'}",
            )
        return replace(self, remap=whole, definitions=tuple(known))

    def reanchor(self, observer: Observer, depth: int) -> Remapping:
        """What may be repeated runs below `depth` of the levels as they are by now. This goes with
        the remap, so that any further step raises a `RemapError`; whether the observer is there and
        may run so deep, `apply` says."""
        check_kind(observer, Observer, "who runs deeper")
        return replace(self, reanchors=(*self.reanchors, Reanchor(observer, PrefixCut(depth))))

    # Judging and applying --------------------------------------------------------------------

    def proofs(self) -> tuple[RemapProof, ...]:
        """What is known of every law, for the levels and for each observer. A law that is broken is
        no error here; a re-anchoring of nobody, or to where no depth is, raises a `RemapError` or a
        `VerifyError`."""
        return tuple(judge(self.remap, self.observers, self.reanchors))

    def apply(self, rewriter: Rewriter | None = None) -> tuple[RemapProof, ...]:
        """Rewrite the module, or raise a `RemapError` and leave it as it is. Gives the proofs.

        Refused are a law that is not proven, nests that have changed since their levels were read,
        nests that cannot be built or of which different things are said, and a program that the
        verifier refuses afterwards.
        """
        rewriter = Rewriter() if rewriter is None else rewriter
        check_kind(rewriter, Rewriter, "who applies a remap")
        applied = applied_remap(self.remap, self.observers, self.reanchors)
        proofs = proofs_of_record(applied)
        depths = self._depths(proofs)
        parts = stretches_of(self.chain, self.remap, depths)
        replacing = Replacing(self.chain, self.remap, proofs, depths)
        placements = [(one.operation, replacing.placement(one)) for one in placed_in(self.chain)]
        function = self.chain.nests[0].parent_function
        found = chain_along(self.chain.nests)
        names = [level.identity for level in self.chain.structure.levels]
        if function is None or found is None or _called(found, names) != self.chain:
            raise RemapError(
                "the nests have changed since the levels were read",
                remedy="read the levels anew after every remap",
            )
        with rewriter.transaction():
            ChainBuilder(self.chain, self.remap, self.definitions, rewriter).build(parts)
            for operation, placement in placements:
                rewriter.set_attribute(operation, "place", placement)
            remembered = (*remaps_of(function), applied)
            rewriter.set_function_attribute(function, "remaps", remembered)
            self._verify()
        return proofs

    def _depths(self, proofs: tuple[RemapProof, ...]) -> dict[int, int]:
        """How deep the inside of every kept nest is in the new levels."""
        chain = self.chain
        # Who is only expected comes last, and moves nothing.
        found = {
            proof.old_cut.depth: proof.new_cut.depth
            for proof in reversed(proofs)
            if proof.observer is not None and proof.observer.kind == "anchor"
        }
        kept = kept_boundaries(chain)
        depths = {place: found[chain.starts[place + 1]] for place in kept}
        # What runs once an instance of all levels may as well run inside of every one.
        depths[kept[-1]] = self.levels.depth
        return depths

    def _verify(self) -> None:
        try:
            verify_module(self.module)
        except VerifyError as error:
            raise RemapError(
                f"the remap ({self.remap}) leaves a program that is refused: {error.message}",
                error.remedy,
                error.location,
            ) from error


def remap(module: Module, nest: str | None = None, *, function: str | None = None) -> Remapping:
    """The levels around and of a nest, to be rearranged. The nest is named by one of its levels, as
    the text of the module calls it; without a name, there has to be one run of nests only. Raises a
    `RemapError` where the names are not those of one run, or a body goes from block to block."""
    for name, what in ((nest, "the level of a nest"), (function, "the name of a function")):
        if name is not None:
            check_kind(name, str, what)
    chain = _chain(_chosen(module, function), nest)
    branching = next(filter(has_branches, chain.nests[0].walk()), None)
    if branching is not None:
        raise RemapError(
            f"{branching.NAME} goes from block to block, where it is open which of them run",
            remedy="write the branches as conditionals (exec.if)",
            location=branching.location,
        )
    return Remapping(module, chain, identity(chain.structure))


def forget_remaps(function: Function, rewriter: Rewriter) -> tuple[Decision, ...]:
    """Let a function forget what was rearranged, since its nests are about to change in another
    way: whoever looks at the levels then is nobody that the remaps were proven for."""
    if remaps_of(function):
        rewriter.set_function_attribute(function, "remaps", ())
    return ()


def _chosen(module: Module, name: str | None) -> Function:
    """The function of a name, or the first one."""
    if not isinstance(module, Module):
        raise ArgumentTypeError(
            f"the levels of a {type(module).__name__} are asked for",
            remedy="pass a module, as kernel.capture(...) gives",
        )
    for function in module.functions:
        if name in (None, function.name):
            return function
    wanted = "" if name is None else f" {shown(name)}"
    raise RemapError(
        f"the module has no function{wanted}",
        remedy=f"its functions: {', '.join(f.name for f in module.functions) or 'none'}",
    )


def _chain(function: Function, level: str | None) -> ExecChain:
    texts = names_in_text(function)
    nests = [op for op in function.walk() if isinstance(op, Nest)]
    named = {texts[index]: nest for nest in nests for index in _indices(nest)}
    if level is None:
        chains = list(chains_of(function.walk()))
    elif level in named:
        chains = [_called_in_text(chain_to(named[level]), level, texts)]
    else:
        given = [nest for nest in nests if level in (index.name for index in _indices(nest))]
        chains = [chain_to(nest) for nest in given]
    if len(chains) == 1:
        return chains[0]
    wanted = "a nest" if level is None else f"a level {shown(level)}"
    raise RemapError(
        f"@{function.name} has {len(chains) or 'no'} runs of nests with {wanted}",
        remedy=f"name a level of the innermost nest that is to be rearranged: "
        f"{', '.join(named) or 'there is none'}",
    )


def _indices(nest: Nest) -> Sequence[Value]:
    return nest.body.arguments[: nest.rank]


def _called_in_text(chain: ExecChain, level: str, texts: Mapping[Value, str]) -> ExecChain:
    """A run with all levels as the text calls them, where it calls one of them otherwise."""
    names = [texts[index] for nest in chain.nests for index in _indices(nest)]
    identity = chain.structure.levels[names.index(level)].identity
    return chain if identity == level else _called(chain, names)


def _called(chain: ExecChain, names: Sequence[str]) -> ExecChain:
    """A run with these names of its levels."""
    levels = zip(chain.structure.levels, names, strict=False)
    renamed = tuple(replace(level, identity=name) for level, name in levels)
    return replace(chain, structure=replace(chain.structure, levels=renamed))
