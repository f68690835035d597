"""Random work in nests, and where each of its points goes, counted one by one.

In: a random source. Out: the text of a Scheduled function with one piece of work that reads a
view at random places inside nests of random bounds; and the same as plain numbers, so that what
an analysis says of the function can be tried on every event. `n` is a number of the call's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

N = range(6)
"""the numbers tried for `n`"""
Term = tuple[int, ...]
"""coefficients, then a constant, then what divides and what is the remainder by (0: neither)"""


def evaluated(term: Term, numbers: Sequence[int]) -> int:
    *factors, constant, divisor, modulus = term
    value = sum(f * x for f, x in zip(factors, numbers, strict=True)) + constant
    value = value // divisor if divisor else value
    return value % modulus if modulus else value


def written(term: Term, names: Sequence[str]) -> str:
    *factors, constant, divisor, modulus = term
    parts = [f"{name} * {factor}" for factor, name in zip(factors, names, strict=True) if factor]
    text = " + ".join([*parts, str(constant)])
    text = f"({text}) // {divisor}" if divisor else text
    return f"({text}) % {modulus}" if modulus else text


@dataclass(frozen=True)
class Nest:
    """lower, upper = constant + outer index * factor (or n), step"""

    lower: int
    upper: int
    outer: int
    is_open: bool
    step: int


@dataclass(frozen=True)
class RandomAccess:
    """Work over `box` in two nests that reads `shape` at `terms` of (d.., i, j)."""

    nests: tuple[Nest, Nest]
    kind: str
    box: tuple[int, ...]
    shape: tuple[int | None, ...]
    terms: tuple[Term, ...]

    def places(self, at: tuple[int, int]) -> Iterator[tuple[int, ...]]:
        """Where one instance reads."""
        for point in _points(self.box):
            yield tuple(evaluated(term, (*point, *at)) for term in self.terms)

    def instances(self, n: int) -> Iterator[tuple[int, int]]:
        first, second = self.nests
        for i in _range(first, n, 0):
            for j in _range(second, n, i):
                yield i, j

    def extents(self, n: int) -> tuple[int, ...]:
        return tuple(n if extent is None else extent for extent in self.shape)

    def stays_in(self, axis: int) -> bool:
        """Whether every event of every call is in range."""
        return all(
            0 <= place[axis] < self.extents(n)[axis]
            for n in N
            for at in self.instances(n)
            for place in self.places(at)
        )

    def text(self) -> str:
        names = [f"d{place}" for place in range(len(self.box))]
        dims, results = ", ".join(names), [written(t, [*names, "s0", "s1"]) for t in self.terms]
        shape = ", ".join("?" if extent is None else str(extent) for extent in self.shape)
        strides = ", ".join(["?"] * len(self.shape))
        first, second = self.nests
        regions = "".join(f"%q{place}: index, " for place in range(len(self.box)))
        keep = ", ".join(map(str, range(len(self.box))))
        extents = ", ".join(map(str, self.box))
        return f"""module "scheduled"

func @main(%A: view<f32, [{shape}], [{strides}]>, %B: view<f32, [?], [1]>) {{
  %n = view.extent({"%A" if self.shape[0] is None else "%B"}, axis = 0) : index
{_opening(first, "i", "", self.kind)}
{_opening(second, "j", "i", self.kind)}
  %t = buf.alloc : buf<f32, {"x".join(map(str, self.box))}>
  tensor.map_reduce_post(
      inputs = [%A], outputs = [%t], symbols = [%i, %j], extents = [{extents}],
      input_access = [#access<map = ({dims})[s0, s1] -> ({", ".join(results)})>],
      output_access = [#access<map = ({dims})[s0, s1] -> ({dims})>],
      specs = [#result_spec<dims = [{keep}]>]
  ) {{ |{regions}%a: f32|
    exec.yield(%a)
  }}
  exec.yield
  }}
  exec.yield
  }}
  func.return
}}
"""


def _opening(nest: Nest, index: str, outer: str, kind: str) -> str:
    first = f"  %{index}l = scalar.constant {nest.lower} : index\n"
    step = f"  %{index}s = scalar.constant {nest.step} : index\n"
    base = f"  %{index}c = scalar.constant {nest.upper} : index\n"
    upper = f"%{index}c"
    if nest.is_open:
        base += f'  %{index}o = scalar.apply "add"(%{index}c, %n) : index\n'
        upper = f"%{index}o"
    if outer and nest.outer:
        base += (
            f"  %{index}f = scalar.constant {nest.outer} : index\n"
            f'  %{index}m = scalar.apply "mul"(%{outer}, %{index}f) : index\n'
            f'  %{index}u = scalar.apply "add"({upper}, %{index}m) : index\n'
        )
        upper = f"%{index}u"
    nest_text = f"  exec.{kind}(lower = [%{index}l], upper = [{upper}], step = [%{index}s])"
    return f"{first}{step}{base}{nest_text} {{ |%{index}: index|"


def _range(nest: Nest, n: int, outer: int) -> range:
    upper = nest.upper + (n if nest.is_open else 0) + nest.outer * outer
    return range(nest.lower, upper, nest.step)


def _points(box: Sequence[int]) -> Iterator[tuple[int, ...]]:
    if not box:
        yield ()
        return
    for first in range(box[0]):
        for rest in _points(box[1:]):
            yield (first, *rest)


def random_access(source: random.Random, kind: str = "serial") -> RandomAccess:
    nests = tuple(
        Nest(
            source.choice([0, 0, 0, 1, 3]),
            source.choice([0, 2, 3, 4]),
            source.choice([0, 0, 1]) if place else 0,
            source.random() < 0.3,
            source.choice([1, 1, 2, 3, -1]),
        )
        for place in range(2)
    )
    box = tuple(source.randint(1, 4) for _ in range(source.randint(1, 2)))
    shape: tuple[int | None, ...] = tuple(
        source.choice([4, 6, 8, 12, 16]) for _ in range(source.randint(1, 2))
    )
    if source.random() < 0.3:
        shape = (None, *shape[1:])
    terms = tuple(
        (
            *(source.choice([0, 1, 1, 2, -1]) for _ in box),
            *(source.choice([0, 0, 1, 1, 4, -1]) for _ in range(2)),
            source.choice([0, 0, 0, 1, 2, -1]),
            source.choice([0, 0, 0, 2, 3]),
            source.choice([0, 0, 0, 4]),
        )
        for _ in shape
    )
    assert len(nests) == 2
    return RandomAccess((nests[0], nests[1]), kind, box, shape, terms)
