"""TN05 against bodies that do something else than the remap that the function remembers.

The judge is the interpreter: what a remap wrote is damaged, and either the text is refused or its
results are those of the undamaged one. What only says the same in other words is accepted.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import numpy as np
import pytest

import tilenest as tn
from tests.unit.passes.remapped import CASES, captured, results
from tests.unit.verify.test_forged_remaps import alone, verdict
from tilenest.analysis import remaps_of
from tilenest.dialects import (
    AppliedRemap,
    Apply,
    Constant,
    If,
    Nest,
    Parallel,
    RemapLevel,
    RemapObserver,
)
from tilenest.ir import Module, Operation, Rewriter, print_module
from tilenest.layouts import AffineMap, DimRef
from tilenest.machine import AVX2, cpu_target
from tilenest.passes import SCHEDULE_PASSES, Remapping, remap
from tilenest.records import replace
from tilenest.verify import diagnose_module

SPLIT = """module "candidate"

func @copy(%A: view<i32, [10], [1]>, %B: view<i32, [10], [1]>) with (alias_groups = [0, 1]) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c10 = scalar.constant 10 : index
  exec.parallel(lower = [%c0], upper = [%c10], step = [%c1]) { |%b: index|
    %x = tile.load(%A, [%b]) : i32
    tile.store(%B, [%b], %x)
    exec.yield
  }
  func.return
}
"""
CONDITION = """    %4 = scalar.constant -4 : index
    %5 = scalar.apply "mul"(%b_outer, %4) : index
    %6 = scalar.constant -1 : index
    %7 = scalar.apply "mul"(%b_inner, %6) : index
    %8 = scalar.apply "add"(%5, %7) : index
    %9 = scalar.constant 9 : index
    %10 = scalar.apply "add"(%8, %9) : index
    %11 = scalar.constant 0 : index
    %12 = scalar.apply "ge"(%10, %11) : bool
"""
COORDINATE = """      %13 = scalar.constant 4 : index
      %14 = scalar.apply "mul"(%b_outer, %13) : index
      %b = scalar.apply "add"(%14, %b_inner) : index
"""


def split_text() -> str:
    """Ten instances in blocks of four."""
    module = tn.parse(SPLIT)
    remap(module).split("b", 4).apply()
    text = print_module(module)
    assert CONDITION in text and COORDINATE in text
    return text


def said_of(text: str) -> str:
    found = diagnose_module(tn.parse(text))
    assert {diagnostic.rule for diagnostic in found} <= {"TN05"}, found
    assert all(diagnostic.remedy for diagnostic in found)
    return "; ".join(diagnostic.message for diagnostic in found) or "accepted"


NO_CONDITION = "no condition holds exactly where d0*-4 - d1 + 9 >= 0"
DAMAGES = {
    "wider": ("constant 9 :", "constant 900 :", NO_CONDITION),
    "wider by one": ("constant 9 :", "constant 10 :", NO_CONDITION),
    "narrower": ("constant 9 :", "constant 4 :", NO_CONDITION),
    "narrower by one": ('"ge"', '"gt"', NO_CONDITION),
    "the others": ('"ge"', '"lt"', NO_CONDITION),
    "one diagonal": ('"ge"', '"eq"', NO_CONDITION),
    "other blocks": ("constant -4 :", "constant -3 :", NO_CONDITION),
    "read from memory": (
        CONDITION,
        CONDITION.replace("%12 =", "%dead =")
        + "    %first = tile.load(%A, [%4]) : i32\n"
        + '    %12 = scalar.apply "ge"(%first, %first) : bool\n',
        NO_CONDITION,
    ),
    "work beside it": (
        "    exec.if(%12) {",
        "    %y = tile.load(%A, [%11]) : i32\n    tile.store(%B, [%11], %y)\n    exec.if(%12) {",
        NO_CONDITION,
    ),
    "work where it does not hold": (
        "    } {\n",
        "    } {\n      %y = tile.load(%A, [%11]) : i32\n      tile.store(%B, [%11], %y)\n",
        NO_CONDITION,
    ),
    "shorter blocks": ("constant 4 : index\n      %14", "constant 3 : index\n      %14", "reads"),
    "another sum": ('"add"(%14', '"sub"(%14', "reads"),
    "one level of two": ("tile.store(%B, [%b]", "tile.store(%B, [%b_outer]", "reads d0, which"),
    "one level too many": (
        "      %x = tile.load(%A, [%b]) : i32",
        '      %o = scalar.apply "add"(%b, %b_inner) : index\n      %x = tile.load(%A, [%o]) : i32',
        "reads d0*4 + d1*2, which",
    ),
    "counted from one": (
        "exec.parallel(lower = [%0, %0], upper = [%2, %3]",
        "%five = scalar.constant 5 : index\n  exec.parallel(lower = [%0, %1], upper = [%2, %five]",
        NO_CONDITION,
    ),
    "wrapped": (
        COORDINATE,
        COORDINATE.replace("4 : index", "4611686018427387905 : index")
        + '      %w = scalar.apply "add"(%b_outer, %b) : index\n',
        "reads a value that depends on the levels it left",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_body_that_contradicts_its_record(name: str) -> None:
    old, new, message = DAMAGES[name]
    text = split_text()
    assert said_of(text) == "accepted"
    assert text.count(old) == 1 or name in ("one level of two",)
    assert message in said_of(text.replace(old, new))


ALIKE = {
    "less than": (
        CONDITION,
        """    %4 = scalar.constant 4 : index
    %5 = scalar.apply "mul"(%4, %b_outer) : index
    %6 = scalar.apply "add"(%b_inner, %5) : index
    %9 = scalar.constant 10 : index
    %12 = scalar.apply "lt"(%6, %9) : bool
