"""Scopes by their names: one list, and containment alone puts them in order."""

from itertools import combinations

import tilenest as tn
from tilenest.execution import TargetScope, TargetScopes
from tilenest.machine import CPU_SCOPES, LANGUAGE_SCOPES, OPEN_SCOPE


def test_scopes_of_the_language_are_those_that_kernels_name() -> None:
    assert tuple(scope.value for scope in tn.exec) == LANGUAGE_SCOPES.names
    assert OPEN_SCOPE not in LANGUAGE_SCOPES.names
    assert set(CPU_SCOPES.names) <= set(LANGUAGE_SCOPES.names)


def test_scopes_that_targets_share_nest_alike() -> None:
    for one, other in combinations(CPU_SCOPES.names, 2):
        assert CPU_SCOPES.is_within(one, other) == LANGUAGE_SCOPES.is_within(one, other)
        assert CPU_SCOPES.is_within(other, one) == LANGUAGE_SCOPES.is_within(other, one)


def test_scopes_outside_in_without_a_chain() -> None:
    """A scope that stands in two comes after both."""
    scopes = TargetScopes(
        (TargetScope("lane", ("warp", "engine")), TargetScope("engine"), TargetScope("warp"))
    )
    assert scopes.outside_in == ("engine", "warp", "lane")
