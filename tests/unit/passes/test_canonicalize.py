"""Canonicalization on IR text: what goes, what stays, and that effects are never dropped."""

from __future__ import annotations

import numpy as np
import pytest

from tilenest.dialects import ATTRIBUTE_RECORDS, OPERATIONS
from tilenest.interp import interpret
from tilenest.ir import Module, Registry, Rewriter, parse_module, print_module
from tilenest.passes import canonicalize
from tilenest.verify import verify_module

REGISTRY = Registry.of(OPERATIONS, ATTRIBUTE_RECORDS)
FRAME = """module "candidate"

func @f(%X: view<f32, [4], [1]>, %Y: view<f32, [?], [1]>) with (alias_groups = [0, 1]) {{
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  %three = scalar.constant 3 : index
  %yes = scalar.constant true : bool
{body}
  func.return
}}
"""


def simplified(body: str) -> str:
    """The text after canonicalization, which must not change what the function does."""
    module = parse_module(FRAME.format(body=body), REGISTRY)
    before = run(module)
    for function in module.functions:
        canonicalize(function, Rewriter())
    verify_module(module)
    np.testing.assert_array_equal(run(module), before)
    return print_module(module)


def run(module: Module) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    out = np.full(4, np.nan, np.float32)
    interpret(module, [np.arange(1, 5, dtype=np.float32), out])
    return out


def test_index_arithmetic_on_constants_is_a_constant() -> None:
    text = simplified(
        """
  %a = scalar.apply "mul"(%three, %three) : index
  %b = scalar.apply "sub"(%a, %three) : index
  %c = scalar.apply "floordiv"(%b, %three) : index
  %v = tile.load(%X, [%c]) : f32
  tile.store(%Y, [%zero], %v)"""
    )
    assert "scalar.apply" not in text
    assert "scalar.constant 2 : index" in text


def test_float_arithmetic_is_left_to_run_time() -> None:
    text = simplified(
        """
  %a = scalar.constant 0.5 : f32
  %b = scalar.apply "add"(%a, %a) : f32
  tile.store(%Y, [%zero], %b)"""
    )
    assert 'scalar.apply "add"' in text


def test_equal_scalars_are_one_and_dead_ones_go() -> None:
    text = simplified(
        """
  %v = tile.load(%X, [%one]) : f32
  %a = scalar.apply "mul"(%v, %v) : f32
  %b = scalar.apply "mul"(%v, %v) : f32
  %dead = scalar.apply "sub"(%v, %v) : f32
  %c = scalar.apply "add"(%a, %b) : f32
  tile.store(%Y, [%zero], %c)"""
    )
    assert text.count('"mul"') == 1
    assert '"sub"' not in text


def test_loads_are_not_shared_across_stores() -> None:
    text = simplified(
        """
  %v = tile.load(%X, [%one]) : f32
  tile.store(%X, [%one], %v)
  %w = tile.load(%X, [%one]) : f32
  %c = scalar.apply "add"(%v, %w) : f32
  tile.store(%Y, [%zero], %c)"""
    )
    assert text.count("tile.load") == 2


def test_a_constant_branch_is_taken() -> None:
    text = simplified(
        """
  %v = exec.if(%yes) : f32 {
    %a = tile.load(%X, [%one]) : f32
    exec.yield(%a)
  } {
    %b = tile.load(%X, [%three]) : f32
    exec.yield(%b)
  }
  tile.store(%Y, [%zero], %v)"""
    )
    assert "exec.if" not in text
    assert text.count("tile.load") == 1


def test_a_loop_that_runs_once_is_its_body() -> None:
    text = simplified(
        """
  %s = tile.load(%X, [%one]) : f32
  %t = exec.serial(lower = [%one], upper = [%three], step = [%three], initial = [%s]) : f32 {
  |%i: index, %a: f32|
    %x = tile.load(%X, [%i]) : f32
    %n = scalar.apply "add"(%a, %x) : f32
    exec.yield(%n)
  }
  tile.store(%Y, [%zero], %t)"""
    )
    assert "exec.serial" not in text


@pytest.mark.parametrize(
    ("update", "is_dropped"),
    [("exec.yield(%n, %b)", True), ("exec.yield(%n, %m)", True), ("exec.yield(%m, %n)", False)],
    ids=["unchanged", "only for itself", "feeds the other"],
)
def test_states_nobody_needs_are_dropped(update: str, is_dropped: bool) -> None:
    text = simplified(
        f"""
  %s = tile.load(%X, [%one]) : f32
  %t, %u = exec.serial(lower = [%zero], upper = [%three], step = [%one], initial = [%s, %s])
  : (f32, f32) {{
  |%i: index, %a: f32, %b: f32|
    %x = tile.load(%X, [%i]) : f32
    %n = scalar.apply "add"(%a, %x) : f32
    %m = scalar.apply "mul"(%b, %x) : f32
    {update}
  }}
  tile.store(%Y, [%zero], %t)"""
    )
    assert ("|%i: index, %a: f32|" in text) == is_dropped


def test_a_body_with_stores_stays() -> None:
    text = simplified(
        """
  exec.serial(lower = [%zero], upper = [%three], step = [%one]) { |%i: index|
    %x = tile.load(%X, [%i]) : f32
    tile.store(%Y, [%i], %x)
    exec.yield
  }"""
    )
    assert "tile.store" in text


def test_an_instance_that_is_alone_waits_for_nobody() -> None:
    """What many instances wait for stays."""
    nest = """
  exec.parallel(lower = [%zero], upper = [{count}], step = [%one]) {{ |%i: index|
    %x = tile.load(%X, [%i]) : f32
    exec.sync
    tile.store(%Y, [%i], %x)
    exec.yield
  }}"""
    alone, together = (simplified(nest.format(count=count)) for count in ("%one", "%three"))
    assert "exec.sync" not in alone
    assert "exec.sync" in together


PLACED = """
  exec.parallel(lower = [%zero], upper = [%three], step = [%one]) {{ |%i: index|
    exec.serial(lower = [%one, %zero], upper = [%three, %one], step = [%three, %one]) {{
    |%j: index, %u: index|
      exec.serial(lower = [%zero], upper = [%three], step = [%one]) {{ |%k: index|
        %x = tile.load(%X, [%i], place = #placement<{place}>) : f32
        tile.store(%Y, [%k], %x)
        exec.yield
      }}
      exec.yield
    }}
    exec.yield
  }}"""


@pytest.mark.parametrize(
    ("place", "moved"),
    [
        ("anchor = 1, frontier = 4", "anchor = 1, frontier = 2"),
        ("anchor = 1, frontier = 1", "anchor = 1, frontier = 1"),
        ("anchor = 2, frontier = 3", "anchor = 1, frontier = 1"),
        (
            "anchor = 1, frontier = 2, active = (d0, d1) -> (d0 - d1)",
            "anchor = 1, frontier = 1, active = (d0) -> (d0)",
        ),
        (
            "anchor = 1, frontier = 4, active = (d0, d1, d2, d3) -> (d0 + 2 * d1 - d3, d2 + 1)",
            "anchor = 1, frontier = 2, active = (d0, d1) -> (d0 - d1, 1)",
        ),
    ],
)
def test_depths_count_the_levels_that_are_left(place: str, moved: str) -> None:
    """A nest of one instance of two levels goes, and another one inside of it stays."""
    assert f"#placement<{moved}>" in simplified(PLACED.format(place=place))
