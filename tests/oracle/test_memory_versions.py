"""Rings of versions: pipelines whose iterations overlap, against a walk and against their schedule.

A seed is a pipeline inside a parallel: the first stage fills a buf, the second one makes another of
it, the third reads both; how long stages take and how far apart iterations begin is drawn. With as
many versions as the schedule asks for, every event is where the walk finds it; with one less, the
equation fails at its version arrow, and the walk shows the same.
"""

from __future__ import annotations

import random

import pytest

from tests.oracle.memory_model import Array, MemoryModel
from tilenest.analysis import Facts, MemoryEquations, MemoryUse, memory_equations
from tilenest.driver import parse
from tilenest.execution import check_equation, failures
from tilenest.ir import Function, Module, Value
from tilenest.machine import AVX2, cpu_target
from tilenest.records import record
from tilenest.verify import diagnose_module

TARGET = cpu_target(AVX2)
INSTANCES, ITERATIONS, WORKERS = 3, 7, 2
LINE = 64

COPY = """tensor.map_reduce_post(
          inputs = [{source}], outputs = [{target}], symbols = [%w, %k], extents = [8],
          input_access = [#access<map = (d0)[s0, s1] -> ({read}){bounds}>],
          output_access = [#access<map = (d0)[s0, s1] -> ({written}){bounds}>],
          specs = [#result_spec<dims = [0]>], sched = #sched<loops = [#loop<dim = 0, step = 1>]>
      ) {{ |%i{n}: index, %x{n}: f32|
        exec.yield(%x{n})
      }}"""
PART = "d0 + s0*64 + s1*8"


def copy(n: int, source: str, target: str) -> str:
    places = [PART if name in ("%A", "%Y") else "d0" for name in (source, target)]
    bounds = ', bounds = "zero"' if PART in places else ""
    return COPY.format(
        n=n, source=source, target=target, read=places[0], written=places[1], bounds=bounds
    )


@record
class Case:
    """A schedule, and the versions of both bufs that it asks for."""

    interval: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def versions(self) -> tuple[int, int]:
        until = self.ends[2]
        return tuple(-(-(until - begin) // self.interval) for begin in self.starts[:2])  # type: ignore[return-value]  # two of them

    def text(self, versions: tuple[int, int]) -> str:
        """What stages hand on is storage of theirs, so the schedule counts it alike."""
        return f"""module "scheduled"

func @main(%A: view<f32, [192], [1]>, %Y: view<f32, [192], [1]>) with (alias_groups = [0, 1]) {{
  %c0 = scalar.constant 0 : index
  %c1 = scalar.constant 1 : index
  %n = scalar.constant {ITERATIONS} : index
  %m = scalar.constant {INSTANCES} : index
  exec.parallel(lower = [%c0], upper = [%m], step = [%c1], scope = "group") {{ |%w: index|
    exec.pipeline(lower = [%c0], upper = [%n], step = [%c1], schedule = #pipeline_schedule<
        interval = {self.interval}, starts = {list(self.starts)}, ends = {list(self.ends)},
        versions = {list(versions)}>) {{ |%k: index|
      %b = buf.alloc(resource = "private", base = 0, versions = {versions[0]}) : buf<f32, 8>
      {copy(0, "%A", "%b")}
      exec.yield(%b)
    }} {{ |%k: index, %b: buf<f32, 8>|
      %c = buf.alloc(
          resource = "private", base = {LINE * versions[0]}, versions = {versions[1]}
      ) : buf<f32, 8>
      {copy(1, "%b", "%c")}
      exec.yield(%c)
    }} {{ |%k: index, %b: buf<f32, 8>, %c: buf<f32, 8>|
      {copy(2, "%b", "%Y")}
      {copy(3, "%c", "%Y")}
      exec.yield
    }}
    exec.yield
  }}
  func.return
}}
"""


def drawn(seed: int) -> Case:
    chance = random.Random(seed)
    starts, ends = [0], [chance.randint(1, 6)]
    for _ in range(2):
        starts.append(ends[-1] + chance.randint(0, 3))
        ends.append(starts[-1] + chance.randint(1, 6))
    # So few versions that the iterations come back to each.
    return Case(chance.randint(4, 9), tuple(starts), tuple(ends))


def walked(module: Module) -> tuple[Function, MemoryModel, MemoryEquations]:
    (function,) = module.functions
    arrays: dict[Value, int | Array] = {a: Array((192,), (1,)) for a in function.arguments}
    model = MemoryModel(function, arrays, WORKERS, 1)
    shapes, strides = dict.fromkeys(arrays, (192,)), dict.fromkeys(arrays, (1,))
    facts = Facts({}, shapes, strides, WORKERS, 1)
    return function, model, memory_equations(function, facts, TARGET)


def key(use: MemoryUse) -> tuple[object, str, int]:
    return use.operation, use.touch.group, use.touch.position


@pytest.mark.parametrize("seed", range(12))
def test_every_event_is_in_its_version(seed: int) -> None:
    case = drawn(seed)
    module = parse(case.text(case.versions))
    assert not diagnose_module(module, target=TARGET)
    _, model, found = walked(module)
    assert not found.undecided
    assert not model.crowded()
    for use in found.uses:
        events = model.events.pop(key(use))  # type: ignore[arg-type]  # a key of the model
        for event, place in use.equation.places():
            wanted = events.pop(event)
            assert place is not None
            assert place.instance == wanted.instance
            assert (place.base, place.version, place.byte) == (
                wanted.base,
                (wanted.version,),
                wanted.byte,
            )
        assert not events
    assert not model.events


def test_the_drawn_pipelines_use_several_versions() -> None:
    counts = {versions for seed in range(12) for versions in drawn(seed).versions}
    assert {1, 2, 3} <= counts


@pytest.mark.parametrize("seed", range(12))
def test_versions_that_a_schedule_asks_for_are_proven(seed: int) -> None:
    case = drawn(seed)
    *_, found = walked(parse(case.text(case.versions)))
    failed = [str(c) for use in found.uses for c in failures(check_equation(use.equation))]
    assert not failed


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("seed", range(12))
def test_a_version_less_is_found_by_rule_equation_and_walk(seed: int, place: int) -> None:
    case = drawn(seed)
    fewer = [count - (place == number) for number, count in enumerate(case.versions)]
    if not fewer[place]:
        assert case.interval >= case.ends[2] - case.starts[place]
        return
    module = parse(case.text((fewer[0], fewer[1])))
    assert {found.rule for found in diagnose_module(module, target=TARGET)} == {"TN15"}
    _, model, found = walked(module)
    name = "%b" if place == 0 else "%c"
    crowded = {version[0].name for version, *_ in model.crowded()}
    assert crowded == {name[1:]}
    for use in found.uses:
        claims = failures(check_equation(use.equation))
        is_of_it = use.equation.name.endswith(f"of {name}")
        assert {claim.arrow for claim in claims} == ({"version"} if is_of_it else set())
        for claim in claims:
            assert claim.answer.witness is not None
            earlier, later = (point[1] for point in claim.answer.witness.points)
            assert earlier // ITERATIONS == later // ITERATIONS
            assert (later - earlier) % fewer[place] == 0
            assert (later - earlier) * case.interval < case.ends[2] - case.starts[place]
