"""Memory equations and what they are made of: prefixes, conditions, scratch layouts, refusals.

All events of random kernels are judged in `tests/oracle`; here are programs small enough to read,
and equations whose arrows are broken on purpose.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from tilenest.analysis import (
    Facts,
    MemoryEquations,
    MemoryUse,
    ScratchLayout,
    memory_equations,
)
from tilenest.driver import parse
from tilenest.execution import check_apart, check_equation, failures
from tilenest.ir import Function, Rewriter, fresh
from tilenest.layouts import Const, DimRef, Expressions, Space
from tilenest.machine import AVX2, cpu_target
from tilenest.passes import place, share_scratch
from tilenest.records import replace

CPU = cpu_target(AVX2)

COPY = """tensor.map_reduce_post(
      inputs = [{source}],
      outputs = [{target}],
      symbols = [{symbols}],
      extents = [4],
      input_access = [#access<map = (d0){symbol} -> ({read})>],
      output_access = [#access<map = (d0){symbol} -> ({written})>],
      specs = [#result_spec<dims = [0]>]
  ) {{ |%at{number}: index, %x{number}: f32|
    exec.yield(%x{number})
  }}"""


def copy(number: int, source: str, target: str, symbols: str, read: str, written: str) -> str:
    names = ", ".join(f"s{place}" for place in range(len(symbols.split(","))))
    return COPY.format(
        number=number,
        source=source,
        target=target,
        symbols=symbols,
        symbol=f"[{names}]" if symbols else "",
        read=read,
        written=written,
    )


PROGRAM = f"""
module "scheduled"

func @kernel(%A: view<f32, [?], [1]>, %n: index, %k: f32) {{
  %zero = scalar.constant 0 : index
  %one = scalar.constant 1 : index
  %two = scalar.constant 2 : index
  %six = scalar.constant 6 : index
  %outer = buf.alloc : buf<f32, 4>
  {copy(0, "%A", "%outer", "", "d0", "d0")}
  exec.parallel(lower = [%zero], upper = [%six], step = [%two]) {{ |%i: index|
    %first = buf.alloc : buf<f32, 4>
    %second = buf.alloc : buf<f32, 20>
    {copy(1, "%outer", "%first", "", "d0", "d0")}
    exec.serial(lower = [%zero], upper = [%i], step = [%one]) {{ |%j: index|
      %inner = buf.alloc : buf<f32, 4>
      {copy(2, "%first", "%inner", "", "d0", "d0")}
      %early = scalar.apply "lt"(%j, %n) : bool
      exec.if(%early) {{
        {copy(3, "%inner", "%second", "%j", "d0", "d0 + s0*4")}
        exec.yield
      }} {{
        exec.yield
      }}
      exec.yield
    }}
    {copy(4, "%second", "%A", "%i", "d0", "d0 + s0*4")}
    exec.yield
  }}
  func.return
}}
"""


def placed(text: str = PROGRAM) -> Function:
    """The kernel, with its bufs where the compiler puts them."""
    function, rewriter = parse(text).function("kernel"), Rewriter()
    place(function, CPU, rewriter)
    share_scratch(function, CPU, rewriter)
    return function


@pytest.fixture
def function() -> Function:
    return placed()


def equations(function: Function, n: int = 2, workers: int = 2) -> MemoryEquations:
    view, number, _ = function.arguments
    facts = Facts({number: n}, {view: (24,)}, {view: (1,)}, workers, 1)
    return memory_equations(function, facts, CPU)


def use_of(found: MemoryEquations, name: str, operation: str) -> MemoryUse:
    return next(
        use
        for use in found.uses
        if (use.touch.memory.name, use.touch.operation) == (name, operation)
    )


def places(use: MemoryUse) -> dict[tuple[int, ...], Any]:
    return dict(use.equation.places())


def test_memory_equations_name_instance_base_and_byte(function: Function) -> None:
    found = equations(function)
    assert not found.undecided
    stored = places(use_of(found, "second", "store"))
    # Instances i = 0, 2, 4; then j < i and j < n; then an element. Three instances, two workers.
    assert set(stored) == {
        (i, j, e) for i in range(3) for j in range(min(2 * i, 2)) for e in range(4)
    }
    for (i, j, e), found_at in stored.items():
        assert found_at.instance == (i % 2,)
        assert (found_at.base, found_at.byte) == (64, 64 + (4 * j + e) * 4)
    outer = places(use_of(found, "outer", "load"))
    assert {at.instance for at in outer.values()} == {()}
    assert use_of(found, "outer", "load").equation.right.resource == "call"


def test_memory_equations_follow_the_numbers_of_the_call(function: Function) -> None:
    for n in range(5):
        stored = places(use_of(equations(function, n), "second", "store"))
        assert {j for _, j, _ in stored} == set(range(min(n, 4)))


def test_memory_equations_are_proven_for_every_use(function: Function) -> None:
    found = equations(function)
    assert len(found.uses) == 14
    assert all(use.is_exact for use in found.uses)
    failed = [str(c) for use in found.uses for c in failures(check_equation(use.equation))]
    assert not failed


def test_scratch_layout_keeps_bufs_apart_whose_base_is_open() -> None:
    function = parse(PROGRAM).function("kernel")
    found = equations(function)
    assert {u.reason for u in found.undecided} >= {"%first is in no class of memory of the target"}
    parallel = next(op for op in function.body.operations if op.NAME == "exec.parallel")
    layout = fresh(ScratchLayout, function)
    bases = {op.results[0].name: base for op, base in layout.bases.items()}
    assert bases == {"outer": 0, "first": 0, "second": 64, "inner": 64 + 128}
    assert layout.sizes[parallel] == 64 + 128 + 64


def test_scratch_layout_reuses_the_bytes_of_blocks_that_are_left(function: Function) -> None:
    layout = fresh(ScratchLayout, function)
    bases = {op.results[0].name: base for op, base in layout.bases.items()}
    assert bases == {"outer": 0, "first": 0, "second": 64, "inner": 64 + 128}
    parallel = next(op for op in function.body.operations if op.NAME == "exec.parallel")
    assert layout.sizes == {None: 64, parallel: 64 + 128 + 64}


def test_bufs_alive_together_lie_apart(function: Function) -> None:
    found = equations(function)
    made = {name: use_of(found, name, "allocate") for name in ("outer", "first", "second", "inner")}
    for one, other in combinations(made.values(), 2):
        assert check_apart(one.equation, other.equation).answer.is_proven
    base = made["inner"].equation.base
    early = replace(
        made["inner"].equation, base=Expressions(base.domain, base.codomain, (Const(128),))
    )
    claim = check_apart(made["second"].equation, early)
    assert claim.answer.is_disproven
    assert claim.answer.witness is not None
    mine, theirs = claim.answer.witness.points
    assert 64 + mine[-1] == 128 + theirs[-1]


# Broken on purpose ------------------------------------------------------------------------------


def first_failure(use: MemoryUse, **changes: Any) -> tuple[str, str]:
    failed = failures(check_equation(replace(use.equation, **changes)))
    assert failed
    assert failed[0].answer.witness is not None
    return failed[0].arrow, failed[0].text


def test_a_memory_that_moves_with_the_serial_step_has_no_instance(function: Function) -> None:
    use = use_of(equations(function), "second", "store")
    target = use.equation.exec_binding.codomain
    spread = Expressions(
        use.equation.active.space, target, ((DimRef(0) + DimRef(1)) % 2, DimRef(0) // 2, DimRef(1))
    )
    arrow, _ = first_failure(use, exec_binding=spread)
    assert arrow == "instance"


def test_a_frame_too_small_for_a_buf_is_named(function: Function) -> None:
    use = use_of(equations(function), "inner", "store")
    allocation = replace(use.equation.allocation, capacity=64 + 128 + 63)
    assert first_failure(use, allocation=allocation) == ("base", "the allocation fits the resource")


def test_the_capacity_of_the_target_counts_all_bufs_of_a_frame(function: Function) -> None:
    view, number, _ = function.arguments
    private = replace(CPU.resource("private"), capacity=64 + 128)
    target = replace(CPU, resources=(private, *CPU.resources[1:]))
    found = memory_equations(function, Facts({number: 2}, {view: (24,)}, {view: (1,)}), target)
    assert not failures(check_equation(use_of(found, "second", "store").equation))
    assert first_failure(use_of(found, "inner", "store"))[0] == "base"


def test_a_buf_off_its_alignment_is_named(function: Function) -> None:
    use = use_of(equations(function), "first", "store")
    base = use.equation.base
    moved = Expressions(base.domain, Space.box(8, prefix="base"), (Const(4),))
    assert first_failure(use, base=moved) == ("base", "aligned to 64 bytes")


def test_strides_that_overlap_are_named(function: Function) -> None:
    use = use_of(equations(function), "second", "store")
    address = use.equation.address
    flat = Expressions(address.domain, address.codomain, (DimRef(1) // 2 * 4,))
    arrow, text = first_failure(use, address=flat)
    assert (arrow, text) == ("address", "different elements have bytes of their own")


def test_an_access_beyond_its_buf_is_named() -> None:
    """`%second` has room for five steps; here are instances that take six."""
    text = PROGRAM.replace("%six = scalar.constant 6", "%six = scalar.constant 8")
    wider = placed(text)
    use = use_of(equations(wider, n=9), "second", "store")
    failed = failures(check_equation(use.equation))
    assert failed[0].arrow == "access"
    assert failed[0].answer.witness is not None
    _, step, element = failed[0].answer.witness.points[0]
    assert step * 4 + element >= 20


def test_a_scope_without_the_right_is_named(function: Function) -> None:
    use = use_of(equations(function), "second", "store")
    right = replace(use.equation.right, scope="device")
    assert first_failure(use, right=right)[0] == "right"


# What is not decided ----------------------------------------------------------------------------


def test_conditions_on_what_is_computed_count_both_ways() -> None:
    text = PROGRAM.replace('"lt"(%j, %n) : bool', '"lt"(%k, %k) : bool')
    found = equations(placed(text))
    use = use_of(found, "second", "store")
    assert not use.is_exact
    assert {j for _, j, _ in places(use)} == {0, 1, 2, 3}
    assert use_of(found, "inner", "store").is_exact


def test_domains_that_are_computed_are_reported() -> None:
    text = PROGRAM.replace(
        "    exec.serial(lower = [%zero], upper = [%i]",
        "    %count = buf.alloc : buf<index>\n    %m = buf.read(%count) : index\n"
        "    exec.serial(lower = [%zero], upper = [%m]",
    )
    found = equations(placed(text))
    reasons = {undecided.reason for undecided in found.undecided}
    assert reasons == {"exec.serial: its domain is computed by the program"}
    names = {use.touch.memory.name for use in found.uses}
    assert "inner" not in names
    assert "outer" in names


def test_arguments_without_facts_are_reported(function: Function) -> None:
    found = memory_equations(function, Facts({}, {}, {}), CPU)
    assert {u.reason for u in found.undecided} >= {"%A is no argument whose extents are known"}


def test_a_view_counts_from_its_lowest_element(function: Function) -> None:
    view, number, _ = function.arguments
    facts = Facts({number: 2}, {view: (24,)}, {view: (-3,)})
    found = memory_equations(function, facts, CPU)
    use = use_of(found, "A", "load")
    assert [place.byte for place in places(use).values()] == [(23 - e) * 12 for e in range(4)]
    assert use.equation.view.codomain == Space.box(70, prefix="element")
    assert not failures(check_equation(use.equation))
