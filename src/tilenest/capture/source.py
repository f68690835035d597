"""The syntax trees of live functions, and places in their files.

In: a Python function or lambda. Out: its `FunctionCode`: the AST node, the names that are local
to it, which of them are live after each statement, and the mapping from nodes to lines and
columns of the real file. A function is parsed alone and at its own indentation, so that columns
and strings stay as written; a lambda is found in its file by the positions its bytecode
carries. A text that is not the function's is refused. Results are cached per code object.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType

from tilenest.capture.liveness import NameLiveness, analyse
from tilenest.capture.private_names import as_compiled, class_around, private_name
from tilenest.capture.same_code import is_text_of
from tilenest.capture.scopes import FunctionNode, captured_names, local_names
from tilenest.errors import SourceLocation, SourceUnavailableError
from tilenest.records import record


@record
class SourceText:
    """The lines of a file."""

    file: str
    lines: tuple[str, ...]

    def locate(self, node: ast.AST, function: str, caller: SourceLocation | None) -> SourceLocation:
        """The place of a node that has a position."""
        line, column, end_line, end_column = _span(node)
        text = self.lines[line - 1].rstrip("\n") if line <= len(self.lines) else ""
        start = _characters(text, column) + 1
        end = _characters(text, end_column) + 1 if end_line == line else len(text.rstrip()) + 1
        return SourceLocation(self.file, line, start, max(end, start + 1), function, text, caller)


class FunctionCode:
    """What capture knows of one function's source; nested functions share the file's text."""

    __slots__ = ("_nested", "captured", "liveness", "local_names", "name", "node", "text")

    def __init__(self, node: FunctionNode, text: SourceText) -> None:
        self.node = node
        self.text = text
        self.name = "<lambda>" if isinstance(node, ast.Lambda) else node.name
        self.local_names = local_names(node)
        self.captured = captured_names(node)
        self.liveness = analyse(node) if not isinstance(node, ast.Lambda) else NameLiveness({})
        self._nested: dict[FunctionNode, FunctionCode] = {}

    def nested(self, node: FunctionNode) -> FunctionCode:
        """The code of a function defined inside this one."""
        found = self._nested.get(node)
        if found is None:
            found = self._nested[node] = FunctionCode(node, self.text)
        return found

    def is_live_after(self, statement: ast.stmt, name: str) -> bool:
        """Whether a local may be read after the statement; what closures hold always may."""
        return name in self.captured or self.liveness.is_live_after(statement, name)


_MOST_BLOCKS = 64
_codes: dict[tuple[str, CodeType], FunctionCode] = {}


def function_code(function: FunctionType) -> FunctionCode:
    """The code of a live function."""
    # Code objects compare without their file name.
    key = (function.__code__.co_filename, function.__code__)
    found = _codes.get(key)
    if found is None:
        found = _codes[key] = _parse(function)
    return found


def definition_location(function: FunctionType) -> SourceLocation:
    """Where a function begins, for what is wrong with it as a whole."""
    code = function_code(function)
    return code.text.locate(code.node, code.name, None)


def known_location(function: FunctionType) -> SourceLocation | None:
    """Where a function begins, when its source can be read."""
    try:
        return definition_location(function)
    except SourceUnavailableError:
        return None


def _parse(function: FunctionType) -> FunctionCode:
    code = function.__code__
    # A reloaded module has a new text in the same file.
    linecache.checkcache(code.co_filename)
    lines = linecache.getlines(code.co_filename, function.__globals__)
    if not lines:
        raise _unavailable(function, f"{code.co_filename} has no source text")
    if code.co_name == "<lambda>":
        node: FunctionNode | None = _find_lambda(code, lines)
    else:
        node = _parse_alone(code, lines) or _find_definition(code, lines)
    found = as_compiled(_checked(function, node), code)
    return FunctionCode(found, SourceText(code.co_filename, tuple(lines)))


def _checked(function: FunctionType, node: FunctionNode | None) -> FunctionNode:
    code = function.__code__
    place = f"{code.co_filename} at line {code.co_firstlineno}"
    if node is None:
        raise _unavailable(function, f"its definition is not in {place}")
    if not is_text_of(node, code):
        raise _unavailable(function, f"the text of {place} is not what runs")
    return node


def _unavailable(function: FunctionType, why: str) -> SourceUnavailableError:
    return SourceUnavailableError(
        f"the source of {function.__qualname__!r} cannot be read: {why}",
        remedy="define it in a file or a notebook cell, reload a module after editing it, and keep"
        " tools that rewrite functions away from it",
    )


def _parse_alone(code: CodeType, lines: list[str]) -> FunctionNode | None:
    """The definition at the code's first line, parsed on its own."""
    rest = lines[code.co_firstlineno - 1 :]
    is_indented = bool(rest) and rest[0][:1].isspace()
    # Empty lines before it keep the file's line numbers.
    count = code.co_firstlineno - 1
    start = "\n" * (count - 1) + "if 1:\n" if is_indented else "\n" * count
    for block in _blocks(rest):
        try:
            tree = ast.parse(start + block)
        except SyntaxError:
            continue
        statement = tree.body[0] if tree.body else None
        if isinstance(statement, ast.If) and is_indented:
            statement = statement.body[0]
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and (
            statement.name == code.co_name
        ):
            return statement
        break
    return None


