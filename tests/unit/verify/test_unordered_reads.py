"""Reads of what other instances store, judged by running every instance and comparing all pairs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest

import tilenest as tn
from tilenest.analysis import enclosing_parallels, unordered_read
from tilenest.dialects import Alloc, MapReducePost, Parallel
from tilenest.ir import EffectKind, Module, Operation, Subject, Touch, Value
from tilenest.verify import TN_RULES

SEEDS = range(300)
N = range(4)
"""the numbers tried for `n`, the extent of an array"""
RULE = next(rule for rule in TN_RULES if rule.id == "TN13b")
Point = tuple[int, int]


@dataclass(frozen=True)
class Level:
    """range(lower, upper, step), with `n` more where it is open."""

    kind: str
    lower: int
    upper: int
    step: int
    is_open: bool

    def indices(self, n: int) -> range:
        return range(self.lower, self.upper + (n if self.is_open else 0), self.step)


@dataclass(frozen=True)
class Work:
    """Elements (a * d + b * i + c * j + e * n + f), of that the remainder by `modulus` unless it
    is 0, for d below `count`; only where `condition` holds."""

    factors: tuple[int, int, int, int, int]
    modulus: int
    count: int
    condition: tuple[str, int] | None
    """an index or `n`, and what it has to be below"""

    def elements(self, at: Point, n: int, size: int) -> Iterator[int]:
        a, b, c, e, f = self.factors
        if self.condition is not None:
            name, end = self.condition
            if not {"i": at[0], "j": at[1], "n": n}[name] < end:
                return
        for d in range(self.count):
            element = a * d + b * at[0] + c * at[1] + e * n + f
            element = element % self.modulus if self.modulus else element
            if 0 <= element < size:
                yield element

    @property
    def map(self) -> str:
        a, b, c, e, f = self.factors
        text = f"d0 * {a} + s0 * {b} + s1 * {c} + s2 * {e} + {f}"
        return f"({text}) % {self.modulus}" if self.modulus else text


@dataclass(frozen=True)
class Program:
    """A store and a load in two nests, of a buf outside of both or between them."""

    levels: tuple[Level, Level]
    store: Work
    load: Work
    size: int
    is_between: bool

    @property
    def is_certain(self) -> bool:
        """Whether all that runs is known."""
        is_open = any(level.is_open for level in self.levels)
        works = self.store, self.load
        return not is_open and all(w.condition is None and w.factors[3] == 0 for w in works)

    def instances(self, n: int) -> list[Point]:
        outer, inner = self.levels
        return list(product(outer.indices(n), inner.indices(n)))

    def is_apart(self, nest: int, one: Point, other: Point) -> bool:
        """Whether these are two instances of a nest, which share the buf."""
        is_one_buf = one[0] == other[0] or not self.is_between
        if nest == 0:
            return is_one_buf and one[0] != other[0]
        return one[0] == other[0] and one[1] != other[1]

    def meetings(self, nest: int, n: int) -> set[tuple[int, int, int]]:
        """The index that reads, the one that stores, and the element."""
        if self.levels[nest].kind != "parallel":
            return set()
        instances = self.instances(n)
        return {
            (one[nest], other[nest], element)
            for one, other in product(instances, instances)
            if self.is_apart(nest, one, other)
            for element in set(self.load.elements(one, n, self.size))
            & set(self.store.elements(other, n, self.size))
        }

    def text(self) -> str:
        outer, inner = self.levels
        between = f"  %b = buf.alloc : buf<f32, {self.size}>\n"
        return f"""module "scheduled"

