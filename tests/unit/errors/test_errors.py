"""Error text, locations and classes, judged by the exact text a user reads."""

import pickle

import pytest

from tilenest import errors
from tilenest.errors import InternalError, ShapeError, SourceLocation, TileError, render, shown

OUTER = SourceLocation("kernels.py", 30, 9, 20, "gemm", "        x = helper(a)\n")
INNER = SourceLocation("helpers.py", 4, 12, 17, "helper", "    return a + b", OUTER)

BUILTINS = {
    errors.SourceUnavailableError: OSError,
    errors.UndefinedVariableError: NameError,
    errors.CarriedTypeError: TypeError,
    errors.ViewAssignmentError: TypeError,
    errors.ShapeError: ValueError,
    errors.DTypeError: TypeError,
    errors.ReductionPolicyError: ValueError,
    errors.DomainError: ValueError,
    errors.ArgumentTypeError: TypeError,
    errors.RankError: ValueError,
    errors.ReadOnlyError: ValueError,
    errors.OverlapError: ValueError,
    errors.OutOfBounds: IndexError,
    errors.ParseError: ValueError,
    errors.VerifyError: ValueError,
    errors.RemapError: ValueError,
}

CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, TileError)
]


def test_the_whole_text_of_an_error() -> None:
    error = ShapeError("the tiles do not join", remedy="use one axis", location=INNER)
    assert str(error) == (
        "the tiles do not join\n"
        "helpers.py:4:12 in helper\n"
        "    return a + b\n"
        "           ^^^^^\n"
        "called from kernels.py:30:9 in gemm\n"
        "    x = helper(a)\n"
        "    ^^^^^^^^^^^\n"
        "help: use one axis"
    )


def test_an_error_without_place_or_remedy_is_its_message() -> None:
    assert str(TileError("it failed")) == "it failed"


@pytest.mark.parametrize(
    ("source", "column", "end_column", "carets"),
    [
        ("x = f(", 5, 99, "    ^^"),
        ("x = f(", 5, 5, "    ^"),
        ("\tif a:\tb = c", 8, 9, "     \t^"),
    ],
)
def test_carets_stay_on_the_line(source: str, column: int, end_column: int, carets: str) -> None:
    text = render(SourceLocation("k.py", 1, column, end_column, "k", source))
    assert text.splitlines()[2] == "    " + carets


def test_a_place_without_source_text_has_no_carets() -> None:
    assert render(SourceLocation("k.py", 7, 1, 2, "k", "")) == "k.py:7:1 in k"


def test_the_first_place_wins() -> None:
    error = TileError("it failed")
    assert error.with_location(None) is error
    assert error.location is None
    assert error.with_location(INNER).with_location(OUTER).location is INNER


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_keeps_its_fields_through_raise_and_pickle(kind: type[TileError]) -> None:
    with pytest.raises(TileError) as caught:
        raise kind("it failed", remedy="mend it", location=INNER)
    copied = pickle.loads(pickle.dumps(caught.value))
    for error in (caught.value, copied):
        assert (error.message, error.remedy, error.location) == ("it failed", "mend it", INNER)
        assert str(error).startswith("it failed\nhelpers.py:4:12")
    assert kind.__doc__ is not None
    assert kind.__doc__.endswith(".")


@pytest.mark.parametrize(("kind", "builtin"), BUILTINS.items())
def test_users_can_catch_the_builtin(kind: type[TileError], builtin: type[Exception]) -> None:
    with pytest.raises(builtin, match="it failed"):
        raise kind("it failed")


def test_an_internal_error_says_how_to_report_it() -> None:
    text = str(InternalError("a use was lost", location=INNER))
    assert "issue tracker" in text
    assert "kernel's source" in text
    assert "versions" in text


class Silent:
    """An object that fails at its own text."""

    def __repr__(self) -> str:
        raise KeyError("no text")


class Half(int):
    """A number that fails at its own text."""

    __repr__ = Silent.__repr__


def test_what_a_user_passed_is_shown_whatever_it_is() -> None:
    nested: list[object] = []
    nested.append(nested)
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    cases = [
        (3, "3"),
        ("a", "'a'"),
        (None, "None"),
        (nested, "[[...]]"),
        (10**5000, "<int of 16610 bits>"),
        (-(10**5000), "<int of 16610 bits>"),
        ([10**5000], "<list>"),
        (Silent(), "<Silent>"),
        ((1, Silent()), "<tuple>"),
        (Half(5), "<Half of 3 bits>"),
        (deep, "<list>"),
        ("x" * 1000, f"'{'x' * 79}..."),
    ]
    for value, text in cases:
        assert shown(value) == text