""",
    ),
    "in two parts": (
        CONDITION,
        """    %4 = scalar.constant 2 : index
    %5 = scalar.constant 1 : index
    %6 = scalar.apply "le"(%b_outer, %4) : bool
    %7 = scalar.apply "lt"(%b_outer, %4) : bool
    %8 = scalar.apply "floordiv"(%b_outer, %4) : index
    %9 = scalar.apply "mul"(%8, %4) : index
    %10 = scalar.apply "add"(%9, %b_inner) : index
    %n = scalar.constant 3 : index
    %11 = scalar.apply "le"(%10, %n) : bool
    %12 = scalar.apply "and"(%6, %11) : bool
""",
    ),
    "the block last": (
        COORDINATE,
        """      %13 = scalar.constant 2 : index
      %14 = scalar.apply "mul"(%b_outer, %13) : index
      %15 = scalar.apply "mul"(%14, %13) : index
      %b = scalar.apply "add"(%b_inner, %15) : index
""",
    ),
    "nothing of a level": (
        COORDINATE,
        COORDINATE
        + """      %15 = scalar.constant 0 : index
      %16 = scalar.apply "mul"(%b_inner, %15) : index
      %first = tile.load(%A, [%16]) : i32
""",
    ),
    "by a remainder": (
        COORDINATE,
        """      %13 = scalar.constant 4 : index
      %14 = scalar.apply "mul"(%b_outer, %13) : index
      %15 = scalar.constant 10 : index
      %16 = scalar.apply "add"(%b_inner, %15) : index
      %17 = scalar.apply "add"(%14, %16) : index
      %b = scalar.apply "mod"(%17, %15) : index
""",
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_a_body_that_says_the_same_in_other_words(name: str) -> None:
    old, new = ALIKE[name]
    assert said_of(split_text().replace(old, new)) == "accepted"


def test_a_condition_of_the_program_is_no_predicate() -> None:
    """It may stand where a remap without predicates puts nothing, and behind one that has some."""
    halved = SPLIT.replace(
        "    %x = tile.load(%A, [%b]) : i32\n    tile.store(%B, [%b], %x)\n",
        """    %c5 = scalar.constant 5 : index
    %half = scalar.apply "lt"(%b, %c5) : bool
    exec.if(%half) {
      %x = tile.load(%A, [%b]) : i32
      tile.store(%B, [%b], %x)
      exec.yield
    } {
      exec.yield
    }
