"""Rules about where bufs lie, on text and on what the compiler decides for whole programs."""

from __future__ import annotations

import random

import pytest

from tests.unit.analysis.random_functions import forms
from tilenest.analysis import Liveness, bytes_of, frame_of, nested_equation
from tilenest.dialects import Alloc, MapReducePost, Parallel
from tilenest.driver import parse
from tilenest.execution import check_instances, failures
from tilenest.ir import Module, Rewriter, fresh
from tilenest.layouts import Answer
from tilenest.machine import AVX2, cpu_target
from tilenest.verify import diagnose_module

CPU = cpu_target(AVX2)


def rules_of(module: Module) -> set[str]:
    return {found.rule for found in diagnose_module(module, target=CPU)}


def placed(seed: int) -> tuple[Module, list[Alloc]]:
    *_, module = forms(seed)
    allocs = [op for op in module.walk() if isinstance(op, Alloc)]
    assert all(type(op.base) is int for op in allocs)
    assert rules_of(module) == set()
    return module, allocs


@pytest.mark.parametrize("seed", range(15))
def test_tn15b_refuses_exactly_the_moves_onto_what_is_held(seed: int) -> None:
    module, allocs = placed(seed)
    chance, rewriter = random.Random(seed), Rewriter()
    (function,) = module.functions
    for op in chance.sample(allocs, min(6, len(allocs))):
        kept = op.base
        for other in chance.sample(allocs, min(4, len(allocs))):
            rewriter.set_attribute(op, "base", other.base)
            live = fresh(Liveness, function)
            taken = bytes_under(op)
            is_wrong = any(
                frame_of(op) is frame_of(one)
                and op.resource == one.resource
                and taken & bytes_under(one)
                and together(live, op, one)
                for one in allocs
                if one is not op
            )
            assert rules_of(module) == ({"TN15b"} if is_wrong else set())
        rewriter.set_attribute(op, "base", kept)


def bytes_under(op: Alloc) -> set[int]:
    assert isinstance(op.base, int)
    return set(range(op.base, op.base + bytes_of(op)))


def together(live: Liveness, one: Alloc, other: Alloc) -> bool:
    ranges = [live.used_range(op.result) for op in (one, other)]
    if None in ranges:
        return False
    (a, b), (c, d) = ((found[0], found[1]) for found in ranges if found is not None)
    return bool(set(range(a, b + 1)) & set(range(c, d + 1)))


@pytest.mark.parametrize("base", [-64, 4, 65, 1 << 47, (1 << 62) + 64, True, 0.0, "0", (0,)])
def test_tn11b_refuses_bases_off_the_line_or_outside(base: object) -> None:
    module, allocs = placed(0)
    Rewriter().set_attribute(allocs[0], "base", base)
    # One byte off the line it may lie over its neighbour as well.
    assert "TN11b" in rules_of(module)
    assert rules_of(module) <= {"TN11b", "TN15b"}


def test_tn11b_leaves_open_bases_alone() -> None:
    module, allocs = placed(1)
    rewriter = Rewriter()
    for op in allocs:
        rewriter.set_attribute(op, "base", None)
    assert rules_of(module) == set()


# Instances --------------------------------------------------------------------------------------

NESTS = """module "scheduled"

func @main(%n: index) {{
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %c4 = scalar.constant 4 : index
  exec.parallel(lower = [%c0], upper = [%c4], step = [%c1], scope = "{outer}") {{ |%i: index|
    %kept = buf.alloc(resource = "{resource}") : buf<f32>
    exec.parallel(lower = [%c0], upper = [{count}], step = [%c1], scope = "{inner}") {{ |%j: index|
      tensor.map_reduce_post(
          inputs = [], outputs = [%kept], extents = [], input_access = [],
          output_access = [#access<map = () -> ()>], specs = [#result_spec<dims = []>]
      ) {{
        %x = scalar.constant 1.0 : f32
        exec.yield(%x)
      }}
      exec.yield
    }}
    exec.yield
  }}
  func.return
}}
"""


def instance_claim(resource: str, outer: str, inner: str, count: str) -> Answer:
    text = NESTS.format(resource=resource, outer=outer, inner=inner, count=count)
    module = parse(text)
    (alloc,) = [op for op in module.walk() if isinstance(op, Alloc)]
    (work,) = [op for op in module.walk() if isinstance(op, MapReducePost)]
    nests = [op for op in module.walk() if isinstance(op, Parallel)]
    assert all(nest.is_ancestor_of(work) for nest in nests)
    claims = check_instances(nested_equation(alloc, nests, CPU))
    others = [claim for claim in claims[:-1] if not claim.answer.is_proven]
    assert not others
    assert bool(failures(claims)) == ("TN13" in rules_of(module))
    return claims[-1].answer


@pytest.mark.parametrize(
    ("resource", "outer", "inner", "is_seen"),
    [
        ("shared", "group", "worker", True),
        ("shared", "group", "vector", True),
        ("shared", "group", "group", True),
        ("private", "worker", "worker", True),
        ("private", "worker", "vector", True),
        ("private", "group", "worker", False),
        ("shared", "device", "group", False),
        ("private", "device", "worker", False),
        ("call", "device", "device", True),
    ],
)
@pytest.mark.parametrize("count", ["%c4", "%n"])
def test_tn13_is_the_factorisation_of_instances(
    resource: str, outer: str, inner: str, is_seen: bool, count: str
) -> None:
    answer = instance_claim(resource, outer, inner, count)
    assert answer.is_proven == is_seen
    if answer.is_disproven:
        assert answer.witness is not None
        # The second worker is the first that is not the unit with the memory.
        assert answer.witness.points[0][1] >= 1


def test_tn13_takes_a_nest_of_one_instance_for_its_owner() -> None:
    assert instance_claim("private", "group", "worker", "%c1").is_proven
