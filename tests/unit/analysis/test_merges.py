"""Merge recognition: what counts as `state (+) f(elements)`, and what only looks like it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tilenest.analysis import known_merges, unmerged_reductions
from tilenest.dialects import Apply, Reduce, Yield, registry
from tilenest.ir import Block, Builder, ScalarType, Value, float32, parse_module

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


REDUCTION = """
module "candidate"
dim %d0 "m" = 8

func @main(%A: view<f32, [8], [1]>, %x: f32) {
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %t = tile.load(%A, [%c0]) : tile<f32, %d0>
  %sums, %last = exec.reduce(lower = [%c0], upper = [%c1], step = [%c1], initial = [%t, %x],
      policy = "unordered_tree") : (tile<f32, %d0>, f32) {
      |%i: index, %s: tile<f32, %d0>, %r: f32|
    %next = tile.map(INPUTS) : tile<f32, %d0> { |%j: index, ARGUMENTS|
      BODY
    }
    %more = scalar.apply "add"(%r, %x) : f32
    exec.yield(%next, %more)
  }
  func.return
}
"""


@pytest.mark.parametrize(
    ("inputs", "arguments", "body", "is_tree"),
    [
        ("%s, %t", "%a: f32, %b: f32", '%0 = scalar.apply "add"(%a, %b) : f32', True),
        ("%t, %s", "%b: f32, %a: f32", '%0 = scalar.apply "fma"(%b, %b, %a) : f32', True),
        ("%s", "%a: f32", '%0 = scalar.apply "add"(%x, %a) : f32', True),
        ("%s", "%a: f32", '%0 = scalar.apply "sub"(%a, %x) : f32', False),
        ("%s, %s", "%a: f32, %b: f32", '%0 = scalar.apply "add"(%a, %b) : f32', False),
        ("%s", "%a: f32", '%0 = scalar.apply "add"(%a, %r) : f32', False),
        (
            "%s",
            "%a: f32",
            '%n = scalar.apply "neg"(%r) : f32\n %0 = scalar.apply "add"(%a, %n) : f32',
            False,
        ),
    ],
    ids=["sum", "fma", "captured", "sub", "doubled", "captured state", "of a captured state"],
)
def test_tiles_merge_by_their_elements(
    inputs: str, arguments: str, body: str, is_tree: bool
) -> None:
    text = REDUCTION.replace("INPUTS", inputs).replace("ARGUMENTS", arguments)
    text = text.replace("BODY", f"{body}\n exec.yield(%0)")
    module = parse_module(text, registry())
    (op,) = [op for op in module.walk() if isinstance(op, Reduce)]
    assert list(unmerged_reductions(module)) == ([] if is_tree else [op])