""",
    )
    for factor in (5, 4):
        module = tn.parse(halved)
        remap(module).split("b", factor).apply()
        text = print_module(module)
        assert said_of(text) == "accepted"
        assert text.count("exec.if(") == 1 + (factor == 4)


# Records that others follow ----------------------------------------------------------------------


def test_the_body_of_a_record_that_another_one_follows() -> None:
    """Its coordinates are made of those of the later one, and its condition stands behind the
    other."""
    module = tn.parse(SPLIT)
    remap(module).split("b", 4).apply()
    remap(module, "b_inner").split("b_outer", 2).apply()
    text = print_module(module)
    assert said_of(text) == "accepted"
    (function,) = module.functions
    first, second = remaps_of(function)
    conditions = [op for op in module.walk() if isinstance(op, If)]
    assert len(conditions) == 2
    expected = copied(text)
    refused = [said_of(other) for other in damages(module) if copied(other) != expected]
    assert len(refused) > 5
    assert all("is not what the nests do" in said for said in refused)
    assert "split b by 4" in said_of(text.replace("constant 9 :", "constant 8 :"))
    assert said_of(text) == "accepted"
    # The later one alone says nothing of the earlier one's condition.
    later = text.replace("constant 9 :", "constant 8 :")
    assert verdict(tn.parse(later), second) == "accepted"
    assert first.active.results


LATER: dict[str, Callable[[Remapping], Remapping]] = {
    "a condition on a level that is kept": lambda plan: plan.split("b_inner", 5),
    "a nest of one instance behind the levels": lambda plan: plan.insert_unit(2, "once"),
    "a nest of one instance between them": lambda plan: plan.insert_unit(1, "once"),
    "one level again": lambda plan: plan.fuse("b_outer", "b_inner"),
    "another order": lambda plan: plan.permute("b_inner", "b_outer"),
}


@pytest.mark.parametrize("name", LATER)
def test_a_condition_is_found_behind_what_a_later_remap_wrote(name: str) -> None:
    module = tn.parse(split_text())
    LATER[name](remap(module, "b_inner")).apply()
    text = print_module(module)
    assert said_of(text) == "accepted"
    assert "split b by 4 into b.0, b.1) is not what" in said_of(
        text.replace("constant 9 :", "constant 8 :")
    )


APART = """module "candidate"

