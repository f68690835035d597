"""Printing and parsing: text identity for every op class, and how the text looks."""

from __future__ import annotations

import random

import pytest

from tests.unit.ir.samples import (
    AXIS,
    FLOATS,
    INTEGERS,
    MAPS,
    STRINGS,
    TYPES,
    Comparer,
    any_module,
    any_value,
)
from tilenest.dialects import (
    OPERATIONS,
    Apply,
    Constant,
    If,
    Load,
    Parallel,
    Return,
    Yield,
    registry,
)
from tilenest.errors import ParseError, SourceLocation
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    Builder,
    Function,
    Module,
    Operation,
    Region,
    ScalarType,
    TileType,
    Variable,
    ViewType,
    clone_module,
    float32,
    parse_module,
    print_module,
)

REGISTRY = registry()


def small_module() -> Module:
    """A conditional load, with names that need care."""
    module = Module()
    view = ViewType(float32, (129, None), (None, 1))
    function = module.add(Function("pick", [view, INDEX, BOOL], attributes={"bounds": "zero"}))
    for argument, name in zip(function.arguments, ("A", "i", "d0"), strict=True):
        argument.name = name
    builder = Builder(function.body)
    builder.location = SourceLocation("k.py", 3, 5, 9, "pick", "    a = A[i, j]")
    a, i, condition = function.arguments
    tile = TileType(float32, (AXIS, AXIS))
    branch = builder.insert(
        If(
            condition=condition,
            result_types=[ScalarType(float32)],
            regions=[Region([Block()]), Region([Block()])],
        )
    )
    branch.result.name = "i"
    for region, value in zip(branch.regions, (1.5, -0.0), strict=True):
        with builder.at_end(region.block):
            number = Constant(value=value, result_types=[ScalarType(float32)])
            builder.insert(number)
            builder.insert(Yield(values=[number.result]))
    load = Load(view=a, origins=[i, i], other=branch.result, bounds="assume", result_types=[tile])
    builder.insert(load)
    builder.insert(Apply(function="neg", arguments=[branch.result], result_types=[INDEX]))
    builder.insert(Return())
    return module


SMALL = """\
module "candidate"

dim %d0 "m" = 96

func @pick(%A: view<f32, [129, ?], [?, 1]>, %i: index, %d0_: bool) with (bounds = "zero") {
  %i_1 = exec.if(%d0_) : f32 {
    %0 = scalar.constant 1.5 : f32
    exec.yield(%0)
  } {
    %1 = scalar.constant -0.0 : f32
    exec.yield(%1)
  }
  %2 = tile.load(%A, [%i, %i], other = %i_1, bounds = "assume") : tile<f32, %d0, %d0>
  %3 = scalar.apply "neg"(%i_1) : index
  func.return
}
"""


def test_how_a_module_looks() -> None:
    assert print_module(small_module()) == SMALL


def test_modules_built_twice_print_alike() -> None:
    assert print_module(small_module()) == print_module(small_module())


def test_long_lines_have_an_item_a_line() -> None:
    function = Function("f", [ViewType(float32, (1000, 1000), (1000, 1))] * 4)
    module = Module()
    module.add(function)
    lines = print_module(module).splitlines()
    assert lines[2:4] == ["func @f(", "    %0: view<f32, [1000, 1000], [1000, 1]>,"]
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("cls", OPERATIONS, ids=lambda cls: cls.NAME)
@pytest.mark.parametrize("seed", range(6))
def test_every_op_class_reads_back(cls: type[Operation], seed: int) -> None:
    module = any_module(cls, seed)
    text = print_module(module)
    parsed = parse_module(text, REGISTRY)
    assert print_module(parsed) == text
    Comparer().modules(module, parsed)


@pytest.mark.parametrize(
    "value", [*FLOATS, *INTEGERS, *STRINGS, *MAPS, *TYPES, None, True, False, ()], ids=repr
)
def test_attribute_values_read_back(value: object) -> None:
    check_value(value)


