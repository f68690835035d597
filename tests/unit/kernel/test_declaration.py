"""Signatures: arrays by position, options by keyword, and what tells configurations apart."""

from types import FunctionType
from typing import Any

import pytest

from tilenest.errors import ArgumentTypeError, CaptureError
from tilenest.kernel.declaration import Declaration


def sample(A: Any, B: Any, bias: Any = None, *, bm: int = 96, mode: str) -> None: ...


assert isinstance(sample, FunctionType)
DECLARED = Declaration.of(sample)


def test_arrays_and_options_are_told_apart() -> None:
    assert DECLARED.parameters == ("A", "B", "bias")
    assert DECLARED.defaults == (None,)
    assert list(DECLARED.configuration) == ["bm", "mode"]


def test_defaults_complete_a_call() -> None:
    assert DECLARED.arguments((1, 2)) == (1, 2, None)
    assert DECLARED.arguments((1, 2, 3)) == (1, 2, 3)
    assert DECLARED.arguments((1,)) == (1,)
    assert DECLARED.complete({"mode": "fast"}) == {"bm": 96, "mode": "fast"}


@pytest.mark.parametrize(
    ("given", "message", "remedy"),
    [
        ({}, "needs the option 'mode'", "mode="),
        ({"mod": 1}, "no option 'mod'", "mean 'mode'"),
        ({"A": 1}, "no option 'A'", "by position"),
        ({"out": 1}, "no option 'out'", "by position"),
        ({"zzz": 1}, "no option 'zzz'", "bm, mode"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, Any], message: str, remedy: str) -> None:
    with pytest.raises(ArgumentTypeError, match=message) as caught:
        DECLARED.complete(given)
    assert remedy in (caught.value.remedy or "")


def test_a_configuration_that_cannot_be_a_key_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="not hashable"):
        DECLARED.key({"bm": [1]})


def test_equal_values_of_different_types_are_different_configurations() -> None:
    keys = {DECLARED.key({"x": x}) for x in (1, 1.0, True, (1,), (1.0,), "1", 0.0, -0.0)}
    assert len(keys) == 8
    assert DECLARED.key({"x": float("nan")}) == DECLARED.key({"x": float("nan")})


def starred(A: Any, *rest: Any) -> None: ...
def doubly_starred(A: Any, **rest: Any) -> None: ...
def reserved(A: Any, *, target: str = "cpu") -> None: ...


async def coroutine(A: Any) -> None: ...
def generator(A: Any) -> Any:
    yield A


async def asynchronous_generator(A: Any) -> Any:
    yield A


@pytest.mark.parametrize(
    "function",
    [starred, doubly_starred, reserved, coroutine, generator, asynchronous_generator],
)
def test_functions_that_are_no_kernels(function: Any) -> None:
    with pytest.raises(CaptureError, match=function.__name__) as caught:
        Declaration.of(function)
    assert caught.value.remedy
    assert caught.value.location is not None
    assert f"def {function.__name__}(" in caught.value.location.source


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (coroutine, "is a coroutine"),
        (generator, "is a generator"),
        (asynchronous_generator, "is an asynchronous generator"),
    ],
)
def test_functions_that_do_not_run_when_called_are_named(function: Any, kind: str) -> None:
    with pytest.raises(CaptureError, match=kind):
        Declaration.of(function)