func @main(%A: view<f32, [?], [1]>) {{
  %n = view.extent(%A, axis = 0) : index
{"" if self.is_between else between}{_opening(outer, "i")}
{between if self.is_between else ""}{_opening(inner, "j")}
{_work(self.store, "%A", "%b", "st")}{_work(self.load, "%b", "%own", "ld")}  exec.yield
  }}
  exec.yield
  }}
  func.return
}}
"""


def _opening(level: Level, index: str) -> str:
    upper = f"%{index}u"
    lines = [
        f"  %{index}l = scalar.constant {level.lower} : index",
        f"  {upper} = scalar.constant {level.upper} : index",
        f"  %{index}s = scalar.constant {level.step} : index",
    ]
    if level.is_open:
        lines.append(f'  %{index}o = scalar.apply "add"({upper}, %n) : index')
        upper = f"%{index}o"
    bounds = f"lower = [%{index}l], upper = [{upper}], step = [%{index}s]"
    return "\n".join([*lines, f"  exec.{level.kind}({bounds}) {{ |%{index}: index|"])


def _work(work: Work, source: str, target: str, name: str) -> str:
    own = f"  %own = buf.alloc : buf<f32, {work.count}>\n" if target == "%own" else ""
    maps = {"%A": "d0", "%b": work.map, "%own": "d0"}
    text = f"""{own}  tensor.map_reduce_post(
      inputs = [{source}], outputs = [{target}], symbols = [%i, %j, %n], extents = [{work.count}],
      input_access = [#access<map = (d0)[s0, s1, s2] -> ({maps[source]}), bounds = "zero">],
      output_access = [#access<map = (d0)[s0, s1, s2] -> ({maps[target]}), bounds = "zero">],
      specs = [#result_spec<dims = [0]>]
  ) {{ |%{name}d: index, %{name}x: f32|
    exec.yield(%{name}x)
  }}
"""
    if work.condition is None:
        return text
    index, end = work.condition
    return f"""  %{name}e = scalar.constant {end} : index
  %{name}c = scalar.apply "lt"(%{index}, %{name}e) : bool
  exec.if(%{name}c) {{
{text}  exec.yield
  }} {{
  exec.yield
  }}
"""


def random_program(source: random.Random) -> Program:
    def level(kind: str) -> Level:
        lower, step = source.choice([0, 0, 1]), source.choice([1, 1, 1, 2])
        is_open = source.random() < 0.2
        upper = source.choice([0, 0, 2] if is_open else [1, 2, 3, 4])
        return Level(kind, lower, upper, step, is_open)

    def work() -> Work:
        factors = (
            source.choice([0, 1, 1]),
            source.choice([0, 0, 1, 2, 4, -1]),
            source.choice([0, 0, 1, 1, 3]),
            source.choice([0] * 9 + [1]),
            source.choice([0, 0, 1, 2, 5, -1]),
        )
        chance = source.random()
        condition = (source.choice("ijn"), source.choice([1, 2])) if chance < 0.25 else None
        return Work(factors, source.choice([0, 0, 0, 3]), source.choice([1, 1, 2, 4]), condition)

    kinds = source.choice(
        [("parallel", "parallel"), ("parallel", "serial"), ("serial", "parallel")]
    )
    outer, inner = map(level, kinds)
    return Program((outer, inner), work(), work(), source.choice([4, 8, 16]), source.random() < 0.3)


def found_in(program: Program) -> dict[int, tuple[int, int, int]]:
    """What is proven of each nest that shares the buf, by how deep it is."""
    module = tn.parse(program.text())
    (buf,) = (op for op in module.walk() if isinstance(op, Alloc) and op.result.name == "b")
    load, store = (_access(buf, kind) for kind in (EffectKind.READ, EffectKind.WRITE))
    found = {}
    for nest in enclosing_parallels(load[0]):
        read = None if nest.is_ancestor_of(buf) else unordered_read(load, store, nest)
        if read is not None:
            found[_depth(nest)] = (*read.reader, *read.writer, *read.element)
    assert bool(found) == bool(_faults(module))
    return found  # type: ignore[return-value]  # all have rank 1


def _access(buf: Alloc, kind: EffectKind) -> tuple[Operation, Touch[Value]]:
    (found,) = (
        (op, touch)
        for op in dict.fromkeys(buf.result.users)
        if isinstance(op, MapReducePost)
        for touch in op.accesses()
        if touch.memory is buf.result and touch.kind is kind
    )
    return found


def _depth(nest: Parallel) -> int:
    return "ij".index(nest.body.arguments[0].name or "")


def _faults(module: Module) -> list[str]:
    return [fault.message for fault in RULE.check(Subject(module))]


@pytest.mark.parametrize("seed", SEEDS)
def test_reads_that_are_refused_happen(seed: int) -> None:
    """Whenever the nest runs, in every call; and where nothing depends on the call or on what is
    around the nest, as told."""
    program = random_program(random.Random(seed))
    for depth, told in found_in(program).items():
        for n in N:
            met = program.meetings(depth, n)
            assert met or not program.instances(n), (n, program)
            assert told in met or not program.is_certain, (told, program)


def test_reads_that_surely_happen_are_refused() -> None:
    counts: Counter[tuple[bool, bool]] = Counter()
    for seed in SEEDS:
        program = random_program(random.Random(seed))
        if program.is_certain:
            found = found_in(program)
            for depth in range(2):
                counts[bool(program.meetings(depth, 0)), depth in found] += 1
    assert counts[True, False] == 0, counts
    assert counts[True, True] > 40, counts
    assert counts[False, False] > 150, counts


def test_half_of_the_reads_that_happen_in_every_call_are_refused() -> None:
    """Others meet at other elements in each call, or for some of the numbers around the nest."""
    counts: Counter[bool] = Counter()
    for seed in SEEDS:
        program = random_program(random.Random(seed))
        if program.is_certain:
            continue
        found = found_in(program)
        running = [n for n in N if program.instances(n)]
        for depth in range(2):
            if running and all(program.meetings(depth, n) for n in running):
                counts[depth in found] += 1
    assert counts[True] > 15, counts
    assert counts[False] <= counts[True], counts


def test_what_is_around_the_nest_may_be_any() -> None:
    """The row of an outer instance, of which there are as many as the call says."""
    levels = Level("parallel", 0, 0, 1, True), Level("parallel", 0, 4, 1, False)
    store, load = Work((1, 0, 1, 0, 0), 0, 1, None), Work((1, 0, 0, 0, 0), 0, 1, None)
    assert 1 in found_in(Program(levels, store, load, 8, is_between=True))


def test_elements_that_may_lie_outside_are_believed() -> None:
    """All instances touch element `n`, and a buf of 8 may have none."""
    levels = Level("parallel", 0, 4, 1, False), Level("parallel", 0, 4, 1, False)
    work = Work((0, 0, 0, 1, 0), 0, 1, None)
    assert not found_in(Program(levels, work, work, 8, is_between=False))


@pytest.mark.parametrize(("kept", "is_refused"), [(1, False), (2, True)])
def test_seeds_of_cells_that_the_output_drops_are_not_read(kept: int, is_refused: bool) -> None:
    """Cell 1 begins with what the next instance stores, and only an output of 2 keeps it."""
    levels = Level("parallel", 0, 1, 1, False), Level("parallel", 0, 4, 1, False)
    store, load = Work((1, 0, 1, 0, 0), 0, 1, None), Work((1, 0, 1, 0, 0), 0, 1, None)
    text = Program(levels, store, load, 8, is_between=False).text()
    start, end = text.index("  %own"), text.index("  exec.yield\n  }")
    bounds = "" if kept == 2 else ', bounds = "zero"'
    fold = f"""  %own = buf.alloc : buf<f32, {kept}>
  tensor.map_reduce_post(
      inputs = [%A], seeds = [%b], outputs = [%own], symbols = [%j], extents = [2, 4],
      input_access = [#access<map = (d0, d1)[s0] -> (d1), bounds = "zero">],
      seed_access = [#access<map = (d0, d1)[s0] -> (d0 + s0)>],
      output_access = [#access<map = (d0, d1)[s0] -> (d0){bounds}>],
      specs = [#result_spec<dims = [0], contract = #reduction_contract<policy = "fold_left">>]
  ) {{ |%p: index, %q: index, %element: f32, %state: f32|
    %next = scalar.apply "add"(%state, %element) : f32
    exec.yield(%next)
  }} {{ |%p: index, %q: index, %state: f32|
    exec.yield(%state)
  }}
"""
    assert bool(_faults(tn.parse(text[:start] + fold + text[end:]))) == is_refused


WAIT = '  atom.call "wait"(touches = [#atom_effect<kind = "synchronize">])\n'
WAITING = """module "scheduled"

func @main(%A: view<f32, [4], [1]>) {
  %b = buf.alloc : buf<f32, 4>
  %l = scalar.constant 0 : index
  %u = scalar.constant 4 : index
  %s = scalar.constant 1 : index
  exec.parallel(lower = [%l], upper = [%u], step = [%s]) { |%i: index|
$BEFORE
  tensor.map_reduce_post(
      inputs = [%A], outputs = [%b], symbols = [%i], extents = [1],
      input_access = [#access<map = (d0)[s0] -> (d0)>],
      output_access = [#access<map = (d0)[s0] -> (s0), bounds = "zero">],
      specs = [#result_spec<dims = [0]>]
  ) { |%p: index, %x: f32|
    exec.yield(%x)
  }
$BETWEEN
  exec.serial(lower = [%l], upper = [%u], step = [%s]) { |%k: index|
    exec.parallel(lower = [%l], upper = [%u], step = [%s]) { |%j: index|
      %own = buf.alloc : buf<f32, 4>
      tensor.map_reduce_post(
          inputs = [%b], outputs = [%own], symbols = [%i], extents = [4],
          input_access = [#access<map = (d0)[s0] -> (3 - s0), bounds = "zero">],
          output_access = [#access<map = (d0)[s0] -> (d0)>],
          specs = [#result_spec<dims = [0]>]
      ) { |%q: index, %y: f32|
        exec.yield(%y)
      }
$BELOW
      exec.yield
    }
$LOOP
    exec.yield
  }
$BEHIND
  exec.yield
  }
  func.return
}
"""
"""Instances of %i store their own element, and read another's in a nest of four more."""


@pytest.mark.parametrize(
    ("place", "is_refused"),
    [
        (None, True),
        ("BEFORE", True),
        ("BETWEEN", False),
        ("BELOW", True),
        ("LOOP", False),
        ("BEHIND", True),
    ],
)
def test_waits_between_a_store_and_a_read_are_believed(place: str | None, is_refused: bool) -> None:
    slots = {"BEFORE", "BETWEEN", "BELOW", "LOOP", "BEHIND"}
    text = WAITING
    for slot in slots:
        text = text.replace(f"${slot}\n", WAIT if slot == place else "")
    assert bool(_faults(tn.parse(text))) == is_refused
