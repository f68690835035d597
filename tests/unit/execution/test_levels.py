"""Levels, cuts and observers as data, and what is refused of them."""

import pytest

from tests.unit.execution.oracle import every_event, structure_of
from tilenest.errors import VerifyError
from tilenest.execution import Definition, ExecLevel, ExecStructure, Observer, PrefixCut
from tilenest.layouts import Sym


def test_the_instances_of_a_prefix_are_those_of_the_levels_above_it() -> None:
    structure = structure_of(("m", "parallel", 3), ("k", "serial", 2), ("n", "parallel", 2))
    for depth in range(4):
        found = set(structure.prefix_space(PrefixCut(depth)).points())
        assert found == {point[:depth] for point in every_event((3, 2, 2))}
    assert structure.leaf == PrefixCut(3) and structure.depth == 3
    assert structure.position("n") == 2


def test_the_parallel_levels_of_a_prefix_are_its_spatial_part() -> None:
    structure = structure_of(
        ("m", "parallel", 3),
        ("k", "serial", 2),
        ("s", "pipeline", 2),
        ("n", "parallel", 2),
        ("r", "reduce:fold_left", 2),
    )
    found = [structure.spatial(PrefixCut(depth)) for depth in range(6)]
    assert found == [(), (0,), (0,), (0,), (0, 3), (0, 3)]


@pytest.mark.parametrize(
    ("kind", "policy", "is_ordered"),
    [
        ("parallel", "", False),
        ("serial", "", True),
        ("pipeline", "", True),
        ("reduce", "fold_left", True),
        ("reduce", "fold_right", True),
        ("reduce", "ordered_tree", True),
        ("reduce", "unordered_tree", False),
    ],
)
def test_what_is_ordered(kind: str, policy: str, is_ordered: bool) -> None:
    (level,) = structure_of(("x", f"{kind}:{policy}", 2)).levels
    assert level.is_ordered is is_ordered
    assert level.is_spatial is (kind == "parallel")
    assert level.family == (kind, policy, "auto")


def test_operations_live_where_a_nest_begins_or_ends() -> None:
    levels = [
        ExecLevel(n, n, "serial", 2, nest=nest) for n, nest in zip("abcd", "ppqq", strict=True)
    ]
    structure = ExecStructure(tuple(levels))
    assert [structure.is_boundary(depth) for depth in range(5)] == [True, False, True, False, True]
    apart = ExecStructure((ExecLevel("a", "a", "serial", 2), ExecLevel("b", "b", "serial", 2)))
    assert apart.is_boundary(1)


def test_defined_names_follow_the_given_ones() -> None:
    half = Definition("half", (Sym(0) + 1) // 2, ("K",))
    structure = ExecStructure((ExecLevel("k", "k", "serial", "half"),), (half,))
    assert structure.symbols == ("K", "half")
    assert structure.values({"K": 7}) == {"K": 7, "half": 4}
    (law,) = structure.laws_over(structure.symbols)
    assert law.is_equality and law.is_met((), (7, 4)) and not law.is_met((), (7, 3))


def test_levels_are_refused_that_mean_nothing() -> None:
    with pytest.raises(VerifyError, match="unknown kind 'loop'"):
        structure_of(("a", "loop", 2))
    with pytest.raises(VerifyError, match="policy"):
        structure_of(("a", "serial:fold_left", 2))
    with pytest.raises(VerifyError, match="policy"):
        structure_of(("a", "reduce", 2))
    with pytest.raises(VerifyError, match="share an identity"):
        structure_of(("a", "serial", 2), ("a", "parallel", 2))
    with pytest.raises(VerifyError, match="different kinds"):
        structure_of(("a", "serial", 2), ("b", "parallel", 2), nest="one")
    structure = structure_of(("a", "serial", 2))
    with pytest.raises(VerifyError, match="no level 'b'"):
        structure.position("b")
    for depth in (-1, 2):
        with pytest.raises(VerifyError, match="no cut at depth"):
            structure.prefix_space(PrefixCut(depth))


def test_levels_and_observers_read_well() -> None:
    structure = structure_of(("m", "parallel", 3), ("r", "reduce:fold_left", "K"))
    assert str(structure) == "[m=3 parallel | r=K reduce.fold_left]"
    assert str(structure_of(("i", "serial", 3), ("j", "serial", 2))) == "[i=3 serial, j=2 serial]"
    assert str(Observer("acc", "owner", PrefixCut(1))) == "owner 'acc' at depth 1"
