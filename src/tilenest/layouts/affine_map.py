"""Maps from dimensions and symbols to index expressions.

In: a number of dimensions, a number of run-time symbols and one expression a result. Out: a frozen
map that can be evaluated, composed and asked for coefficients. Every access, view and bound of the
IR is one of these; the name follows the common case, and a result may also divide or multiply.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.errors import ShapeError
from tilenest.layouts.index_expr import Const, DimRef, IndexExpr, Sym
from tilenest.layouts.kinds import MOST_PLACES, tuple_of, whole_number, whole_numbers
from tilenest.records import record

_set = object.__setattr__


@record
class AffineMap:
    """`(d0, ..)[s0, ..] -> (results)`."""

    n_dims: int
    n_syms: int
    results: tuple[IndexExpr, ...]

    def __post_init__(self) -> None:
        _set(self, "n_dims", _count(self.n_dims, "dimensions"))
        _set(self, "n_syms", _count(self.n_syms, "symbols"))
        _set(self, "results", tuple_of(self.results, IndexExpr, "the results"))
        for result in self.results:
            if result.dim_mask >> self.n_dims or result.sym_mask >> self.n_syms:
                raise ShapeError(
                    f"{result} needs over {self.n_dims} dimensions or {self.n_syms} symbols",
                    remedy="declare every dimension and symbol that a result uses",
                )

    @staticmethod
    def identity(n: int) -> AffineMap:
        """The map of n dimensions to themselves."""
        return AffineMap(n, 0, tuple(map(DimRef, range(_count(n, "dimensions")))))

    @staticmethod
    def projection(n_dims: int, positions: Sequence[int]) -> AffineMap:
        """The map to the dimensions at these positions, in this order."""
        return AffineMap(n_dims, 0, tuple(map(DimRef, whole_numbers(positions, "positions"))))

    @staticmethod
    def constant(n_dims: int, values: Sequence[int]) -> AffineMap:
        """The map of every point to these integers."""
        return AffineMap(n_dims, 0, tuple(map(Const, whole_numbers(values, "values"))))

    def evaluate(self, dims: Sequence[int], syms: Sequence[int] = ()) -> tuple[int, ...]:
        """The image of a point."""
        return tuple(result.evaluate(dims, syms) for result in self.results)

    def compose(self, inner: AffineMap) -> AffineMap:
        """This map after `inner`; this map's symbols come first, then inner's."""
        assert len(inner.results) == self.n_dims, f"{self} cannot follow {inner}"
        total = self.n_syms + inner.n_syms
        dims = inner.shift_syms(self.n_syms, total).results
        syms = [Sym(place) for place in range(self.n_syms)]
        return AffineMap(
            inner.n_dims, total, tuple(result.substitute(dims, syms) for result in self.results)
        )

    def with_dims(self, substitution: Sequence[IndexExpr], n_dims: int) -> AffineMap:
        """The same results with each dimension replaced by an expression over `n_dims` new ones.

        The expressions may use this map's symbols.
        """
        assert len(substitution) == self.n_dims, f"{self} needs {self.n_dims} substitutes"
        syms = [Sym(place) for place in range(self.n_syms)]
        return AffineMap(
            n_dims,
            self.n_syms,
            tuple(result.substitute(substitution, syms) for result in self.results),
        )

    def is_projection(self) -> bool:
        """Whether every result is a dimension of its own."""
        return all(isinstance(result, DimRef) for result in self.results) and len(
            set(self.results)
        ) == len(self.results)

    def shift_syms(self, offset: int, total: int) -> AffineMap:
        """The same map with its symbols standing at `offset` in a list of `total`."""
        if offset == 0:
            return self if total == self.n_syms else AffineMap(self.n_dims, total, self.results)
        dims = [DimRef(place) for place in range(self.n_dims)]
        syms = [Sym(place + offset) for place in range(self.n_syms)]
        return AffineMap(
            self.n_dims, total, tuple(result.substitute(dims, syms) for result in self.results)
        )

    def __str__(self) -> str:
        dims = ", ".join(f"d{place}" for place in range(self.n_dims))
        syms = ", ".join(f"s{place}" for place in range(self.n_syms))
        results = ", ".join(str(result) for result in self.results)
        return f"({dims}){f'[{syms}]' if syms else ''} -> ({results})"


def _count(value: int, what: str) -> int:
    """How many dimensions or symbols there are."""
    count = whole_number(value, f"the number of {what}")
    if not 0 <= count <= MOST_PLACES:
        raise ShapeError(
            f"a map has {count} {what}", remedy=f"use at least 0 and at most {MOST_PLACES}"
        )
    return count
