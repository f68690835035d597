"""How large formulas over counters get: the judge is every instance of small levels."""

from itertools import product

import pytest

from tilenest.analysis.instance_limits import InstanceLimits, meeting
from tilenest.execution import MOST_INSTANCES, Definition, ExecLevel, ExecStructure
from tilenest.layouts import DimRef, IndexExpr, Sym

# n rows in blocks of three, joined with m columns of p places.
NAMES = ("all", "blocks", "m", "n", "p", "rest")
ALL, _, M, _, P, _ = (Sym(place) for place in range(6))
LEVELS = ExecStructure(
    (ExecLevel("i", "i", "serial", "all"), ExecLevel("j", "j", "serial", 3)),
    (
        Definition("blocks", (Sym(0) + 2) // 3, ("n",)),
        Definition("rest", Sym(0) * Sym(1), ("m", "p")),
        Definition("all", Sym(0) * Sym(1), ("blocks", "rest")),
    ),
)
COUNTER = DimRef(0)
FORMULAS: tuple[IndexExpr, ...] = (
    COUNTER,
    COUNTER // P,
    COUNTER // M,
    COUNTER // P // M,
    COUNTER // (M * P),
    COUNTER % P,
    COUNTER // P % M,
    COUNTER // 2,
    COUNTER * 3 + DimRef(1),
)


@pytest.mark.parametrize("formula", FORMULAS)
def test_formulas_of_every_instance(formula: IndexExpr) -> None:
    limits = InstanceLimits(LEVELS, NAMES, {}, [Sym(place) for place in range(6)])
    found = limits.interval(formula)
    assert found is not None
    for n, m, p in product((1, 3, 4), (1, 2, 5), (1, 7)):
        values = LEVELS.values({"n": n, "m": m, "p": p})
        for point in product(range(values["all"]), range(3)):
            value = formula.evaluate(point, [values[name] for name in NAMES])
            assert found[0] <= value <= found[1]


def test_a_quotient_by_a_factor_is_less_than_the_others() -> None:
    limits = InstanceLimits(LEVELS, NAMES, {}, [Sym(place) for place in range(6)])
    blocks = (MOST_INSTANCES + 2) // 3
    assert limits.interval(COUNTER) == (0, MOST_INSTANCES - 1)
    assert limits.interval(COUNTER // P // M) == (0, blocks - 1)
    assert limits.interval(COUNTER // (M * P)) == (0, blocks - 1)
    assert limits.interval(COUNTER // ALL) == (0, 0)


def test_intervals_meet() -> None:
    assert meeting(None, None) is None
    assert meeting((0, 4), None) == meeting(None, (0, 4)) == (0, 4)
    assert meeting((0, 4), (-3, 2)) == (0, 2)