def _blocks(lines: list[str]) -> Iterator[str]:
    """What the statement on the first line may be, shortest first: it ends before a line that is
    indented no deeper. A few such lines belong to it, as `def` after a decorator and the ends of
    long headers and texts."""
    margin = _margin(lines[0]) if lines else 0
    ends = (
        place
        for place, line in enumerate(lines)
        if place and _margin(line) <= margin and line.strip() and line.lstrip()[0] != "#"
    )
    for end in itertools.islice(itertools.chain(ends, [len(lines)]), _MOST_BLOCKS):
        yield "".join(lines[:end])


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip())


def _find_definition(code: CodeType, lines: list[str]) -> FunctionNode | None:
    for node in ast.walk(_parse_file("".join(lines))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return None


@functools.lru_cache(maxsize=64)
def _parse_file(text: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])


def _find_lambda(code: CodeType, lines: list[str]) -> ast.Lambda | None:
    """The smallest lambda whose body holds every instruction of the code."""
    spans = list(_instruction_spans(code))
    found: list[ast.Lambda] = []
    for node in ast.walk(_parse_file("".join(lines))):
        if not isinstance(node, ast.Lambda) or not _has_parameters_of(node, code):
            continue
        line, column, end_line, end_column = _span(node.body)
        start, end = (line, column), (end_line, end_column)
        # Without positions, which Python can be told to leave out, the line has to be enough.
        is_on_line = bool(spans) or node.lineno == code.co_firstlineno
        if is_on_line and all(start <= span[:2] and span[2:] <= end for span in spans):
            found.append(node)
    if not spans and len(found) != 1:
        return None
    return min(found, key=lambda node: _size(node.body), default=None)


def _instruction_spans(code: CodeType) -> Iterator[tuple[int, int, int, int]]:
    for line, end_line, column, end_column in code.co_positions():
        if line is None or end_line is None or column is None or end_column is None:
            continue
        if end_column > 0:
            yield line, column, end_line, end_column


def _size(node: ast.AST) -> tuple[int, int]:
    line, column, end_line, end_column = _span(node)
    return end_line - line, end_column - column


def _has_parameters_of(node: FunctionNode, code: CodeType) -> bool:
    arguments = node.args
    written = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    count = code.co_argcount + code.co_kwonlyargcount
    names = [private_name(item.arg, class_around(code)) for item in written]
    return names == list(code.co_varnames[:count])


def _span(node: ast.AST) -> tuple[int, int, int, int]:
    """Line, byte column, end line, end byte column; those of a definition are its first line's."""
    assert isinstance(node, ast.expr | ast.stmt | ast.arg | ast.keyword), node
    line, column = node.lineno, node.col_offset
    return line, column, node.end_lineno or line, node.end_col_offset or column + 1


def _characters(text: str, byte_column: int) -> int:
    if text.isascii():
        return byte_column
    return len(text.encode()[:byte_column].decode(errors="replace"))
