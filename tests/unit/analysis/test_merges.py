"""Merge recognition: what counts as `state (+) f(elements)`, and what only looks like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilenest.analysis import known_merges
from tilenest.dialects import Apply, Yield
from tilenest.ir import Block, Builder, ScalarType, Value, float32

F32 = ScalarType(float32)
Body = Callable[[Callable[..., Value], Value, Value, Value], tuple[Value, Value]]


def merges_of(body: Body) -> tuple[str | None, ...]:
    """Merges of a fold with one element and two states."""
    block = Block([F32] * 3)
    builder = Builder(block)

    def apply(function: str, *arguments: Value) -> Value:
        op = Apply(arguments=arguments, function=function, result_types=[F32])
        return builder.insert(op).result

    element, first, second = block.arguments
    nexts = body(apply, element, first, second)
    builder.insert(Yield(values=nexts))
    return known_merges(block, (first, second), nexts)


@pytest.mark.parametrize("function", ["add", "mul", "minimum", "maximum"])
def test_either_side_is_a_merge(function: str) -> None:
    found = merges_of(lambda f, e, s, t: (f(function, s, e), f(function, f("mul", e, e), t)))
    assert found == (function, function)


def test_multiply_add_onto_the_state_is_an_addition() -> None:
    found = merges_of(lambda f, e, s, t: (f("fma", e, e, s), f("fma", e, t, e)))
    assert found == ("add", None)


@pytest.mark.parametrize(
    "body",
    [
        lambda f, e, s, t: (f("sub", s, e), t),
        lambda f, e, s, t: (f("add", f("mul", s, e), e), t),
        lambda f, _, s, t: (f("add", s, s), t),
        lambda f, e, s, t: (f("add", s, f("mul", s, e)), t),
        lambda f, e, s, t: (f("add", s, f("mul", t, e)), t),
        lambda _f, e, _s, t: (e, t),
        lambda _f, _e, s, t: (t, s),
    ],
    ids=["sub", "scaled", "doubled", "own", "other", "last", "swapped"],
)
def test_anything_else_is_a_chain(body: Body) -> None:
    assert merges_of(body)[0] is None
