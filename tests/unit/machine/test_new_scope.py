"""A scope that no code of the package has heard of, added to a target as data.

Programs name it or are given it, the verifier judges bindings by what the target says of it, and a
target without it refuses them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, specs_of
from tilenest import language
from tilenest.capture import capture
from tilenest.dialects import Parallel, registry
from tilenest.errors import TargetError, VerifyError
from tilenest.execution import TargetScope, TargetScopes
from tilenest.interp import interpret
from tilenest.ir import Module, Rewriter, parse_module, print_module
from tilenest.machine import AVX2, Target, cpu_target
from tilenest.passes import SCHEDULE_PASSES, lower_machine
from tilenest.plan import plan_scopes
from tilenest.records import replace
from tilenest.verify import diagnose_module, verify_module

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

CPU = cpu_target(AVX2)


def clustered(arity: int | None = None, **changes: Any) -> Target:
    """A CPU whose groups stand in clusters."""
    device, group, *inner = CPU.scopes.scopes
    cluster = TargetScope("cluster", (device.name,), arity)
    scopes = TargetScopes((device, cluster, replace(group, within=("cluster",)), *inner))
    return replace(CPU, name="clustered", scopes=scopes, **changes)


CHOSEN = clustered(
    root_scopes=("cluster", *CPU.root_scopes), nested_scopes=("group", *CPU.nested_scopes)
)


def rows(A: Any, B: Any) -> None:
    """A loop keeps the nests apart, so that nothing unites them."""
    n = tn.axis("n", 10)
    for block in tn.parallel(3):
        for half in block.serial(2):
            for worker in half.parallel(2):
                row, column = block.index() * 2 + worker.index(), half.index() * 10
                B((row, column), (1, n)).store(A[(row, column), (1, n)] * 2.0)


def named(A: Any, B: Any) -> None:
    n = tn.axis("n", 20)
    for block in tn.parallel(3, scope=tn.exec.device):
        for worker in block.parallel(2):
            row = block.index() * 2 + worker.index()
            B((row, 0), (1, n)).store(A[(row, 0), (1, n)] * 2.0)


def captured(kernel: Any) -> Module:
    arrays: list[Array] = [np.zeros((6, 20), np.float32), np.zeros((6, 20), np.float32)]
    return capture(kernel, specs_of(arrays), {}).module


def asking() -> Module:
    """A program that binds its outermost nest to the scope by its name."""
    text = print_module(captured(named))
    assert '"device"' in text
    return parse_module(text.replace('"device"', '"cluster"'), registry())


def scheduled(module: Module, target: Target) -> Module:
    verify_module(module, target)
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        list(step(module, target, rewriter))
        verify_module(module, target)
    return module


def bound(module: Module) -> list[str]:
    return [op.scope for op in module.walk() if isinstance(op, Parallel)]


@pytest.mark.parametrize(
    ("target", "scopes"),
    [
        (clustered(), ["group", "worker"]),
        (CHOSEN, ["cluster", "group"]),
        (clustered(root_scopes=("cluster",)), ["cluster", "worker"]),
        (clustered(nested_scopes=("cluster", "vector")), ["group", "vector"]),
    ],
)
def test_nests_that_name_no_scope_get_what_the_target_says(
    target: Target, scopes: list[str]
) -> None:
    module = scheduled(captured(rows), target)
    assert bound(module) == scopes
    a = np.arange(120, dtype=np.float32).reshape(6, 20)
    machine = lower_machine(module)
    verify_module(machine, target)
    for form in (module, machine):
        b = np.full((6, 20), np.nan, np.float32)
        interpret(form, [a, b])
        np.testing.assert_array_equal(b, a * 2)


def test_a_program_names_a_new_scope_and_gets_it() -> None:
    module = scheduled(asking(), clustered())
    assert bound(module) == ["cluster", "worker"]
    verify_module(lower_machine(module), clustered())


def test_targets_without_the_scope_refuse_it() -> None:
    for target in (None, CPU):
        with pytest.raises(VerifyError, match="which the target does not have") as caught:
            verify_module(asking(), target)
        assert caught.value.remedy
    with pytest.raises(TargetError, match="cpu has no execution scope 'cluster'"):
        plan_scopes(next(iter(asking().functions)), CPU)
    with pytest.raises(VerifyError, match="TN03"):
        verify_module(scheduled(asking(), clustered()), CPU)


@pytest.mark.parametrize(
    ("arity", "outer", "inner", "reason"),
    [
        (2, "cluster", "worker", "3 units of cluster are asked for, of 2"),
        (None, "worker", "cluster", "scope cluster is not within worker"),
        (None, "group", "cluster", "scope cluster is not within group"),
        (None, "cluster", "moon", "is bound to moon, which the target does not have"),
    ],
)
def test_bindings_to_a_new_scope_are_judged_by_its_data(
    arity: int | None, outer: str, inner: str, reason: str
) -> None:
    module = scheduled(asking(), clustered())
    first, second = (op for op in module.walk() if isinstance(op, Parallel))
    rewriter = Rewriter()
    rewriter.set_attribute(first, "scope", outer)
    rewriter.set_attribute(second, "scope", inner)
    found = diagnose_module(module, target=clustered(arity))
    assert {diagnostic.rule for diagnostic in found} == {"TN03"}
    assert reason in " ".join(map(str, found))


PIPELINE = """module "{form}"

func @main(%A: view<f32, [16], [1]>, %B: view<f32, [16], [1]>) {{
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c4 = scalar.constant 4 : index
  exec.pipeline(lower = [%c0], upper = [%c4], step = [%c1], stage_names = [none, none],
    dependences = [#dependence<producer = 0, consumer = 1, kind = "effect", scope = "{waits}">]) {{
  |%i: index|
    exec.parallel(lower = [%c0], upper = [%c4], step = [%c1], scope = "{scope}") {{ |%j: index|
      exec.yield
    }}
    exec.yield
  }} {{ |%i: index|
    exec.yield
  }}
  func.return
}}
"""


@pytest.mark.parametrize("form", ["candidate", "scheduled"])
@pytest.mark.parametrize(
    ("waits", "scope", "reason"),
    [
        ("cluster", "group", ""),
        ("cluster", "cluster", "instances of scope cluster do not wait for each other"),
        ("group", "cluster", "instances of scope cluster do not wait for each other"),
        ("moon", "cluster", "is 'moon'"),
    ],
)
def test_dependences_wait_in_a_new_scope(form: str, waits: str, scope: str, reason: str) -> None:
    text = PIPELINE.format(form=form, waits=waits, scope=scope)
    module = parse_module(text, registry())
    found = diagnose_module(module, target=clustered())
    assert {diagnostic.rule for diagnostic in found} == ({"TN14d"} if reason else set())
    assert reason in " ".join(map(str, found))
