"""Bad text: the error's line, column and caret, and no other exception whatever the text."""

from __future__ import annotations

import random

import pytest

from tests.unit.ir.samples import any_module
from tests.unit.ir.test_text import SMALL
from tilenest.dialects import OPERATIONS, registry
from tilenest.errors import ParseError
from tilenest.ir import parse_module, print_module

REGISTRY = registry()
PIECES = (
    "%0", "%d0", "%acc", "{", "}", "(", ")", "[", "]", "<", ">", "|", ",", ":", "=", "?", "->",
    "#access<", "#sched<>", "tile<f32, 4>", "f32", "vector<16xf32>", "16@1", "1e999", "nan",
    "nan:0x7ff8000000000001", '"', "\\", "\n", ";", "-", "//", "*", "at 3", "location 0 =",
    "dim %d9 = 3", "func @f() {", "with (", "(d0) -> (d0)", "99999999999999999999999", "é", "\x00",
)  # fmt: skip


def parse_body(line: str) -> None:
    parse_module(
        f'module "m"\ndim %d0 "m" = 4\nfunc @f(%x: f32, %i: index) {{\n  {line}\n}}\n', REGISTRY
    )


BAD_LINES = [
    ("%y = scalar.nothing(%x) : f32", 8, "scalar.nothing", "no operation"),
    ("%y = scalar.cast(%z) : f32", 20, "%z", "not defined"),
    ("%x = scalar.cast(%x) : f32", 3, "%x", "already defined"),
    ("%y = scalar.cast : f32", 8, "scalar.cast", "needs `value`"),
    ("%y = scalar.cast(%x, %x) : f32", 24, "%x", "no further operand"),
    ("%y = scalar.cast(%x) : f33", 26, "f33", "no type"),
    ("%y = scalar.cast(%x)", 8, "scalar.cast", "1 results have 0 types"),
    ("scalar.cast(%x) : f32", 3, "scalar.cast", "0 results have 1 types"),
    ("%y = scalar.cast(%x) : (f32, f32)", 8, "scalar.cast", "1 results have 2 types"),
    ("%y = scalar.cast(%x, round = 1) : f32", 24, "round", "no further field"),
    ("%y = scalar.apply 3(%x) : f32", 21, "3", "must be of kind str"),
    ("%y = scalar.apply(%x) : f32", 20, "(", "expected an attribute value"),
    ("%y = scalar.constant : f32", 24, ":", "expected an attribute value"),
    ("%y = view.extent(%x, axis = 1.0) : index", 31, "1.0", "must be of kind int"),
    ("%y = view.extent(%x, axis = true) : index", 31, "true", "must be of kind int"),
    ("%y = view.extent(%x, axis = 1, axis = 1) : index", 34, "axis", "no further field"),
    ("%y = view.extent(%x) : index", 8, "view.extent", "needs `axis`"),
    ("%y = tile.load(%x, [%i], [%i]) : f32", 28, "[", "no list without a name"),
    ("%y = tile.load(%x, [%i,]) : f32", 26, "]", "expected a value"),
    ("%y = tile.map(%x) : tile<f32>", 31, ">", "at least one dim"),
    ("%y = tile.map(%x) : tile<f32, %d1>", 33, "%d1", "no dim %d1"),
    ("%y = tile.map(%x) : tile<f32, -4>", 33, "-4", "expected an integer from 0"),
    ("%y = tile.map(%x) : view<f32, [1, 2], [1]>", 41, "[", "2 extents need as many strides"),
    ("%y = tile.map(%x) : vector<0xf32>", 30, "0xf32", "expected an integer from 1"),
    ("%y = tile.map(%x) : vector<8xq8>", 30, "8xq8", "no element type"),
    ("%y = tile.map(%x) : buf<f32, 6x>", 33, "x", "expected `>`"),
    ("%y = scalar.constant #nothing<> : f32", 24, "#nothing", "no record"),
    ("%y = scalar.constant #loop<dim = 1> : f32", 24, "#loop", "needs `step`"),
    ("%y = scalar.constant #loop<dim = 1, dim = 1> : f32", 39, "dim", "no further field"),
    ('%y = scalar.constant #loop<dim = "a", step = 1> : f32', 36, '"a"', "must be of kind int"),
    ("%y = scalar.constant (d0) -> (d1) : f32", 24, "(", "undeclared"),
    ("%y = scalar.constant (d0) -> (d0 : f32", 0, "", "the end of the text"),
    ('%y = scalar.constant "a\\q" : f32', 24, '"a\\q"', "JSON"),
    ("%y = scalar.constant 1 : f32 at 7", 35, "7", "no location 7"),
    ("%y = scalar.cast(%x) : f32 {", 0, "", "expected `|`"),
    ("%y = scalar.cast(%x) : f32 }", 0, "", "expected `func` or the end"),
    ("%y = scalar.cast(%x) : f32 $", 30, "$", "no meaning"),
    ('%y = scalar.constant "open', 24, '"', "no meaning"),
    ("exec.parallel(%i)", 17, "%i", "no further operand"),
    ("exec.parallel([%i])", 17, "[", "no list without a name"),
    ("exec.parallel(lower = %i)", 25, "%i", "expected `[`"),
    ("%y = exec.if(%x) : f32 { |%a| }", 31, "|", "expected `:`"),
    ("exec.if(%x) { scalar.cast(%q) }", 29, "%q", "not defined"),
    ("1 = 2", 3, "1", "expected `|`"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "column", "word", "message"), BAD_LINES)
