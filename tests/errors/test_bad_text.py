"""Texts with one mistake each: the right class, the line and the caret, and a way out."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilenest as tn
from tilenest.verify import verify_module

HEAD = """\
module "candidate"
dim %m "m" = 4
dim %n "n" = 4
func @f(%X: view<f32, [9, ?], [?, 1]>, %i: index, %p: bool, %t: tile<f32, %m>,
    %u: tile<f32, %n>) {
"""
TAIL = "  func.return\n}\n"


def refused(text: str, error: type[tn.TileError], word: str, message: str) -> tn.TileError:
    """The error of reading or verifying, which marks `word` on the line that ends in `; wrong`."""
    with pytest.raises(error) as caught:
        verify_module(tn.parse(text))
    found = caught.value
    assert type(found) is error
    assert message in str(found)
    location = found.location
    assert location is not None
    lines = text.splitlines()
    (line,) = [place for place, line in enumerate(lines, 1) if line.endswith("; wrong")]
    assert location.line == line
    source = lines[line - 1]
    assert source[location.column - 1 : location.end_column - 1] == word
    shown = str(found).splitlines()
    marked = next(i for i, each in enumerate(shown) if each.strip() == source.strip())
    start = shown[marked + 1].index("^")
    assert shown[marked][start:].startswith(word)
    return found


def in_body(*lines: str) -> str:
    return HEAD + "".join(f"  {line}\n" for line in lines) + TAIL


UNREADABLE = {
    "an unknown operation": (
        ["%a = scalar.aply \"neg\"(%i) : index  ; wrong"],
        "scalar.aply",
        "did you mean scalar.apply?",
    ),
    "too many operands": (
        ["%a = scalar.cast(%i, %i) : f32  ; wrong"],
        "%i",
        "takes no further operand here",
    ),
    "too few operands": (["%a = scalar.cast : f32  ; wrong"], "scalar.cast", "needs `value`"),
    "a value that nobody defines": (
        ["%a = scalar.cast(%q) : f32  ; wrong"],
        "%q",
        "%q is not defined here",
    ),
    "a use before the definition": (
        [
            "%a = scalar.cast(%b) : f32  ; wrong",
            '%b = scalar.apply "neg"(%i) : index',
        ],
        "%b",
        "later in the same block",
    ),
    "a value that uses itself": (
        ['%a = scalar.apply "neg"(%a) : index  ; wrong'],
        "%a",
        "%a is not defined here",
    ),
    "a value of a nested region": (
        ["exec.if(%p) {", "%q = scalar.constant 1 : index", "exec.yield", "} {", "exec.yield", "}",
         "%a = scalar.cast(%q) : f32  ; wrong"],
        "%q",
        "%q is not defined here",
    ),
    "a name twice": (["%i = scalar.constant 1 : index  ; wrong"], "%i", "%i is already defined"),
    "a dim that is not declared": (
        ["%a = scalar.constant 1.0 : tile<f32, %k>  ; wrong"],
        "%k",
        "no dim %k is declared",
    ),
    "an unknown type": (["%a = scalar.cast(%i) : f33  ; wrong"], "f33", "`f33` is no type"),
    "an unknown element type": (
        ["%a = scalar.constant 1 : tile<complex, 4>  ; wrong"],
        "complex",
        "no element type",
    ),
    "an attribute of another kind": (
        ["%a = view.extent(%X, axis = 1.0) : index  ; wrong"],
        "1.0",
        "must be of kind int",
    ),
    "an attribute that is not declared": (
        ["%a = view.extent(%X, axes = 1) : index  ; wrong"],
        "axes",
        "no further field `axes`",
    ),
    "an unknown record": (
        ["%a = scalar.constant #nothing<> : index  ; wrong"],
        "#nothing",
        "no record #nothing is known",
    ),
    "an extent beyond 64 bits": (
        ["%a = scalar.constant 1.0 : tile<f32, 9223372036854775808>  ; wrong"],
        "9223372036854775808",
        "expected an integer from 0 to",
    ),
    "an integer that has no end": (
        [f"%a = scalar.constant {'9' * 5000} : index  ; wrong"],
        "9" * 5000,
        "expected an integer from",
    ),
    "a block that is not there": (["cf.branch(^7)  ; wrong"], "^7", "no block ^7 is in"),
    "a stray character": (["%a = scalar.cast(§) : f32  ; wrong"], "§", "has no meaning here"),
    "results without types": (
        ["%a, %b = scalar.cast(%i) : f32  ; wrong"],
        "scalar.cast",
        "2 results have 1 types",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read(name: str) -> None:
    lines, word, message = UNREADABLE[name]
    refused(in_body(*lines), tn.ParseError, word, message)


UNSOUND = {
    "a foreign dim": (
        ['%b = tile.map(%t, %u) : tile<f32, %m> {  ; wrong', "|%x: f32, %y: f32|",
         "exec.yield(%x)", "}"],
        "tile.map",
    ),
    "a type that does not follow": (
        ["%a = scalar.cast(%i) : f32", '%b = scalar.apply "add"(%i, %a) : index  ; wrong'],
        "scalar.apply",
    ),
    "an unknown function": (['%a = scalar.apply "nope"(%i) : index  ; wrong'], "scalar.apply"),
    "a terminator of another operation": (
        ["exec.if(%p) {", "func.return  ; wrong", "} {", "exec.yield", "}"],
        "func.return",
    ),
    "a terminator in the middle": (["func.return  ; wrong"], "func.return"),
    "a block without a terminator": (
        ["exec.if(%p) {", "%a = scalar.cast(%i) : f32  ; wrong", "} {", "exec.yield", "}"],
        "scalar.cast",
    ),
    "too few regions": (["exec.if(%p) {  ; wrong", "exec.yield", "}"], "exec.if"),
    "a branch that gives too little": (
        ["cf.branch(^0)  ; wrong", "^0 |%a: index|"],
        "cf.branch",
    ),
    "an operation of another form": (
        ["%a = vector.splat(%i) : index  ; wrong"],
        "vector.splat",
    ),
    "an axis that is not there": (
        ["%a = view.extent(%X, axis = 2) : index  ; wrong"],
        "view.extent",
    ),
    "a nest of uneven bounds": (
        ["exec.parallel(lower = [%i], upper = [%i, %i], step = [%i]) { |%a: index|  ; wrong",
         "exec.yield", "}"],
        "exec.parallel",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSOUND)
def test_what_breaks_a_rule(name: str) -> None:
    lines, word = UNSOUND[name]
    found = refused(in_body(*lines), tn.VerifyError, word, "")
    assert found.remedy


def test_a_region_that_stays_open() -> None:
    text = HEAD + "  exec.if(%p) {\n    exec.yield\n"
    with pytest.raises(tn.ParseError, match="found the end of the text") as caught:
        tn.parse(text)
    assert caught.value.location is not None
    assert caught.value.location.line == len(text.splitlines()) + 1


def test_faults_of_functions_and_modules_have_a_place() -> None:
    again = HEAD + TAIL + "func @f() {  ; wrong\n  func.return\n}\n"
    refused(again, tn.ParseError, "f", "two functions are named @f")
    unknown = 'module "odd"  ; wrong\nfunc @f() {\n  func.return\n}\n'
    refused(unknown, tn.VerifyError, "module", "no form is named 'odd'")
    pointer = 'module "candidate"\nfunc @f(%p: ptr) {  ; wrong\n  func.return\n}\n'
    refused(pointer, tn.VerifyError, "f", "a ptr has no place in candidate form")
    empty = 'module "candidate"\nfunc @f() {  ; wrong\n}\n'
    refused(empty, tn.VerifyError, "f", "does not end with a terminator")


def test_numbers_that_no_layout_has_are_a_fault() -> None:
    text = in_body(
        f"%least = scalar.constant {-(1 << 63)} : index",
        f"%most = scalar.constant {(1 << 63) - 1} : index",
        "%one = scalar.constant 1 : index",
        'exec.parallel(lower = [%least], upper = [%most], step = [%one], scope = "group") {',
        "|%k: index|",
        "exec.yield",
        "}",
    )
    with pytest.raises(tn.VerifyError, match="the rule has no answer: axis 'group'") as caught:
        verify_module(tn.parse(text))
    assert caught.value.location is not None
    assert caught.value.remedy


@pytest.mark.parametrize(
    "line",
    [
        "exec.if(%p) { " * 100_000,
        "%a = scalar.constant " + "[" * 100_000,
        "%a = scalar.constant " + "#sched<loops = [" * 50_000,
        "%a = scalar.constant (d0) -> (" + "(" * 100_000,
        "%a = scalar.cast(%i) : " + "tuple<" * 100_000,
        "%a, " * 100_000,
        "%a = scalar.cast(" + "%i, " * 100_000,
    ],
    ids=["regions", "lists", "records", "maps", "types", "results", "operands"],
)
def test_what_has_no_end(line: str) -> None:
    with pytest.raises(tn.ParseError) as caught:
        tn.parse(HEAD + line)
    assert caught.value.location is not None


def test_locations_in_the_text_are_not_printed() -> None:
    text = str(tn.parse(in_body("%a = scalar.cast(%i) : f32")))
    assert " at " not in text
    assert "location" not in text
    assert str(tn.parse(text)) == text


# Files ---------------------------------------------------------------------------------------


def test_a_file_is_read_and_named(tmp_path: Path) -> None:
    path = tmp_path / "pick.tileir"
    path.write_text(in_body("%a = scalar.cast(%i) : f32"), encoding="utf-8")
    assert str(tn.parse(path)) == str(tn.parse(path.read_text(encoding="utf-8")))
    path.write_text(in_body("%a = scalar.cast(%q) : f32"), encoding="utf-8")
    with pytest.raises(tn.ParseError) as caught:
        tn.parse(path)
    assert f"{path}:6:20 in the module text" in str(caught.value)


def test_what_is_no_text(tmp_path: Path) -> None:
    for wrong in (None, 3, b"module", ["module"]):
        with pytest.raises(tn.ArgumentTypeError, match="pass a str, or a path"):
            tn.parse(wrong)  # type: ignore[arg-type]  # the mistake
    for missing in (tmp_path / "missing", tmp_path, Path("nul\0")):
        with pytest.raises(tn.SourceUnavailableError, match="cannot be read") as caught:
            tn.parse(missing)
        assert caught.value.remedy
    path = tmp_path / "latin.tileir"
    path.write_bytes('module "é"'.encode("latin-1"))
    with pytest.raises(tn.ParseError, match="is not UTF-8"):
        tn.parse(path)


def test_what_is_too_long(tmp_path: Path) -> None:
    path = tmp_path / "long.tileir"
    path.write_text('module "candidate"\n' + " " * (1 << 25), encoding="utf-8")
    for source in (path, path.read_text(encoding="utf-8")):
        with pytest.raises(tn.ParseError, match="more than the 16777216 characters"):
            tn.parse(source)
