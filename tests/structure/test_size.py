"""Small by rule: the longest file and the longest function allowed."""

from tests.structure.sources import functions, sources

FILE_LINES = 500
FUNCTION_LINES = 80


def test_no_file_is_longer_than_the_budget() -> None:
    lengths = {source.name: len(source.text.splitlines()) for source in sources()}
    too_long = {name: lines for name, lines in lengths.items() if lines > FILE_LINES}
    assert not too_long, f"split the idea or delete, at {FILE_LINES} lines: {too_long}"


def test_no_function_is_longer_than_the_budget() -> None:
    too_long = {
        f"{source.name}:{function.lineno} {function.name}": length
        for source in sources()
        for function in functions(source.tree)
        if (length := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES
    }
    assert not too_long, f"a function says one thing in {FUNCTION_LINES} lines: {too_long}"
