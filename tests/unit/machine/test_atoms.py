"""Atoms: the catalogue's contracts, and their selection by a proof on the exact site.

What the two lane atoms compute is judged on numbers: their layouts are applied to the elements of a
square and of a vector, and must give the transposed square and one element.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tilenest.dialects import REDUCTION_POLICIES, law_of
from tilenest.errors import InternalError
from tilenest.ir import (
    BOOL,
    COMBINE,
    MOVE,
    EffectKind,
    ScalarType,
    VectorType,
    float32,
    int32,
)
from tilenest.layouts import AffineMap, Answer, Const, DimRef, Sym
from tilenest.machine import (
    ASSERT,
    AVX2,
    LANE_REDUCTIONS,
    PRINT,
    TRANSPOSE_LANES,
    Arithmetic,
    AtomContract,
    AtomSite,
    Catalogue,
    Comparison,
    Refusal,
    Selection,
    cpu_target,
    failing,
    select,
)
from tilenest.machine.atoms import ORDERS
from tilenest.records import replace

TARGET = cpu_target(AVX2)
LANES = 8
ROW, COLUMN = DimRef(0), DimRef(1)
STRAIGHT, TURNED = AffineMap(2, 0, (ROW, COLUMN)), AffineMap(2, 0, (COLUMN, ROW))


def contract(name: str) -> AtomContract:
    found = TARGET.atoms.find(name)
    assert found is not None
    return found


def square_site(**changes: Any) -> AtomSite:
    square = (VectorType(float32, LANES),) * LANES
    sides = (LANES, LANES)
    site = AtomSite(
        "square", MOVE, None, "exact", square, square, sides, (STRAIGHT,), (TURNED,), "vector"
    )
    return replace(site, **changes)


def fold_site(policy: str, dtype: Any = float32, merge: str = "add", **changes: Any) -> AtomSite:
    site = AtomSite(
        "fold",
        COMBINE + merge,
        policy,
        "each",
        (VectorType(dtype, LANES),),
        (ScalarType(dtype),),
        (LANES,),
        (AffineMap(1, 0, (Const(0), DimRef(0))),),
        (AffineMap(1, 0, ()),),
        "vector",
        is_exact=law_of(merge, dtype).is_exact,
    )
    return replace(site, **changes)


def refused(site: AtomSite, name: str, clause: str, target: Any = TARGET) -> None:
    """No contract fits, and this one for this clause."""
    found = select(site, target)
    assert isinstance(found, Refusal), found
    failed = {contract.id: clause for contract, clause in found.failed}
    assert failed[name].name == clause, str(found)
    assert failed[name].answer.is_disproven
    assert failed[name].answer.reason in str(found)


def test_the_square_of_lanes_is_selected_with_its_proof() -> None:
    found = select(square_site(), TARGET)
    assert isinstance(found, Selection)
    assert found.contract.id == TRANSPOSE_LANES
    names = [clause.name for clause in found.clauses]
    assert names == [
        "meaning",
        "types",
        "order",
        "rounding",
        "participants",
        "effects",
        "features",
        "layout of operand 0",
        "layout of result 0",
    ]
    assert all(clause.answer.is_proven for clause in found.clauses)
    assert found.decision.choice == f"{TRANSPOSE_LANES} v1"
    assert all(name in found.decision.reason for name in names)


def test_the_layouts_of_a_square_transpose_it() -> None:
    atom = contract(TRANSPOSE_LANES)
    given, taken = atom.operand_layouts[0], atom.result_layouts[0]
    before = {given.evaluate(p): p for p in itertools.product(range(LANES), repeat=2)}
    after = {taken.evaluate(p): p for p in itertools.product(range(LANES), repeat=2)}
    assert len(before) == len(after) == LANES * LANES
    assert all(after[i, j] == before[j, i] for i, j in before)


def test_a_fold_along_lanes_needs_freedom_or_exact_arithmetic() -> None:
    for policy, dtype in [("unordered_tree", float32), ("fold_left", int32)]:
        found = select(fold_site(policy, dtype), TARGET)
        assert isinstance(found, Selection)
        assert found.contract.id == LANE_REDUCTIONS["add"]
    for policy in ("fold_left", "fold_right", "ordered_tree"):
        refused(fold_site(policy), LANE_REDUCTIONS["add"], "order")


def folding(order: str, rounding: str = "each") -> Any:
    """A target whose one atom combines lanes in this way."""
    atom = replace(contract(LANE_REDUCTIONS["add"]), arithmetic=Arithmetic(order, rounding))
    return replace(TARGET, atoms=Catalogue((atom,)))


@pytest.mark.parametrize(
    ("order", "combined"),
    [
        ("source", lambda x: ((x[0] + x[1]) + x[2]) + x[3]),
        ("reverse", lambda x: ((x[3] + x[2]) + x[1]) + x[0]),
        ("neighbours", lambda x: (x[0] + x[1]) + (x[2] + x[3])),
        ("halving", lambda x: (x[0] + x[2]) + (x[1] + x[3])),
    ],
)
def test_a_policy_permits_the_orders_that_give_its_number(order: str, combined: Any) -> None:
    """A chain has one number, a tree in source order those of every bracketing."""
    target = folding(order)
    fitting = {p for p in REDUCTION_POLICIES if isinstance(select(fold_site(p), target), Selection)}
    drawn = np.random.default_rng(7).standard_normal((500, 4)) * 10.0 ** np.arange(4)
    wanted: dict[str, list[Any]] = {
        "fold_left": [lambda x: ((x[0] + x[1]) + x[2]) + x[3]],
        "fold_right": [lambda x: ((x[3] + x[2]) + x[1]) + x[0]],
    }
    for policy, chains in wanted.items():
        is_same = all(combined(x) == chain(x) for x in drawn.astype(np.float32) for chain in chains)
        assert (policy in fitting) == is_same
    is_in_order = order in ("source", "neighbours")
    assert ("ordered_tree" in fitting) == is_in_order
    assert "unordered_tree" in fitting
    for policy in set(REDUCTION_POLICIES) - fitting:
        refused(fold_site(policy), LANE_REDUCTIONS["add"], "order", target)
        assert isinstance(select(fold_site(policy, int32), target), Selection)


def test_an_atom_rounds_as_the_program_does() -> None:
    site = fold_site("unordered_tree")
    for rounding in ("fused", "wide", "exact"):
        target = folding("halving", rounding)
        refused(site, LANE_REDUCTIONS["add"], "rounding", target)
        assert isinstance(select(replace(site, rounding=rounding), target), Selection)
        assert isinstance(select(fold_site("unordered_tree", int32), target), Selection)
    moved = replace(contract(TRANSPOSE_LANES), arithmetic=Arithmetic("none", "wide"))
    refused(square_site(), moved.id, "rounding", replace(TARGET, atoms=Catalogue((moved,))))


@pytest.mark.parametrize("semantic", [COMBINE + "sub", COMBINE + "saturating_add"])
def test_whole_numbers_may_depend_on_the_order_and_on_the_rounding(semantic: str) -> None:
    """A target may combine by what does not commute, or by what limits every step."""
    site = replace(fold_site("fold_left", int32), semantic=semantic, is_exact=False)
    for order, rounding, clause in (("halving", "each", "order"), ("source", "wide", "rounding")):
        atom = replace(
            contract(LANE_REDUCTIONS["add"]),
            semantics=frozenset({semantic}),
            arithmetic=Arithmetic(order, rounding),
        )
        refused(site, atom.id, clause, replace(TARGET, atoms=Catalogue((atom,))))


def test_orders_and_roundings_that_nobody_knows_are_refused() -> None:
    assert set().union(*ORDERS.values()) == set(REDUCTION_POLICIES)
    for order, rounding in (("shuffled", "each"), ("halving", "down")):
        with pytest.raises(InternalError, match="nothing is known"):
            Arithmetic(order, rounding)


def test_sites_that_break_a_clause_are_refused() -> None:
    square = (VectorType(float32, LANES),) * LANES
    narrow, mixed = square[:-1], (*square[:-1], VectorType(int32, LANES))
    refused(square_site(operands=narrow), TRANSPOSE_LANES, "types")
    refused(square_site(operands=mixed), TRANSPOSE_LANES, "types")
    refused(square_site(results=(ScalarType(float32),) * LANES), TRANSPOSE_LANES, "types")
    odd = (VectorType(float32, 6),) * 6
    refused(square_site(operands=odd, results=odd), TRANSPOSE_LANES, "types")
    refused(square_site(participants="worker"), TRANSPOSE_LANES, "participants")
    refused(square_site(result_layouts=(STRAIGHT,)), TRANSPOSE_LANES, "layout of result 0")
    refused(square_site(operand_layouts=(TURNED,)), TRANSPOSE_LANES, "layout of operand 0")
    refused(square_site(result_layouts=()), TRANSPOSE_LANES, "result layouts")
    flat = (AffineMap(2, 0, (ROW,)),)
    refused(square_site(result_layouts=flat), TRANSPOSE_LANES, "layout of result 0")
    refused(fold_site("unordered_tree", merge="atan2"), LANE_REDUCTIONS["add"], "meaning")
    refused(fold_site("unordered_tree", merge="xor"), LANE_REDUCTIONS["xor"], "types")


def test_a_layout_is_refused_with_a_witness() -> None:
    found = select(square_site(result_layouts=(STRAIGHT,)), TARGET)
    assert isinstance(found, Refusal)
    answer = next(c.answer for a, c in found.failed if a.id == TRANSPOSE_LANES)
    assert isinstance(answer, Answer) and answer.witness is not None
    (point,) = answer.witness.points
    assert STRAIGHT.evaluate(point) != TURNED.evaluate(point)


def test_a_disproof_shows_a_point_or_is_a_comparison() -> None:
    """Whatever else a clause compares has no points, and its type says so."""
    sites = [
        square_site(operands=()),
        square_site(participants="worker"),
        square_site(rounding="each", semantic=COMBINE + "add"),
        square_site(result_layouts=()),
        square_site(result_layouts=(STRAIGHT,)),
        fold_site("fold_left"),
    ]
    kinds = set()
    for site in sites:
        found = select(site, TARGET)
        assert isinstance(found, Refusal)
        for _, clause in found.failed:
            answer = clause.answer
            kinds.add(type(answer))
            assert answer.is_disproven
            if isinstance(answer, Answer):
                assert answer.witness is not None and answer.witness.points
    assert kinds == {Answer, Comparison}


@pytest.mark.parametrize(
    "layout",
    [
        AffineMap(1, 0, (DimRef(0), Const(0))),
        AffineMap(3, 0, (ROW, COLUMN)),
        AffineMap(2, 1, (ROW, COLUMN)),
        AffineMap(2, 1, (ROW + Sym(0), COLUMN)),
        AffineMap(2, 0, (ROW,)),
    ],
)
def test_layouts_have_the_coordinates_of_the_site_and_no_others(layout: AffineMap) -> None:
    """Also where both sides have the same map: it says nothing about the extents at hand."""
    refused(square_site(operand_layouts=(layout,)), TRANSPOSE_LANES, "layout of operand 0")
    atom = replace(contract(TRANSPOSE_LANES), operand_layouts=(layout,))
    target = replace(TARGET, atoms=Catalogue((atom,)))
    refused(square_site(), TRANSPOSE_LANES, "layout of operand 0", target)
    if len(layout.results) == 2:
        site = square_site(operand_layouts=(layout,))
        refused(site, TRANSPOSE_LANES, "layout of operand 0", target)


def test_layouts_are_equal_as_maps_not_as_text() -> None:
    wrapped = AffineMap(2, 0, (COLUMN % LANES, ROW + (COLUMN // LANES)))
    assert isinstance(select(square_site(result_layouts=(wrapped,)), TARGET), Selection)
    longer = square_site(result_layouts=(wrapped,), extents=(LANES, 2 * LANES))
    refused(longer, TRANSPOSE_LANES, "layout of result 0")


def test_features_and_effects_are_held_against_the_machine_and_the_site() -> None:
    bare = replace(TARGET, features=frozenset())
    refused(square_site(), TRANSPOSE_LANES, "features", bare)
    assert failing(square_site(), contract(TRANSPOSE_LANES)) is None
    loud = replace(contract(TRANSPOSE_LANES), effects=frozenset({EffectKind.FAULT}))
    target = replace(TARGET, atoms=Catalogue((loud,)))
    refused(square_site(), TRANSPOSE_LANES, "effects", target)
    allowed = square_site(allowed=frozenset({EffectKind.FAULT}))
    assert isinstance(select(allowed, target), Selection)


def test_the_first_contract_that_is_proven_is_chosen() -> None:
    better = replace(contract(TRANSPOSE_LANES), id="cpu.lanes.fast", needs=frozenset({"amx"}))
    both = replace(TARGET, atoms=Catalogue((better, *TARGET.atoms.contracts)))
    found = select(square_site(), both)
    assert isinstance(found, Selection)
    assert found.contract.id == TRANSPOSE_LANES
    assert found.decision.runner_up == "cpu.lanes.fast v1"
    able = replace(both, features=both.features | {"amx"})
    found = select(square_site(), able)
    assert isinstance(found, Selection)
    assert found.contract is better


def test_an_empty_catalogue_says_so() -> None:
    found = select(square_site(), replace(TARGET, atoms=Catalogue()))
    assert isinstance(found, Refusal)
    assert "empty" in str(found)


def test_effects_and_protocols_of_the_other_atoms() -> None:
    assert contract(ASSERT).effects == {EffectKind.FAULT}
    assert contract(ASSERT).mismatch([BOOL], []) is None
    wrong = contract(ASSERT).mismatch([ScalarType(float32)], [])
    assert wrong == "operand 0 has elements of kind 'b', not f32"
    assert contract(PRINT).protocol
    values = [ScalarType(float32), VectorType(int32, LANES), BOOL]
    assert contract(PRINT).mismatch(values, []) is None
    assert contract(PRINT).mismatch(values, [BOOL]) is not None


def test_ids_are_stable_and_unique() -> None:
    names = [atom.id for atom in TARGET.atoms]
    reductions = [f"cpu.lanes.{name}" for name in ("reduce", "extreme", "number", "bits")]
    assert names == [TRANSPOSE_LANES, *reductions, PRINT, ASSERT]
    assert all(atom.version == 1 for atom in TARGET.atoms)
    assert TARGET.atoms.find("cpu.nothing") is None
    with pytest.raises(InternalError):
        Catalogue((contract(PRINT), contract(PRINT)))
