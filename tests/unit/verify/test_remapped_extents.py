"""TN05 against levels of run-time extents whose nests compute other numbers than the remap says.

A name of an extent is one value wherever the record speaks of it. Which value it is, the text says:
the ends of the nests, and what these are computed from.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

import tilenest as tn
from tests.unit.verify.test_forged_remaps import verdict
from tests.unit.verify.test_remapped_bodies import said_of
from tilenest.analysis import chain_along, remaps_of
from tilenest.dialects import Parallel, RemapSymbol
from tilenest.execution import identity
from tilenest.ir import print_module
from tilenest.layouts import AffineMap, Const
from tilenest.passes import Remapping, remap
from tilenest.records import replace

OPEN = """module "candidate"

func @main(%A: view<i32, [?, ?], [?, 1]>, %n: index, %m: index) with (alias_groups = [0, 1, 2]) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  exec.parallel(lower = [%c0], upper = [%n], step = [%c1]) { |%i: index|
    exec.parallel(lower = [%c0], upper = [%m], step = [%c1]) { |%j: index|
      %x = tile.load(%A, [%i, %j]) : i32
      tile.store(%A, [%i, %j], %x)
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""


def open_text() -> str:
    """As many rows and columns as the caller says, in one level that is split."""
    module = tn.parse(OPEN)
    remap(module, "j").fuse("i", "j").split("i+j", 3).apply()
    text = print_module(module)
    assert said_of(text) == "accepted"
    return text


@pytest.mark.parametrize(
    ("part", "old", "new", "message"),
    [
        ('"ge"', '"ge"', '"gt"', "no condition holds exactly where"),
        ('"add"(%19', "%7", "%6", "no condition holds exactly where"),
        ('"add"(%7', "%7", "%6", "is not computed as"),
        ('"mul"(%6', '"mul"', '"add"', "is not computed as"),
        ("%8 = scalar.constant 2", "2 :", "3 :", "is not computed as"),
        ("%22 =", '"add"', '"sub"', "no condition holds exactly where"),
        ('%i = scalar.apply "floordiv"', '"floordiv"', '"sub"', "of the levels before"),
        ('%i = scalar.apply "floordiv"', "%1)", "%3)", "of the levels before"),
        ('%j = scalar.apply "mod"', "%1)", "%3)", "of the levels before"),
    ],
)
def test_run_time_extents_are_those_of_the_record(
    part: str, old: str, new: str, message: str
) -> None:
    """A name of an extent is one value wherever the remap speaks of it, and what it is made of is
    computed in front of the nests."""
    text = open_text()
    (line,) = [line for line in text.splitlines() if part in line and "remap" not in line]
    assert line != line.replace(old, new)
    assert message in said_of(text.replace(line, line.replace(old, new)))


def test_a_number_of_rows_may_be_any() -> None:
    """How many there were is what the text says; nothing else speaks of it here."""
    text = open_text()
    assert said_of(text.replace('"minimum"(%3', '"minimum"(%1')) == "accepted"


def square_text(steps: Callable[[Remapping], Remapping]) -> str:
    """As many columns as there are rows."""
    module = tn.parse(OPEN.replace("[%m]", "[%n]"))
    steps(remap(module, "j")).apply()
    return print_module(module)


def test_levels_of_as_many_instances_have_one_end() -> None:
    text = square_text(lambda plan: plan.permute("j", "i"))
    assert said_of(text) == "accepted"
    (line,) = [line for line in text.splitlines() if "{ |%i:" in line]
    assert "n has several values" in said_of(text.replace(line, line.replace("%1]", "%m]")))


def test_names_of_one_number() -> None:
    """Numbers that are computed alike are known to be equal."""
    rows = "  %n = view.extent(%A, axis = 0) : index\n  %m = view.extent(%A, axis = 0) : index\n"
    open_ = OPEN.replace(", %n: index, %m: index", "").replace("[0, 1, 2]", "[0]")
    module = tn.parse(open_.replace("  %c0", rows + "  %c0", 1))
    remap(module, "j").split("i", 2).split("j", 2).apply()
    text = print_module(module)
    assert said_of(text) == "accepted"
    assert "no condition holds" in said_of(text.replace('"ge"', '"gt"'))
    module = tn.parse(open_.replace("  %c0", rows + "  %c0", 1))
    remap(module, "j").fuse("i", "j").apply()
    assert said_of(print_module(module)) == "accepted"


def test_a_condition_that_also_says_what_holds_anyway() -> None:
    """Blocks of two have room for all rows."""
    module = tn.parse(OPEN)
    remap(module, "j").split("i", 2).apply()
    text = print_module(module)
    (rows,) = re.findall(r'(%\d+) = scalar.apply "maximum"\(%n,', text)
    (blocks,) = re.findall(r'(%\d+) = scalar.apply "floordiv"', text)
    (condition,) = re.findall(r"exec.if\((%\d+)\)", text)
    more = f"""%two = scalar.constant 2 : index
    %room = scalar.apply "mul"({blocks}, %two) : index
    %more = scalar.apply "ge"(%room, {rows}) : bool
    %both = scalar.apply "and"({condition}, %more) : bool
    exec.if(%both)"""
    assert said_of(text.replace(f"exec.if({condition})", more)) == "accepted"
    some = more.replace('"ge"', '"gt"')
    assert "no condition" in said_of(text.replace(f"exec.if({condition})", some))


def test_a_product_of_one_number_with_itself() -> None:
    """Its bound keeps it within an index, and is no part of what the number is."""
    text = square_text(lambda plan: plan.fuse("i", "j"))
    assert said_of(text) == "accepted"
    assert "is not computed as" in said_of(text.replace('"mul"', '"add"'))


CUBE = """module "candidate"

func @main(%A: view<i32, [?, ?], [?, 1]>, %n: index, %m: index) with (alias_groups = [0, 1, 2]) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %e = view.extent(%A, axis = 0) : index
  exec.parallel(lower = [%c0], upper = [%e], step = [%c1]) { |%i: index|
    %w = scalar.apply "sub"(%n, %m) : index
    exec.parallel(lower = [%c0], upper = [%w], step = [%c1]) { |%j: index|
      exec.parallel(lower = [%c0], upper = [%w], step = [%c1]) { |%k: index|
        %at = scalar.apply "add"(%j, %k) : index
        %x = tile.load(%A, [%i, %at]) : i32
        tile.store(%A, [%i, %at], %x)
        exec.yield
      }
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""


@pytest.mark.parametrize(
    ("first", "leaf"),
    [
        (lambda plan: plan.split("k", 2), "k_inner"),
        (lambda plan: plan.split("k", 5).fuse("j", "k.0"), "k_inner"),
        (lambda plan: plan.fuse("j", "k"), "j_k"),
    ],
)
def test_numbers_that_a_later_remap_computed_anew(
    first: Callable[[Remapping], Remapping], leaf: str
) -> None:
    """The first remap speaks of a number that is computed in each row; the second computes it in
    front of the rows, for the ends of its nests."""
    module = tn.parse(CUBE)
    _, *inner = (nest for nest in module.walk() if isinstance(nest, Parallel))
    chain = chain_along(tuple(inner))
    assert chain is not None
    first(Remapping(module, chain, identity(chain.structure))).apply()
    remap(module, leaf).split("i", 2).apply()
    assert said_of(print_module(module)) == "accepted"


def test_a_level_may_end_below_zero() -> None:
    """One nest ends there as it did, another one where that is bounded by 0."""
    head = "{ |%j: index|\n"
    work = "%q = tile.load(%A, [%j, %j]) : i32\ntile.store(%A, [%j, %j], %q)\n"
    module = tn.parse(CUBE.replace(head, head + work))
    remap(module, "k").fuse("i", "j").apply()
    text = print_module(module)
    assert "upper = [%w_1]" in text and '"maximum"(%' in text
    assert said_of(text) == "accepted"


def test_no_name_of_the_old_levels_is_defined() -> None:
    """Such a definition would be an axiom: of 3 rows at most, whatever the caller says."""
    module = tn.parse(OPEN)
    remap(module, "j").apply()
    (function,) = module.functions
    (record,) = remaps_of(function)
    few = RemapSymbol("n", AffineMap(0, 0, (Const(3),)), ())
    assert "a name of the old levels" in verdict(module, replace(record, definitions=(few,)))


# How many there are at most ----------------------------------------------------------------------


@pytest.mark.parametrize("bound", [1, 1 << 31, (1 << 62) - 1, (1 << 63) - 1])
def test_the_bound_of_a_product_is_that_of_every_remap(bound: int) -> None:
    """With another one, fewer instances run, or more than an index holds."""
    module = tn.parse(OPEN)
    remap(module, "j").split("i", 3).permute("i.0", "j", "i.1").fuse("i.0", "j").apply()
    text = print_module(module)
    assert text.count(str(1 << 62)) == 1 and said_of(text) == "accepted"
    assert "is not computed as" in said_of(text.replace(str(1 << 62), str(bound)))


ROWS = OPEN.replace("[%m]", "[%c4]").replace(
    "  %c1 =", "  %c4 = scalar.constant 4 : index\n  %c1 ="
)


@pytest.mark.parametrize(
    ("rows", "factor", "is_accepted"),
    [
        ("%e", 1 << 13, True),
        ("%e", 1 << 14, False),
        ("%e", 1 << 31, False),
        ("%n", 2, True),
        ("%n", 3, False),
    ],
)
def test_arithmetic_that_may_wrap(rows: str, factor: int, is_accepted: bool) -> None:
    """Arrays have up to 2**48 rows, four times as many places are 2**50; a product has 2**62."""
    size = "  %e = view.extent(%A, axis = 0) : index\n"
    module = tn.parse(ROWS.replace("  %c0", size + "  %c0", 1).replace("[%n]", f"[{rows}]"))
    remap(module, "j").fuse("i", "j").apply()
    text = print_module(module)
    assert said_of(text) == "accepted"
    detour = f"""%factor = scalar.constant {factor} : index
    %up = scalar.apply "mul"(%i_j, %factor) : index
    %down = scalar.apply "floordiv"(%up, %factor) : index
    %i = scalar.apply "floordiv"(%down,"""
    said = said_of(text.replace('%i = scalar.apply "floordiv"(%i_j,', detour))
    assert said == "accepted" if is_accepted else "a value that depends on the levels" in said


@pytest.mark.parametrize(
    "steps",
    [
        lambda plan: plan.split("i", 3).permute("i.0", "j", "i.1").fuse("i.0", "j"),
        lambda plan: plan.split("j", 3).fuse("i", "j.0").split("i+j.0", 1000),
        lambda plan: plan.fuse("i", "j").split("i+j", 7).split("i+j.0", 1 << 20),
    ],
)
def test_what_remaps_write_does_not_wrap(steps: Callable[[Remapping], Remapping]) -> None:
    """A counter of many over one of the numbers that it is made of is less than the others are."""
    module = tn.parse(OPEN)
    steps(remap(module, "j")).apply()
    assert said_of(print_module(module)) == "accepted"


# Where levels begin ------------------------------------------------------------------------------

DOMAIN = re.compile(r"lower = \[(.*)\], upper = \[(.*)\], step = \[(.*)\]\)")
EDITS = {
    "from 1": r"lower = [%one], upper = [\2], step = [\3])",
    "none": r"lower = [\2], upper = [\2], step = [\3])",
    "every second one": r"lower = [\1], upper = [\2], step = [%two])",
}
NUMBERS = "  %one = scalar.constant 1 : index\n  %two = scalar.constant 2 : index\n"


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("is_followed", [False, True])
@pytest.mark.parametrize("open_", [OPEN, ROWS])
def test_what_a_remap_made_counts_from_0(open_: str, is_followed: bool, edit: str) -> None:
    """Its levels have the instances that it says, also where a later one left them alone."""
    module = tn.parse(open_)
    remap(module, "j").fuse("i", "j").apply()
    if is_followed:
        remap(module, "i_j").apply()
    text = print_module(module).replace("  exec.parallel", f"{NUMBERS}  exec.parallel")
    assert said_of(text) == "accepted"
    (number,) = re.findall(r'extent = "(\w+_times_\w+)"', text)
    said = said_of(DOMAIN.sub(EDITS[edit], text))
    assert f"a nest is not known to have {number} instances" in said


BEGUN = """module "candidate"

func @main(%A: view<i32, [?], [1]>, %n: index, %m: index) with (alias_groups = [0, 1, 2]) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c3 = scalar.constant 3 : index
  %down = scalar.constant -2 : index
  %e = view.extent(%A, axis = 0) : index
  exec.parallel(lower = [LOWER], upper = [UPPER], step = [STEP]) { |%i: index|
    %y = tile.load(%A, [%i]) : i32
    tile.store(%A, [%i], %y)
    exec.parallel(lower = [LOWER], upper = [UPPER], step = [STEP]) { |%j: index|
      %x = tile.load(%A, [%j]) : i32
      tile.store(%A, [%j], %x)
      exec.yield
    }
    exec.yield
  }
  func.return
}
"""


@pytest.mark.parametrize("step", ["%c1", "%c3", "%down"])
@pytest.mark.parametrize("ends", [("%c1", "%e"), ("%c1", "%n"), ("%m", "%n")])
def test_a_level_that_was_left_alone_has_as_many_as_another_one(
    ends: tuple[str, str], step: str
) -> None:
    """The rows are as they were; the columns are counted anew, and both are of one number."""
    lower, upper = ends if step != "%down" else ends[::-1]
    module = tn.parse(BEGUN.replace("LOWER", lower).replace("UPPER", upper).replace("STEP", step))
    remap(module, "j").split("j", 2).apply()
    text = print_module(module)
    assert said_of(text) == "accepted"
    rows, *_ = DOMAIN.findall(text)
    assert rows == (lower, upper, step)
    for edit in ("lower = [%c0]", f"lower = [{upper}]"):
        changed = text.replace(
            f"lower = [{lower}], upper = [{upper}]", f"{edit}, upper = [{upper}]"
        )
        assert said_of(changed) != "accepted"


def test_a_level_that_was_left_alone_may_begin_anywhere() -> None:
    """Nothing else asks how many there are."""
    module = tn.parse(BEGUN.replace("LOWER", "%c0").replace("UPPER", "%e").replace("STEP", "%c1"))
    remap(module, "i").split("i", 2).apply()
    text = print_module(module)
    assert said_of(text) == "accepted"
    assert said_of(text.replace("lower = [%c0]", "lower = [%m]")) == "accepted"
