"""The analysis manager: what it keeps, what it drops, and that it is never out of date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from tests.unit.ir.branches import diamond
from tests.unit.ir.test_edits import Session
from tests.unit.ir.test_structure_rules import find, good
from tilenest.dialects import Apply, Constant, If, Load, Return
from tilenest.ir import (
    INDEX,
    Analysis,
    AnalysisManager,
    Asker,
    Edit,
    EditKind,
    Function,
    Module,
    On,
    Operation,
    Rewriter,
    Value,
    block_dominators,
    clone_function,
    fresh,
)

runs: Counter[str] = Counter()
SHAPE = (EditKind.INSERTED, EditKind.ERASED)


class Names(Analysis[Function, tuple[tuple[str, int], ...]]):
    """How many operations of each name a function has."""

    NAME = "names"

    @classmethod
    def compute(cls, subject: Function, _: Asker) -> tuple[tuple[str, int], ...]:
        runs[cls.NAME] += 1
        return tuple(sorted(Counter(op.NAME for op in subject.walk()).items()))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        return edit.kind in SHAPE


class Order(Analysis[Function, tuple[int, ...]]):
    """The operations in order."""

    NAME = "order"

    @classmethod
    def compute(cls, subject: Function, _: Asker) -> tuple[int, ...]:
        runs[cls.NAME] += 1
        return tuple(op.id for op in subject.walk())

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        return edit.kind in (*SHAPE, EditKind.MOVED)


class Unused(Analysis[Function, tuple[int, ...]]):
    """Results that nothing uses: any edit but a label may change it."""

    NAME = "unused"

    @classmethod
    def compute(cls, subject: Function, _: Asker) -> tuple[int, ...]:
        runs[cls.NAME] += 1
        return tuple(r.id for op in subject.walk() for r in op.results if not r.has_uses)


class Reached(Analysis[Function, tuple[int, ...]]):
    """The blocks of a function that may run."""

    NAME = "reached"

    @classmethod
    def compute(cls, subject: Function, _: Asker) -> tuple[int, ...]:
        runs[cls.NAME] += 1
        return tuple(block.id for block in block_dominators(subject.region).order)


class Size(Analysis[Operation, int]):
    """How many operations hang below one."""

    NAME = "size"

    @classmethod
    def compute(cls, subject: Operation, _: Asker) -> int:
        runs[cls.NAME] += 1
        return sum(1 for _ in subject.walk())

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        return edit.kind in (*SHAPE, EditKind.MOVED)


class Functions(Analysis[Operation, tuple[str, ...]]):
    """What is applied below an operation: a filter by attribute and by class."""

    NAME = "functions"

    @classmethod
    def compute(cls, subject: Operation, _: Asker) -> tuple[str, ...]:
        runs[cls.NAME] += 1
        return tuple(op.function for op in subject.walk() if isinstance(op, Apply))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        if edit.kind is EditKind.ATTRIBUTE:
            return edit.detail == "function" and isinstance(edit.operation, Apply)
        return edit.kind in (*SHAPE, EditKind.MOVED)


class Largest(Analysis[Function, int]):
    """Derived from the sizes of the outermost operations, and from nothing else itself."""

    NAME = "largest"
    DEPENDS_ON: ClassVar = (Size, Names)

    @classmethod
    def compute(cls, subject: Function, ask: Asker) -> int:
        runs[cls.NAME] += 1
        assert ask.get(Names, subject) is not None
        outermost = subject.region.operations()
        return max((ask.get(Size, op) for op in outermost), default=0)

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        # An operation that moves out of a nest is a new one to ask about.
        return edit.kind is EditKind.MOVED


class Total(Analysis[Module, int]):
    """Derived from the names in all functions."""

    NAME = "total"
    DEPENDS_ON: ClassVar = (Names,)

    @classmethod
    def compute(cls, subject: Module, ask: Asker) -> int:
        runs[cls.NAME] += 1
        counts = [ask.get(Names, function) for function in subject.functions]
        return sum(count for names in counts for _, count in names)

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        return edit.kind is EditKind.FUNCTION


class Placement(Analysis[Function, tuple[int, ...]]):
    """Where each contract puts its operation: derived, in two steps, from an attribute."""

    NAME = "placement"
    DEPENDS_ON: ClassVar = (Functions,)

    @classmethod
    def compute(cls, subject: Function, ask: Asker) -> tuple[int, ...]:
        runs[cls.NAME] += 1
        applies = [op for op in subject.walk() if isinstance(op, Apply)]
        return tuple(len(ask.get(Functions, op)[0]) for op in applies)

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        return edit.kind in (*SHAPE, EditKind.MOVED)


class Scaled(Analysis[On[Function, int], int]):
    """Derived from the names in a function, and from a number that is given."""

    NAME = "scaled"
    DEPENDS_ON: ClassVar = (Names,)

    @classmethod
    def compute(cls, subject: On[Function, int], ask: Asker) -> int:
        runs[cls.NAME] += 1
        return subject.given * len(ask.get(Names, subject.place))

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        return edit.kind is EditKind.FUNCTION


class Undeclared(Analysis[Function, int]):
    """Asks what it does not declare."""

    NAME = "undeclared"

    @classmethod
    def compute(cls, subject: Function, ask: Asker) -> int:
        return len(ask.get(Names, subject))


OF_FUNCTIONS: tuple[type[Analysis[Function, Any]], ...] = (
    Names,
    Order,
    Unused,
    Reached,
    Largest,
    Placement,
)
OF_OPERATIONS: tuple[type[Analysis[Operation, Any]], ...] = (Size, Functions)


@pytest.fixture
def module() -> Module:
    runs.clear()
    module = good()
    diamond(module)
    return module


def test_an_answer_is_computed_once(module: Module) -> None:
    analyses = Rewriter().analyses
    main = module.function("main")
    assert analyses.get(Names, main) == analyses.get(Names, main) == fresh(Names, main)
    assert runs["names"] == 2
    assert not AnalysisManager().is_known(Names, main)


def test_an_unrelated_edit_keeps_an_answer_and_a_related_one_drops_it(module: Module) -> None:
    rewriter = Rewriter()
    analyses = rewriter.analyses
    main, other = module.function("main"), module.function("diamond")
    load, branch, sum_ = find(module, Load), find(module, If), find(module, Apply)

    def kept(edit: Callable[[], object]) -> set[str]:
        subjects: list[tuple[Any, Any]] = [(analysis, main) for analysis in OF_FUNCTIONS]
        subjects += [(Size, branch), (Functions, sum_), (Total, module)]
        for analysis, subject in subjects:
            analyses.get(analysis, subject)
        edit()
        analyses.check()
        return {a.NAME for a, subject in subjects if analyses.is_known(a, subject)}

    everything = {"total"} | {a.NAME for a in OF_FUNCTIONS} | {a.NAME for a in OF_OPERATIONS}
    assert kept(lambda: rewriter.set_name(sum_.result, "sum")) == everything
    assert kept(lambda: rewriter.set_location(sum_, ())) == everything
    in_other = Constant(value=1, result_types=[INDEX])
    anchor = other.body.terminator
    assert kept(lambda: rewriter.insert_before(in_other, anchor)) == everything - {"total"}
    assert kept(lambda: rewriter.set_attribute(load, "bounds", "assume")) == everything - {
        "unused",
        "reached",
    }
    assert kept(lambda: rewriter.set_attribute(sum_, "function", "sub")) == everything - {
        "unused",
        "reached",
        "functions",
        "placement",
    }
    assert kept(lambda: rewriter.set_operand(load, 1, sum_.result)) == everything - {
        "unused",
        "reached",
    }
    assert kept(lambda: rewriter.move_before(load, branch)) == {
        "names",
        "size",
        "functions",
        "total",
    }
    inside = branch.body.operations.first
    assert kept(lambda: rewriter.move_before(inside, branch.body.terminator)) == {
        "names",
        "functions",
        "total",
    }
    assert kept(lambda: rewriter.erase(load)) == {"size", "functions"}
    assert kept(lambda: rewriter.set_form(module, "scheduled")) == everything
    assert kept(lambda: rewriter.set_function_attribute(main, "a", 1)) >= {"names", "order"}


def test_a_dropped_answer_takes_what_was_derived_from_it(module: Module) -> None:
    rewriter = Rewriter()
    analyses = rewriter.analyses
    main, other = module.function("main"), module.function("other")
    analyses.get(Total, module)
    analyses.get(Largest, main)
    analyses.get(Largest, other)
    rewriter.insert_before(Constant(value=1, result_types=[INDEX]), find(module, Return))
    assert not analyses.is_known(Names, main)
    assert not analyses.is_known(Largest, main)
    assert not analyses.is_known(Total, module)
    assert analyses.is_known(Largest, other)
    assert analyses.get(Total, module) == sum(1 for _ in module.walk())
    analyses.check()


def test_a_changed_contract_drops_the_placement_derived_from_it(module: Module) -> None:
    rewriter = Rewriter()
    analyses = rewriter.analyses
    main, sum_ = module.function("main"), find(module, Apply)
    assert analyses.get(Placement, main)[0] == 3
    rewriter.set_attribute(sum_, "function", "maximum")
    assert not analyses.is_known(Functions, sum_)
    assert analyses.is_known(Functions, find(module, Apply, 1))
    assert analyses.get(Placement, main)[0] == 7


def test_a_place_has_an_answer_for_everything_that_is_given(module: Module) -> None:
    rewriter = Rewriter()
    analyses = rewriter.analyses
    main = module.function("main")
    one, two = analyses.get(Scaled, On(main, 1)), analyses.get(Scaled, On(main, 2))
    assert two == 2 * one == 2 * len(analyses.get(Names, main))
    assert analyses.get(Scaled, On(main, 2)) == two and runs["scaled"] == 2
    assert not analyses.is_known(Scaled, On(main, 3))
    rewriter.set_name(find(module, Apply).result, "sum")
    assert analyses.is_known(Scaled, On(main, 1))
    rewriter.erase(find(module, Load))
    assert not any(analyses.is_known(Scaled, On(main, given)) for given in (1, 2))
    analyses.get(Scaled, On(main, 1))
    analyses.check()
    rewriter.set_function_attribute(main, "a", 1)
    assert analyses.is_known(Names, main) and not analyses.is_known(Scaled, On(main, 1))
    analyses.get(Scaled, On(main, 1))
    rewriter.remove_function(main)
    assert not analyses.is_known(Scaled, On(main, 1))
    assert analyses.get(Scaled, On(main, 2)) == two - 2
    assert not analyses.is_known(Scaled, On(main, 2))


def test_what_is_asked_must_be_declared(module: Module) -> None:
    for asker in (Asker(), Rewriter().analyses):
        with pytest.raises(AssertionError, match="undeclared does not declare that it asks names"):
            asker.get(Undeclared, module.function("main"))


def test_nothing_is_kept_about_what_is_detached(module: Module) -> None:
    rewriter = Rewriter()
    analyses = rewriter.analyses
    branch = find(module, If)
    inner = branch.body.operations.first
    assert (analyses.get(Size, branch), analyses.get(Size, inner)) == (4, 1)
    rewriter.replace_all_uses(branch.result, find(module, Apply).result)
    rewriter.erase(branch)
    assert not analyses.is_known(Size, branch)
    assert not analyses.is_known(Size, inner)
    assert analyses.get(Size, branch) == 4
    assert not analyses.is_known(Size, branch)
    function = clone_function(module.function("main"), {})
    assert analyses.get(Names, function)
    assert not analyses.is_known(Names, function)


def find_in(function: Function, cls: type[Operation]) -> Operation:
    return next(op for op in function.walk() if isinstance(op, cls))


def test_a_function_that_goes_takes_its_answers(module: Module) -> None:
    rewriter = Rewriter()
    analyses = rewriter.analyses
    main = module.function("main")
    analyses.get(Names, main)
    analyses.get(Size, find(module, If))
    analyses.get(Total, module)
    rewriter.remove_function(main)
    gone = ((Names, main), (Size, find_in(main, If)), (Total, module))
    assert not any(analyses.is_known(*key) for key in gone)
    assert analyses.is_known(Names, module.function("other"))
    rewriter.insert_function(main, module)
    assert analyses.get(Total, module) == sum(1 for _ in module.walk())


def test_a_rollback_brings_answers_back_and_forgets_those_in_between(module: Module) -> None:
    rewriter = Rewriter()
    analyses = rewriter.analyses
    main, other = module.function("main"), module.function("other")
    before = analyses.get(Largest, main)
    with rewriter.transaction() as opened:
        rewriter.insert_before(Constant(value=1, result_types=[INDEX]), find(module, Return))
        assert not analyses.is_known(Names, main)
        analyses.get(Order, other)
        analyses.get(Names, main)
        opened.rollback()
    assert analyses.is_known(Largest, main)
    analyses.check()
    assert analyses.get(Largest, main) == before
    assert not analyses.is_known(Order, other)
    rewriter.erase(find(module, Load))
    assert not analyses.is_known(Largest, main)


def test_the_check_finds_what_went_past_the_rewriter(module: Module) -> None:
    analyses = Rewriter().analyses
    analyses.get(Names, module.function("main"))
    analyses.check()
    find(module, Load).erase()
    with pytest.raises(AssertionError, match="names is out of date"):
        analyses.check()


@pytest.mark.parametrize("seed", range(6))
def test_answers_equal_a_fresh_run_under_random_edits(seed: int) -> None:
    session = Session(seed, 60)
    mirror = session.mirror
    analyses = mirror.rewriter.analyses
    hits = 0
    for _ in range(250):
        for function in mirror.lists.functions:
            for analysis in OF_FUNCTIONS:
                if mirror.chance.random() < 0.4:
                    hits += analyses.is_known(analysis, function)
                    analyses.get(analysis, function)
        for _ in range(4):
            op = mirror.any_op()
            if op is not None:
                analyses.get(mirror.chance.choice(OF_OPERATIONS), op)
        analyses.get(Total, mirror.module)
        session.edit()
        analyses.check()
    assert hits > 30


class Heard(Analysis[Function, int]):
    """Nothing, but it notes which operands went and came."""

    NAME = "heard"
    values: ClassVar[list[tuple[Value, ...]]] = []

    @classmethod
    def compute(cls, subject: Function, _: Asker) -> int:
        return len(subject.arguments)

    @classmethod
    def is_affected_by(cls, edit: Edit) -> bool:
        if edit.kind is EditKind.OPERANDS:
            cls.values.append(edit.values)
        return False


def test_an_edit_of_operands_names_those_that_went_and_came() -> None:
    module = Module()
    blocks = diamond(module)
    rewriter = Rewriter()
    rewriter.analyses.get(Heard, blocks.function)
    Heard.values.clear()
    op = blocks.then.operations.first
    old, new = op.operands[0], blocks.function.arguments[0]
    rewriter.set_operand(op, 0, new)
    rewriter.set_operands(op, "arguments", [old, old])
    rewriter.replace_all_uses(new, old)
    assert Heard.values == [(old, new), (new, old, old), (new, old)]
