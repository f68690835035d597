"""TN05 where remaps leave rows to spare: what is an old coordinate by the predicates alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

import tilenest as tn
from tests.unit.verify.test_remapped_bodies import SPLIT, copied, damages, said_of
from tilenest.ir import Module, print_module
from tilenest.passes import Remapping, remap

SPARE: dict[str, Sequence[Callable[[Module], Remapping]]] = {
    "rows, beside a unit level": (
        lambda module: remap(module, "b").split("b", 4),
        lambda module: remap(module, "b_inner").split("b_inner", 4),
        lambda module: remap(module, "b_outer").reshape(("b_outer",), (3, 3)),
    ),
    "rows, behind a level with a tail": (
        lambda module: remap(module, "b").reshape(("b",), (3, 4)).split("b.1", 6),
        lambda module: remap(module, "b_0").reshape(("b_0",), (3, 3)),
    ),
    "instances of a unit level": (
        lambda module: remap(module, "b").split("b", 11),
        lambda module: (
            remap(module, "b_inner").split("b_inner", 12).reshape(("b_inner.0",), (1, 5))
        ),
    ),
}


@pytest.mark.parametrize("name", SPARE)
def test_counters_that_are_old_coordinates_where_instances_run_may_be_parts(name: str) -> None:
    """Where all but the first row of a level is to spare, its counter in a row is the old one, and
    so is the row's number plus it."""
    module = tn.parse(SPLIT)
    expected = copied(print_module(module))
    for step in SPARE[name]:
        step(module).apply()
    text = print_module(module)
    assert said_of(text) == "accepted"
    assert copied(text) == expected
    wrong = [other for other in damages(module) if copied(other) != expected]
    assert len(wrong) > 2
    assert all(said_of(other) != "accepted" for other in wrong)
