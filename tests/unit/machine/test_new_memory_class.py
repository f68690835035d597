"""A class of memory that no code of the package has heard of, added to a target as data.

Programs ask for it by name, the compiler takes it and puts bufs into it, the verifier judges it,
and what it cannot do is refused with the reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.unit.passes.stepwise import Array, specs_of
from tilenest import language
from tilenest.analysis import Facts, memory_equations
from tilenest.capture import capture
from tilenest.dialects import Alloc, registry
from tilenest.errors import TargetError, VerifyError
from tilenest.execution import check_equation, failures
from tilenest.interp import interpret
from tilenest.ir import Module, Rewriter, float32, parse_module, print_module
from tilenest.machine import (
    AVX2,
    ResourceClass,
    Synchronisation,
    Target,
    accesses,
    cpu_target,
)
from tilenest.passes import SCHEDULE_PASSES, lower_machine
from tilenest.records import replace
from tilenest.verify import diagnose_module, verify_module

# Kernels are captured, not called: their types are judged by capture.
tn: Any = language

CPU = cpu_target(AVX2)
SCRATCHPAD = ResourceClass(
    name="scratchpad",
    topology="group",
    capacity=4096,
    alignment=256,
    coherence="synchronised",
    access=accesses(("worker",), ("allocate", "load", "store")),
    synchronisation=(Synchronisation("worker", "worker", "barrier"),),
)


def with_memory(**changes: Any) -> Target:
    """A CPU with one more class of memory, and nests that perform a barrier."""
    added = replace(SCRATCHPAD, **changes)
    return replace(CPU, resources=(*CPU.resources, added), boundaries=CPU.boundaries | {"barrier"})


def rows(A: Any, B: Any, *, width: int) -> None:
    """Instances inside of a group read what the group keeps, and what it keeps of that."""
    n = tn.axis("n", width)
    for block in tn.parallel(3):
        first = tn.memory(float32, (1, n), tn.mem.shared)
        second = tn.memory(float32, (1, n), tn.mem.shared)
        first.store(A[(block.index(), 0), (1, n)])
        second.store(first.load() * 2.0)
        for worker in block.parallel(2):
            row = block.index() * 2 + worker.index()
            B((row, 0), (1, n)).store(first.load() + second.load())


def own(A: Any, B: Any, *, width: int) -> None:
    """Memory that its owner alone uses."""
    n = tn.axis("n", width)
    for block in tn.parallel(3):
        kept = tn.memory(float32, (1, n), tn.mem.shared)
        kept.store(A[(block.index(), 0), (1, n)])
        B((block.index(), 0), (1, n)).store(kept.load())


def captured(kernel: Any, width: int) -> Module:
    arrays: list[Array] = [np.zeros((3, width), np.float32), np.zeros((6, width), np.float32)]
    return capture(kernel, specs_of(arrays), {"width": width}).module


def asking(kernel: Any = rows) -> Module:
    """A program that asks for the class by its name."""
    text = print_module(captured(kernel, 20))
    assert '"shared"' in text
    return parse_module(text.replace('"shared"', '"scratchpad"'), registry())


def scheduled(module: Module, target: Target) -> Module:
    rewriter = Rewriter()
    for _, step in SCHEDULE_PASSES:
        list(step(module, target, rewriter))
        verify_module(module, target)
    return module


def test_a_program_asks_for_a_new_class_and_gets_it() -> None:
    target = with_memory()
    module = scheduled(asking(), target)
    kept = [op for op in module.walk() if isinstance(op, Alloc) and op.resource == "scratchpad"]
    assert [op.base for op in kept] == [0, 256]
    a = np.arange(60, dtype=np.float32).reshape(3, 20)
    for form in (module, lower_machine(module)):
        b = np.full((6, 20), np.nan, np.float32)
        interpret(form, [a, b])
        np.testing.assert_array_equal(b, np.repeat(a * 3, 2, axis=0))


def test_the_equations_of_a_new_class_are_proven() -> None:
    target = with_memory()
    (function,) = scheduled(asking(), target).functions
    a, b = function.arguments
    facts = Facts({}, {a: (3, 20), b: (6, 20)}, {a: (20, 1), b: (20, 1)}, workers=2)
    found = memory_equations(function, facts, target)
    uses = [use for use in found.uses if use.equation.right.resource == "scratchpad"]
    assert {use.touch.operation for use in uses} == {"allocate", "load", "store"}
    assert not [str(c) for use in uses for c in failures(check_equation(use.equation))]
    assert all(use.equation.allocation.capacity == 4096 for use in uses)


def test_another_target_refuses_the_class() -> None:
    with pytest.raises(TargetError, match="cpu has no memory resource 'scratchpad'") as caught:
        scheduled(asking(), CPU)
    assert caught.value.location is not None
    module = scheduled(asking(), with_memory())
    assert {found.rule for found in diagnose_module(module, target=CPU)} == {"TN11", "TN11b"}
    with pytest.raises(VerifyError, match="which the target does not have"):
        verify_module(module)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"capacity": 100}, "it needs 128 bytes, and 'scratchpad' has 100"),
        ({"capacity": 300}, "needs 384 bytes of scratchpad memory, which has 300"),
        ({"access": accesses(("worker",), ("allocate", "store"))}, "'scratchpad' has no load"),
        ({"access": accesses(("vector",), ("allocate",))}, "'worker' cannot allocate"),
        ({"topology": "device"}, "each group owns one, and 'scratchpad' has one instance for all"),
        ({"topology": "worker"}, "is visible to one worker alone"),
        ({"synchronisation": ()}, "sees what another stores in 'scratchpad' after nothing"),
        ({"coherence": "none", "synchronisation": ()}, "after nothing"),
        (
            {"synchronisation": (Synchronisation("worker", "worker", "fence"),)},
            "sees what another stores in 'scratchpad' after fence",
        ),
    ],
)
def test_what_a_new_class_cannot_do_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(TargetError) as caught:
        scheduled(asking(), with_memory(**changes))
    assert reason in caught.value.message
    assert caught.value.remedy
    assert caught.value.location is not None


@pytest.mark.parametrize("changes", [{"topology": "worker"}, {"coherence": "none"}])
def test_what_its_owner_alone_uses_needs_nobody_to_see_it(changes: dict[str, Any]) -> None:
    module = scheduled(asking(own), with_memory(synchronisation=(), **changes))
    assert "scratchpad" in {op.resource for op in module.walk() if isinstance(op, Alloc)}


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({"capacity": 256}, {"TN11b"}),
        ({"alignment": 512}, {"TN11b"}),
        ({"access": accesses(("worker",), ("allocate", "store"))}, {"TN11"}),
        ({"topology": "device"}, {"TN11"}),
        ({"topology": "worker"}, {"TN13"}),
        ({"synchronisation": ()}, {"TN13"}),
    ],
)
def test_the_verifier_judges_a_new_class_by_its_data(
    changes: dict[str, Any], rules: set[str]
) -> None:
    module = scheduled(asking(), with_memory())
    found = diagnose_module(module, target=with_memory(**changes))
    assert {diagnostic.rule for diagnostic in found} == rules


def test_an_open_choice_may_name_a_new_class() -> None:
    choices = {**CPU.aliases, "shared": ("scratchpad", "shared")}
    small = replace(with_memory(), aliases=choices)
    for width, taken in ((20, "scratchpad"), (2000, "shared")):
        module = scheduled(captured(rows, width), small)
        assert taken in {op.resource for op in module.walk() if isinstance(op, Alloc)}
