"""The text of branches: labels, blocks in an order that reads back, and what is no label."""

from __future__ import annotations

import random

import pytest

from tests.unit.ir.branches import diamond, graph
from tests.unit.ir.samples import Comparer
from tilenest.dialects import Apply, BlockBranch, registry
from tilenest.errors import ParseError
from tilenest.ir import (
    Block,
    Builder,
    Module,
    clone_module,
    parse_module,
    print_module,
    verify,
)

DIAMOND = """\
module "candidate"

func @diamond(%0: index, %1: bool) -> index {
  %2 = scalar.apply "neg"(%0) : index
  cf.cond_branch(%1, ^0, ^1)
^1 ||
  %3 = scalar.apply "neg"(%2) : index
  cf.branch(^2(%3))
^0 ||
  %4 = scalar.apply "neg"(%2) : index
  cf.branch(^2(%4))
^2 |%5: index|
  func.return(%5)
}
"""


def test_how_branches_look() -> None:
    module = Module()
    diamond(module)
    text = print_module(module)
    assert text == DIAMOND
    again = parse_module(text, registry())
    assert print_module(again) == text
    assert verify(again) == []


@pytest.mark.parametrize("seed", range(20))
def test_blocks_in_any_order_read_back(seed: int) -> None:
    """A block may stand before one whose values it uses; the text puts it behind."""
    chance = random.Random(seed)
    count = chance.randrange(2, 9)
    ways = [[chance.randrange(1, count) for _ in range(chance.randrange(3))] for _ in range(count)]
    module = Module()
    function = module.add(graph(ways))
    before = {id(block): block for block in function.region.blocks}
    text = print_module(module)
    parsed = parse_module(text, registry())
    assert print_module(parsed) == text
    assert len(next(iter(parsed.functions)).region.blocks) == len(before)
    assert verify(parsed) == verify(module) == []
    Comparer().modules(parsed, parse_module(text, registry()))


def test_a_value_of_a_block_that_stands_behind() -> None:
    module = Module()
    made = diamond(module)
    join, end = Block(), made.join.terminator
    made.function.region.insert(join, made.then)
    builder = Builder(join)
    value = made.join.insert(
        Apply(function="neg", arguments=made.join.arguments, result_types=[end.operands[0].type]),
        end,
    )
    builder.insert(end.detach())
    end.set_operand(0, value.results[0])
    made.join.append(BlockBranch(target=(join, [])))
    assert verify(module) == []
    text = print_module(module)
    assert verify(parse_module(text, registry())) == []
    assert print_module(parse_module(text, registry())) == text


HEAD = 'module "candidate"\nfunc @f(%p: bool) {\n  '


@pytest.mark.parametrize(
    ("body", "word", "message"),
    [
        ("cf.branch(^0)\n}", "^0", "no block ^0 is in this region"),
        ("cf.branch(^0)\n^0 ||\n  func.return\n^0 ||\n  func.return\n}", "^0", "stands here twice"),
        ("cf.branch(^0, ^1)\n}", "^1", "goes on with no further block"),
        ("cf.cond_branch(%p, ^0)\n}", "cf.cond_branch", "needs `otherwise`"),
        ("func.return(^0)\n}", "^0", "goes on with no further block"),
        ("cf.branch(target = ^0)\n}", "target", "no further field `target`"),
        ("cf.branch(^0(^1))\n}", "^1", "expected a value"),
        ("cf.branch(^0)\n^0\n  func.return\n}", "func.return", "expected `|`"),
        (
            "exec.if(%p) {\n    cf.branch(^0)\n  } {\n    exec.yield\n  }\n  func.return\n"
            "^0 ||\n  func.return\n}",
            "^0",
            "no block ^0 is in this region",
        ),
    ],
)
def test_what_is_wrong_with_a_label(body: str, word: str, message: str) -> None:
    with pytest.raises(ParseError, match=message.replace("^", r"\^")) as caught:
        parse_module(HEAD + body, registry())
    location = caught.value.location
    assert location is not None
    assert location.source[location.column - 1 :].startswith(word)


def test_values_of_a_nested_region_stay_inside() -> None:
    text = HEAD + (
        "exec.if(%p) {\n    %q = scalar.constant true : bool\n    exec.yield\n  } {\n"
        "    exec.yield(%q)\n  }\n  func.return\n}"
    )
    with pytest.raises(ParseError, match="%q is not defined here"):
        parse_module(text, registry())


def test_a_label_does_not_touch_maps() -> None:
    text = HEAD + "%x = scalar.constant (d0) -> (d0 ^ 3) : index\n  func.return\n}"
    assert "(d0 ^ 3)" in print_module(parse_module(text, registry()))


UNREACHED = """\
module "candidate"

func @f(%p: index) {
  cf.branch(^0)
^0 ||
  func.return
|%a: index|
  exec.serial(lower = [%p], upper = [%p], step = [%p]) { |%i: index|
    %0 = scalar.apply "add"(%a, %late) : index
    exec.yield
  }
  func.return
||
  %late = scalar.constant 3 : index
  func.return
}
"""


def test_unreached_blocks_may_use_what_stands_behind() -> None:
    module = parse_module(UNREACHED, registry())
    assert verify(module) == []
    assert print_module(module) == UNREACHED
    late = next(op.results[0] for op in module.walk() if op.NAME == "scalar.constant")
    assert [op.NAME for op in late.users] == ["scalar.apply"]
    assert print_module(clone_module(module)) == UNREACHED


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("%late = scalar", "%later = scalar", "%late is not defined here"),
        ("%late = scalar.constant 3 : index\n", "", "%late is not defined here"),
        (
            "  func.return\n||\n  %late = scalar.constant 3 : index\n",
            "  %late = scalar.constant 3 : index\n",
            "but later in the same block",
        ),
        (
            "%late = scalar.constant 3 : index",
            "exec.serial(lower = [%p], upper = [%p], step = [%p]) { |%late: index| exec.yield }",
            "%late is not defined here",
        ),
    ],
)
def test_uses_that_no_block_behind_defines(old: str, new: str, message: str) -> None:
    with pytest.raises(ParseError, match=message) as caught:
        parse_module(UNREACHED.replace(old, new), registry())
    location = caught.value.location
    assert location is not None
    assert location.line == 9


def test_a_use_before_its_block_is_a_fault_where_control_comes() -> None:
    text = UNREACHED.replace("cf.branch(^0)", "%1 = scalar.cast(%late) : f32\n  cf.branch(^0)")
    found = verify(parse_module(text, registry()))
    assert [diagnostic.rule for diagnostic in found] == ["IR04"]
    assert found[0].location is not None
    assert found[0].location.line == 4