def test_errors_point_at_the_word(line: str, column: int, word: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_body(line)
    error = caught.value
    assert message in error.message
    location = error.location
    assert location is not None
    if word:
        assert (location.line, location.column) == (4, column)
        assert location.source[column - 1 :].startswith(word)
        _, source, carets = str(error).splitlines()[1:4]
        start = carets.index("^")
        assert source[start : start + len(word)] == word
        assert carets.count("^") == location.end_column - location.column


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("", 1, 1),
        ("module", 1, 7),
        ('module "m" func', 1, 16),
        ('module "m"\ndim %a = -1', 2, 10),
        ('module "m"\ndim %a = 1\ndim %a = 1', 3, 5),
        ('module "m"\ndim %a = 99999999999999999999', 2, 10),
        ('module "m"\ndim %a = ' + "9" * 9000, 2, 10),
        ('module "m"\nfunc @f(%x: f32, %x: f32) {\n}', 2, 18),
        ('module "m"\nfunc @f() with (a = 1, a = 2) {\n}', 2, 24),
        ('module "m"\n\n  \u00a7', 3, 3),
    ],
)
def test_errors_outside_of_bodies(text: str, line: int, column: int) -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(text, REGISTRY, file="k.tir")
    location = caught.value.location
    assert location is not None
    assert (location.file, location.line, location.column) == ("k.tir", line, column)


def test_unknown_operations_suggest_the_nearest() -> None:
    with pytest.raises(ParseError, match=r"did you mean scalar\.cast\?"):
        parse_body("%y = scalar.csat(%x) : f32")


@pytest.mark.parametrize(
    "text",
    [
        "exec.if(%x) {" * 5000,
        "%y = scalar.constant " + "[" * 5000,
        "%y = scalar.constant " + "#sched<loops = [" * 5000,
        "%y = scalar.constant (d0) -> (" + "(" * 5000,
        "%y = scalar.constant (d0) -> (d9999999999) : f32",
        "%y = scalar.constant (d0) -> (" + "-" * 5000 + "d0) : f32",
        "%y = scalar.constant (d0) -> (" + "*".join(["(d0 + s0 + 1)"] * 200) + ") : f32",
        "%y = scalar.constant (d0) -> (" + "d0" + "%7//3" * 400 + ") : f32",
        "%y = scalar.constant " + "9" * 9000 + " : f32",
        "%y = scalar.constant 1e" + "9" * 9000,
        " " * 5000 + "$",
        ";" * 5000 + "\n" + " ;" * 5000 + "\n$",
        '"' + "a" * 5000,
    ],
    ids=range(13),
)
def test_extreme_text_is_refused_quickly(text: str) -> None:
    with pytest.raises(ParseError):
        parse_body(text)


def mutate(text: str, chance: random.Random) -> str:
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(text) + 1)
        length = chance.choice((0, 1, 1, 5, 40))
        other = chance.randrange(len(text) + 1)
        insert = chance.choice(
            ("", chance.choice(PIECES), chr(chance.randrange(32, 300)), text[other : other + 20])
        )
        text = text[:place] + insert + text[place + length :]
    return text


def fuzz(count: int, seed: int) -> int:
    """Parse mutated texts; whatever parses must print and parse again. Returns how many did."""
    chance = random.Random(seed)
    originals = [SMALL]
    originals += [
        print_module(any_module(cls, i), locations=True) for i, cls in enumerate(OPERATIONS)
    ]
    refused: list[ParseError] = []
    for _ in range(count):
        text = mutate(chance.choice(originals), chance)
        try:
            module = parse_module(text, REGISTRY)
        except ParseError as error:
            refused.append(error)
        else:
            printed = print_module(module)
            assert print_module(parse_module(printed, REGISTRY)) == printed
    assert all(error.location is not None and str(error) for error in refused)
    return count - len(refused)


def test_mutated_texts_raise_nothing_else() -> None:
    assert 0 < fuzz(500, 1) < 500


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_mutated_texts_raise_nothing_else(seed: int) -> None:
    assert 0 < fuzz(2000, seed) < 2000
