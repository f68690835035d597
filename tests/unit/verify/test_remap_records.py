"""TN05 on records that were tampered with: a diagnostic, never another error, and never accepted
where enumeration finds an instance that is lost, repeated or out of order."""

from __future__ import annotations

import random
from itertools import product
from math import prod
from typing import Any

import pytest

import tilenest as tn
from tests.unit.passes.remapped import CASES, captured
from tilenest.analysis import remaps_of
from tilenest.dialects import AppliedRemap, RemapLevel, RemapObserver, RemapSymbol
from tilenest.ir import Module, Rewriter
from tilenest.layouts import AffineMap, Const, DimRef, Sym
from tilenest.records import fields_of, replace
from tilenest.verify import diagnose_module

WORDS = ("", "k", "parallel", "serial", "reduce", "anchor", "owner", "convergence", "n 1", "step")


def applied(name: str) -> tuple[Module, AppliedRemap]:
    module = captured(CASES[name])
    tn.remap(module, CASES[name].leaf).split("step", 2).apply()
    function = module.functions.first
    assert function is not None
    return module, remaps_of(function)[0]


def tampered(random_: random.Random, value: Any) -> Any:
    """Another value of the same kind, mostly close by."""
    match value:
        case None:
            return random_.randrange(4)
        case bool():
            return not value
        case int():
            return value + random_.choice((-3, -1, 1, 2, 1 << 62))
        case str():
            return random_.choice(WORDS)
        case tuple() if value:
            place = random_.randrange(len(value))
            kept = random_.choice(((tampered(random_, value[place]),), (), (value[place],) * 2))
            return (*value[:place], *kept, *value[place + 1 :])
        case tuple():
            return ()
        case AffineMap():
            return other_map(random_, value)
        case RemapLevel() | RemapObserver() | RemapSymbol() | AppliedRemap():
            field = random_.choice([*fields_of(type(value))])
            return replace(value, **{field: tampered(random_, getattr(value, field))})
    raise AssertionError(value)


def other_map(random_: random.Random, value: AffineMap) -> AffineMap:
    if random_.random() < 0.3:
        return AffineMap(value.n_dims + 1, value.n_syms, value.results)
    atoms = [Const(random_.randint(-3, 3)), *map(DimRef, range(value.n_dims))]
    atoms += map(Sym, range(value.n_syms))
    if random_.random() < 0.1:
        return AffineMap(value.n_dims, value.n_syms, ())
    results = list(value.results)
    if results and random_.random() < 0.8:
        place = random_.randrange(len(results))
        results[place] = results[place] + random_.choice(atoms) * random_.choice((-1, 1, 2))
    else:
        results.append(random_.choice(atoms))
    return AffineMap(value.n_dims, value.n_syms, tuple(results))


def test_tn05_survives_records_of_anything() -> None:
    accepted = 0
    for seed in range(80):
        random_ = random.Random(seed)
        module, record = applied("gemm" if seed % 2 else "run_time")
        for _ in range(random_.randint(1, 2)):
            record = tampered(random_, record)
        function = module.functions.first
        assert function is not None
        Rewriter().set_function_attribute(function, "remaps", (record,))
        found = diagnose_module(module)
        assert {diagnostic.rule for diagnostic in found} <= {"TN05"}, (record, found)
        assert all(diagnostic.remedy for diagnostic in found)
        if not found and all(isinstance(level.extent, int) for level in record.old + record.new):
            accepted += 1
            assert runs_all_once(record), record
    assert accepted


@pytest.mark.parametrize(
    "name", [name for name in CASES if name not in ("staged", "pipelined", "patched")]
)
def test_tn05_refuses_records_for_nobody(name: str) -> None:
    """Who looks is found in the function: a record that lists fewer is refused, whoever it leaves
    out, unless another one stands at the same place."""
    case = CASES[name]
    module = captured(case)
    tn.remap(module, case.leaf).split(case.leaf, 2).apply()
    function = module.functions.first
    assert function is not None
    record = remaps_of(function)[0]
    assert not diagnose_module(module)
    for kind in ("anchor", "owner"):
        kept = tuple(one for one in record.observers if one.kind != kind)
        for observers in (kept, ()):
            fewer = replace(record, observers=observers)
            Rewriter().set_function_attribute(function, "remaps", (fewer,))
            found = diagnose_module(module)
            assert [diagnostic.rule for diagnostic in found] == ["TN05"]
            assert "is not proven for" in found[0].message


def test_tn05_refuses_nests_that_changed_otherwise() -> None:
    """The levels of a record are those that the function has."""
    for field, value in (("extent", 4), ("kind", "serial"), ("scope", "group")):
        module, record = applied("gemm")
        function = module.functions.first
        assert function is not None
        level = replace(record.new[0], **{field: value})
        if field == "extent":
            # Both sides say so, or the record would not be proven.
            record = replace(record, old=(replace(record.old[0], extent=value), *record.old[1:]))
        record = replace(record, new=(level, *record.new[1:]))
        Rewriter().set_function_attribute(function, "remaps", (record,))
        assert [diagnostic.rule for diagnostic in diagnose_module(module)] == ["TN05"]


def runs_all_once(record: AppliedRemap) -> bool:
    """Whether the active new instances are the old ones, each once."""
    old = tuple(int(level.extent) for level in record.old)
    new = tuple(int(level.extent) for level in record.new)
    if prod(new) > 1 << 14:
        return True
    reached = [
        record.map.evaluate(point)
        for point in product(*map(range, new))
        if all(slack >= 0 for slack in record.active.evaluate(point))
    ]
    wanted = set(product(*map(range, old)))
    return len(reached) == len(wanted) and set(reached) == wanted