def test_nested_attribute_values_read_back() -> None:
    chance = random.Random(5)
    for _ in range(300):
        check_value(any_value(chance))


def check_value(value: object) -> None:
    module = Module()
    function = module.add(Function("f", [INDEX]))
    function.body.append(Constant(value=value, result_types=[INDEX]))
    module.attributes["also"] = value
    text = print_module(module)
    parsed = parse_module(text, REGISTRY)
    assert print_module(parsed) == text
    Comparer().modules(module, parsed)


def test_plain_extents_keep_their_identity() -> None:
    text = 'module "m"\n\nfunc @f(%0: tile<f32, 4, 16>, %1: tile<f32, 16@1, 4@0>) {\n}\n'
    parsed = parse_module(text, REGISTRY)
    first, second = parsed.function("f").arguments
    assert isinstance(first.type, TileType)
    assert isinstance(second.type, TileType)
    assert [dim.position for dim in first.type.dims] == [1, 0]
    assert [dim.position for dim in second.type.dims] == [1, 0]
    again = parse_module(print_module(parsed), REGISTRY)
    assert again.function("f").arguments[1].type is second.type


def test_two_dims_of_one_label_and_extent_stay_two() -> None:
    text = 'module "m"\n\ndim %a "m" = 4\ndim %b "m" = 4\nfunc @f(%0: tile<f32, %a, %b>) {}'
    printed = print_module(parse_module(text, REGISTRY))
    assert 'dim %d0 "m" = 4\ndim %d1 "m" = 4' in printed
    assert "tile<f32, %d0, %d1>" in printed


def test_locations_stand_in_a_table_and_come_back() -> None:
    module = small_module()
    inner = SourceLocation("h.py", 1, 1, 3, "helper", "x", SourceLocation("k.py", 9, 1, 2, "f", ""))
    branch = next(op for op in module.walk() if isinstance(op, If))
    branch.location = inner
    text = print_module(module, locations=True)
    assert " at 0 {" in text
    assert text.count("\nlocation ") == 2
    parsed = parse_module(text, REGISTRY)
    assert [op.location for op in parsed.walk()] == [op.location for op in module.walk()]
    assert print_module(parsed, locations=True) == text
    assert print_module(parsed) == SMALL


def test_comments_and_layout_do_not_matter() -> None:
    text = SMALL.replace("\n", " ; a note\n").replace(", ", " ,\n ")
    assert print_module(parse_module(text, REGISTRY)) == SMALL


def test_a_name_may_be_used_again_in_a_sibling_region() -> None:
    text = SMALL.replace("%1", "%0")
    assert print_module(parse_module(text, REGISTRY)) == SMALL


OPEN = """\
module "candidate"

func @f(%0: index) {
  exec.parallel(lower = [%0], upper = [%0], step = [%0], scope = ?scope) { |%1: index|
    exec.yield
  }
  func.return
}
"""


def test_variables_stand_in_open_attributes() -> None:
    module = parse_module(OPEN, REGISTRY)
    nest = next(op for op in module.walk() if isinstance(op, Parallel))
    assert nest.attributes["scope"] == Variable("scope")
    assert nest.scope == "auto"
    assert print_module(module) == OPEN
    assert print_module(clone_module(module)) == OPEN


@pytest.mark.parametrize(
    ("value", "message"),
    [("?a.b", "no name of a variable"), ("?", "the name of a variable"), ("3", "str or Variable")],
)
def test_what_is_no_variable(value: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_module(OPEN.replace("?scope", value), REGISTRY)


def test_closed_attributes_take_no_variable() -> None:
    text = OPEN.replace("exec.yield", "%2 = scalar.constant ?x : index\n    exec.yield")
    with pytest.raises(
        ParseError, match=r"`value` of scalar.constant cannot be left open, as \?x"
    ) as caught:
        parse_module(text, REGISTRY)
    assert caught.value.remedy == "give it a value"
