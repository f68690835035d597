"""Every accepted example that a caller can run goes down to loops: each step is verified, and the
interpreter gives what the example as it is written gave.

In: the examples in Candidate form whose parameters are views and scalars, and programs of which a
pass leaves fewer levels. Out: one run a step, on arrays that are made up.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.invariants.corpus import examples
from tests.unit.passes.lowering import lowered
from tilenest.dialects import AtomCall
from tilenest.interp import interpret
from tilenest.ir import BOOL, Function, Module, ScalarType, Type, ViewType, element_dtype
from tilenest.machine import AVX2, AVX512, Machine

EXTENT = 16
"""Of an axis whose extent is known at run time only."""
FRAME = """module "candidate"
dim %d0 "m" = 4
dim %d1 "n" = 8

func @main(%A: view<i32, [?], [1]>, %B: view<i32, [?], [1]>) with (alias_groups = [0, 1]) {{
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c2 = scalar.constant 2 : index
  %c4 = scalar.constant 4 : index
{body}
  func.return
}}
"""
PROGRAMS = {
    "a frontier at a level of one instance": """
  exec.parallel(lower = [%c0], upper = [%c4], step = [%c1]) { |%i: index|
    exec.serial(lower = [%c0], upper = [%c1], step = [%c1]) { |%k: index|
      %x = tile.load(%A, [%i], place = #placement<anchor = 1, frontier = 2>) : tile<i32, %d0>
      tile.store(%B, [%i], %x, dims = [%d0])
      exec.yield
    }
    exec.yield
  }""",
    "a worker that waits alone": """
  exec.parallel(lower = [%c0], upper = [%c4], step = [%c1], scope = "group") { |%i: index|
    exec.parallel(lower = [%c0], upper = [%c1], step = [%c1], scope = "worker") { |%j: index|
      %x = tile.load(%A, [%i]) : i32
      exec.sync
      tile.store(%B, [%i], %x)
      exec.yield
    }
    exec.yield
  }""",
    "an array in a stage": """
  %t = tile.load(%A, [%c0]) : tile<i32, %d0>
  exec.pipeline(lower = [%c0], upper = [%c2], step = [%c1]) { |%i: index|
    %none = array.make : array<tile<i32, %d0>, 2, filled>
    %half = array.set(%none, [%c0], %t) : array<tile<i32, %d0>, 2, filled>
    %full = array.set(%half, [%c1], %t) : array<tile<i32, %d0>, 2, filled>
    %whole = array.assemble(%full) : tile<i32, %d1>
    tile.store(%B, [%i], %whole, dims = [%d1])
    exec.yield
  }""",
}


def is_run(text: str) -> bool:
    """Whether a caller can run a program on a CPU; atoms that no step chose are for others."""
    module = tn.parse(text)
    function = main_of(module)
    return (
        module.form == "candidate"
        and not function.result_types
        and all(isinstance(p.type, ViewType | ScalarType) for p in function.arguments)
        and not any(isinstance(op, AtomCall) for op in module.walk())
    )


def main_of(module: Module) -> Function:
    return next(iter(module.functions))


TEXTS = {
    **{example.id: example.text for example in examples() if example.rule is None},
    **{name: FRAME.format(body=body) for name, body in PROGRAMS.items()},
}
RUN = {name: text for name, text in TEXTS.items() if is_run(text)}


def made_up(type_: Type, chance: np.random.Generator) -> Any:
    """An argument of a type: small whole numbers, whose sums are the same in every order."""
    if isinstance(type_, ScalarType):
        return True if type_ is BOOL else 2
    assert isinstance(type_, ViewType)
    shape = [EXTENT if extent is None else extent for extent in type_.shape]
    steps = [
        prod(shape[axis + 1 :]) if step is None else step for axis, step in enumerate(type_.strides)
    ]
    size = 1 + sum((extent - 1) * step for extent, step in zip(shape, steps, strict=True))
    dtype = np.dtype(element_dtype(type_).name.rstrip("_"))
    elements = chance.integers(1, 6, size).astype(dtype)
    return np.lib.stride_tricks.as_strided(
        elements, shape, [step * dtype.itemsize for step in steps]
    )


def results(module: Module, types: list[Type]) -> list[Any]:
    """The arguments as a run leaves them."""
    chance = np.random.default_rng(5)
    arguments = [made_up(type_, chance) for type_ in types]
    interpret(module, arguments)
    return arguments


def check_steps(name: str, machine: Machine) -> None:
    module = tn.parse(RUN[name])
    types = [parameter.type for parameter in main_of(module).arguments]
    expected = results(module, types)
    for step, found in lowered(module, machine):
        for got, wanted in zip(results(found, types), expected, strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=f"after {step}")


def test_examples_are_run() -> None:
    assert len(RUN) > 20
    assert set(PROGRAMS) <= set(RUN)


@pytest.mark.parametrize("name", RUN)
def test_what_is_accepted_goes_down_to_loops(name: str) -> None:
    check_steps(name, AVX512)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_what_is_accepted_goes_down_to_loops_on_another_machine(name: str) -> None:
    check_steps(name, AVX2)
