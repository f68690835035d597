"""Contracts of any content are told about, and never end a verification otherwise."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.invariants.corpus import examples
from tilenest.dialects import registry
from tilenest.errors import ParseError
from tilenest.ir import parse_module
from tilenest.verify import diagnose_module

CONTRACTS = [e for e in examples() if e.invariant in ("TN09", "TN10") and e.rule is None]
CHANGES = {
    'merge = "add"': ('merge = "exp"', 'merge = "@main"', 'merge = "and"', "merge = none"),
    "is_exact = true": (
        f"identity = {10**30}",
        "identity = nan",
        "identity = -0.0",
        "identity = true",
    ),
    "contract<laws": ('contract<orientation = "up", laws', 'contract<provenance = "none", laws'),
    "selected = ": ("selected = -", f"selected = {10**15}"),
    "axis = 1": ("axis = 7", "axis = -1", "axis = 0"),
    "element = f32": ("element = bool", "element = index", "element = f16"),
    "(d0) -> (": ("(d0)[s0] -> (", "() -> (0 * ", "(d0) -> (d0, "),
    "f32": ("i8", "bool", "f16"),
    "i32": ("f32", "token", "bool"),
}


@pytest.mark.parametrize("example", CONTRACTS, ids=lambda example: example.id)
def test_tn09_tn10_contracts_of_any_content(example) -> None:
    chance = random.Random(example.id)
    tried = 0
    for old, news in CHANGES.items():
        for new, amount in itertools.product(news, (1, -1)):
            if old not in example.text:
                continue
            text = example.text.replace(old, new, amount)
            if chance.random() < 0.5:
                text = text.replace('"unordered_tree"', '"ordered_tree"')
            try:
                module = parse_module(text, registry())
            except ParseError:
                continue
            tried += 1
            assert all(found.message and found.rule for found in diagnose_module(module))
    assert tried
