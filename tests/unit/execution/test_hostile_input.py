"""Wrong kinds, contradictions and deep scopes are refused at once, with what to do."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from tests.unit.execution.oracle import structure_of
from tilenest.errors import ArgumentTypeError, VerifyError
from tilenest.execution import (
    Allocation,
    Binding,
    Definition,
    Distribution,
    ExecLevel,
    ExecStructure,
    Observer,
    PrefixCut,
    TargetScope,
    TargetScopes,
    are_compatible,
    bind,
    check,
    check_bindings,
    check_equation,
    coalesce,
    compose,
    fuse,
    identity,
    insert_unit,
    permute,
    remove_unit,
    repartition,
    reshape,
    split,
    unite,
)
from tilenest.layouts import Const, DimRef, Identity, Space, Sym

GEMM = structure_of(("m", "parallel", 8), ("n", "parallel", 6), ("k", "serial", 9))
HALVED = split(GEMM, "m", 2)
HELD = Distribution(PrefixCut(0), ("m",), Identity(Space.box(8)))
CORES = TargetScopes((TargetScope("core", (), 8),))
TAKES: dict[str, Callable[[Any], object]] = {
    "split": lambda x: split(GEMM, "m", x),
    "split what": lambda x: split(x, "m", 2),
    "split level": lambda x: split(GEMM, x, 2),
    "fuse": lambda x: fuse(GEMM, "m", x),
    "unite": lambda x: unite(GEMM, "m", x),
    "permute": lambda x: permute(GEMM, [x]),
    "reshape": lambda x: reshape(GEMM, ["m"], (x, 2)),
    "insert_unit": lambda x: insert_unit(GEMM, 0, x),
    "remove_unit": lambda x: remove_unit(GEMM, x),
    "coalesce": coalesce,
    "compose": lambda x: compose(HALVED, x),
    "identity": identity,
    "check": lambda x: check(x, []),
    "check observers": lambda x: check(HALVED, [x]),
    "check rewrites": lambda x: check(HALVED, [], [x]),
    "Observer": lambda x: Observer("a", "anchor", x),
    "Observer kind": lambda x: Observer("a", x, PrefixCut(0)),
    "PrefixCut": PrefixCut,
    "ExecLevel": lambda x: ExecLevel("a", "a", "parallel", x),
    "ExecLevel identity": lambda x: ExecLevel(x, "a", "parallel", 3),
    "ExecStructure": lambda x: ExecStructure((x,)),
    "Definition": lambda x: Definition("a", x, ()),
    "bind": lambda x: bind(GEMM, [x]),
    "Binding": lambda x: Binding("m", "core", x),
    "check_bindings": lambda x: check_bindings(GEMM, [x], CORES),
    "check_bindings scopes": lambda x: check_bindings(GEMM, [], x),
    "TargetScope": TargetScope,
    "TargetScopes": lambda x: TargetScopes((x,)),
    "Distribution": lambda x: Distribution(PrefixCut(0), ("m",), x),
    "repartition": lambda x: repartition(HELD, x),
    "are_compatible": lambda x: are_compatible(HELD, x),
    "Allocation": lambda x: Allocation(x, 4),
    "check_equation": check_equation,
}


@pytest.mark.parametrize("name", TAKES)
def test_wrong_kinds_are_refused(name: str) -> None:
    for wrong in (2.5, float("nan"), None, object()):
        with pytest.raises(ArgumentTypeError, match="of type"):
            TAKES[name](wrong)


def test_an_observer_is_of_a_known_kind() -> None:
    kind: Any = "owners"
    with pytest.raises(VerifyError, match="unknown kind"):
        Observer("scratch", kind, PrefixCut(1))


def over(*definitions: Definition) -> ExecStructure:
    return ExecStructure((ExecLevel("a", "a", "parallel", "x"),), definitions)


@pytest.mark.parametrize(
    ("definitions", "reason"),
    [
        # x = x + 1 holds nowhere, and of nowhere every law would be proven.
        ((Definition("x", Sym(0) + 1, ("x",)),), "there or later"),
        ((Definition("x", Sym(0), ("y",)), Definition("y", Sym(0), ("x",))), "there or later"),
        ((Definition("x", Sym(0), ("y",)), Definition("x", Sym(0) + 1, ("y",))), "twice"),
    ],
)
def test_definitions_that_contradict_themselves_are_refused(
    definitions: tuple[Definition, ...], reason: str
) -> None:
    with pytest.raises(VerifyError, match=reason):
        over(*definitions)


def test_a_definition_uses_its_arguments_only() -> None:
    for expression in (Sym(1), DimRef(0)):
        with pytest.raises(VerifyError, match="1 arguments"):
            Definition("x", expression, ("y",))
    assert over(Definition("x", Const(3), ())).values({})["x"] == 3


def test_a_run_time_number_without_a_value_is_refused() -> None:
    tiled = split(structure_of(("i", "parallel", "M")), "i", 4)
    with pytest.raises(VerifyError, match="M have no values"):
        tiled.apply((0, 1))
    assert tiled.apply((1, 2), {"M": 7}) == (6,)


def test_a_name_of_the_program_is_never_taken_for_a_number_of_blocks() -> None:
    levels = (("i", "parallel", "M"), ("j", "parallel", "M_by_4"), ("k", "parallel", "M_times_N"))
    structure = structure_of(*levels)
    tiled = split(structure, "i", 4)
    # The program's own M_by_4 may have any value, whatever M is.
    values = {"M": 9, "M_by_4": 5, "M_times_N": 2, "N": 1}
    assert tiled.new.values(values)["M_by_4"] == 5
    events = product(range(3), range(4), range(5), range(2))
    found = {tiled.apply(point, values) for point in events} - {None}
    assert len(found) == 9 * 5 * 2
    assert check(tiled, [Observer("leaf", "anchor", PrefixCut(3))])
    assert split(tiled.new, "k", 2).new != tiled.new


def test_scopes_may_stand_deep_and_meet_again() -> None:
    chain = TargetScopes(
        tuple(TargetScope(f"s{i}", (f"s{i - 1}",) if i else ()) for i in range(2000))
    )
    assert chain.is_within("s1999", "s0")
    assert not chain.is_within("s0", "s1999")
    parts = [TargetScope("s0")]
    for i in range(1, 40):
        parts += [TargetScope(f"{side}{i}", (f"s{i - 1}",)) for side in "ab"]
        parts.append(TargetScope(f"s{i}", (f"a{i}", f"b{i}")))
    met = TargetScopes(tuple(parts))
    assert not met.is_within("a39", "b39") and not met.is_within("b39", "a39")