func @main(%A: view<i32, [10], [1]>, %B: view<i32, [10], [1]>) with (alias_groups = [0, 1]) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c3 = scalar.constant 3 : index
  exec.serial(lower = [%c0], upper = [%c3], step = [%c1]) { |%i: index|
    %x = tile.load(%A, [%i]) : i32
    tile.store(%B, [%i], %x)
    exec.serial(lower = [%c0], upper = [%c3], step = [%c1]) { |%k: index|
      %at = scalar.apply "mul"(%i, %c3) : index
      %place = scalar.apply "add"(%at, %k) : index
      %y = tile.load(%A, [%place]) : i32
      tile.store(%B, [%place], %y)
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""


def test_each_nest_has_a_condition_of_its_own() -> None:
    """Something stands between the nests, so that the rows have a condition there already."""
    module = tn.parse(APART)
    remap(module, "k").split("i", 2).split("k", 2).apply()
    text = print_module(module)
    assert said_of(text) == "accepted"
    assert len([op for op in module.walk() if isinstance(op, If)]) == 2
    expected = copied(text)
    refused = [said_of(other) for other in damages(module) if copied(other) != expected]
    assert len(refused) > 5
    assert all("is not what the nests do" in said for said in refused)
    outer, inner = re.findall(r"exec.if\((%\d+)\)", text)
    both = f'%both = scalar.apply "and"({outer}, {inner}) : bool\n      exec.if(%both)'
    assert said_of(text.replace(f"exec.if({inner})", both)) == "accepted"


def copied(text: str) -> list[int]:
    source, target = np.arange(10, dtype=np.int32), np.full(12, -1, np.int32)
    try:
        tn.interpret(tn.parse(text), [source, target[1:-1]])
    except tn.TileError:
        return []
    return list(target)


def damages(module: Module) -> list[str]:
    """The text with one more or less for each number in the nests, one after the other."""
    found = []
    for op in list(module.walk()):
        if isinstance(op, Constant) and isinstance(op.parent_op, Nest | If):
            number = op.value
            assert isinstance(number, int)
            if number != 0 and not any(isinstance(user, Nest) for user in op.result.users):
                for other in (number - 1, number + 1):
                    Rewriter().set_attribute(op, "value", other)
                    found.append(print_module(module))
                Rewriter().set_attribute(op, "value", number)
    return found


# Anything ----------------------------------------------------------------------------------------

STEPS: dict[str, Callable[[Remapping, str], Remapping]] = {
    "split": lambda plan, leaf: plan.split(leaf, 2),
    "twice": lambda plan, leaf: plan.split(leaf, 3).split(f"{leaf}.0", 2),
    "joined": lambda plan, leaf: plan.split(leaf, 3).fuse(f"{leaf}.0", f"{leaf}.1"),
}


FROM_ZERO = ("gemm", "ordered", "owned", "units", "folded", "scaled")
"""Cases in which every level counts from 0 by 1: a record does not say what else was the first
index, or the step, of a level that is gone."""


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("name", FROM_ZERO)
def test_what_a_remap_wrote_is_refused_or_means_the_same(name: str, steps: str) -> None:
    """Any number and any function that the remap wrote into the nests is changed, at random."""
    case = CASES[name]
    module = captured(case)
    known = set(module.walk())
    STEPS[steps](remap(module, case.leaf), case.leaf).apply()
    assert not diagnose_module(module)
    expected = results(case, module)
    written = [op for op in module.walk() if op not in known and in_nests(op)]
    n_refused = 0
    for seed in range(12 if written else 0):
        random_ = random.Random(seed)
        op = random_.choice(written)
        undo = damaged(op, random_)
        if undo is None:
            continue
        if diagnose_module(module):
            n_refused += 1
        else:
            np.testing.assert_array_equal(results(case, module), expected, err_msg=str(module))
        undo()
    assert n_refused or len(written) < 2


def in_nests(op: Operation) -> bool:
    return isinstance(op, Constant | Apply) and op.parent_op is not None


def damaged(op: Operation, random_: random.Random) -> Callable[[], None] | None:
    """Change what an operation computes; gives what changes it back."""
    name, values = "function", list[object]()
    if isinstance(op, Constant):
        name = "value"
        assert isinstance(op.value, int)
        values += [op.value + by for by in (-2, -1, 1, 7)]
    elif op.attributes["function"] in ("add", "sub", "mul", "floordiv", "mod"):
        values += ["add", "sub", "mul", "maximum"]
    elif op.attributes["function"] in ("ge", "eq"):
        values += ["ge", "gt", "le", "lt", "eq"]
    else:
        return None
    old = op.attributes[name]
    Rewriter().set_attribute(op, name, random_.choice([v for v in values if v != old]))
    return lambda: Rewriter().set_attribute(op, name, old)


@pytest.mark.parametrize("name", CASES)
def test_bodies_are_read_after_canonicalizing(name: str) -> None:
    """It folds, and shares what is equal; what it leaves says the same."""
    case = CASES[name]
    module = captured(case)
    plan = remap(module, case.leaf)
    if name in ("staged", "pipelined", "patched"):
        plan.apply()
    else:
        plan.split(case.leaf, 2).apply()
    (canonicalize,) = {run for title, run in SCHEDULE_PASSES[:7] if title == "canonicalize"}
    list(canonicalize(module, cpu_target(AVX2), Rewriter()))
    (function,) = module.functions
    assert remaps_of(function)
    assert not diagnose_module(module)


# Too many ways -----------------------------------------------------------------------------------


def test_too_many_ways_are_said_to_be_too_many() -> None:
    """Of nests that are alike each may be the one; after so many, the search is given up."""
    nest = """  exec.serial(lower = [%c0], upper = [%c4], step = [%c1]) { |%i: index|
    tile.store(%A, [%i], %x)
    exec.yield
  }
"""
    head = """module "candidate"

func @main(%A: view<i32, [4], [1]>) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c4 = scalar.constant 4 : index
  %x = tile.load(%A, [%c0]) : i32
"""
    module = tn.parse(head + nest * 12 + "  func.return\n}\n")
    four = RemapLevel("i", "i", "serial", 4)
    same = AppliedRemap(
        (four,),
        (four,),
        AffineMap(1, 0, (DimRef(0),)),
        AffineMap(1, 0, ()),
        ("nothing",),
        (RemapObserver("body", "anchor", 1), RemapObserver("caller", "owner", 0)),
    )
    five = replace(four, extent=5)
    missing = replace(same, old=(five,), new=(five,), steps=("nothing of five",))
    assert verdict(module, same, same, same) == "accepted"
    assert "no nests are 5 serial" in verdict(module, missing, same)
    said = verdict(module, missing, same, same)
    assert "in none of 100 ways" in said and "there are more ways" in said


def test_a_group_that_waits_beside_the_next_nest() -> None:
    """It looks at the levels above its own nest, which is none of the run that is rearranged."""
    module = tn.parse(
        """module "candidate"

func @main(%A: view<i32, [4], [1]>) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c4 = scalar.constant 4 : index
  exec.serial(lower = [%c0], upper = [%c4], step = [%c1]) { |%i: index|
    exec.parallel(lower = [%c0], upper = [%c4], step = [%c1]) { |%j: index|
      %x = tile.load(%A, [%j]) : i32
      exec.sync
      tile.store(%A, [%j], %x)
      exec.yield
    }
    exec.serial(lower = [%c0], upper = [%c4], step = [%c1]) { |%k: index|
      %y = tile.load(%A, [%k]) : i32
      tile.store(%A, [%k], %y)
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""
    )
    remap(module, "k").split("k", 2).apply()
    assert not diagnose_module(module)
    assert alone(module, Parallel).observers
