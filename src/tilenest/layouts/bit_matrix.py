"""Matrices over the field of two elements.

In: columns as Python integers, bit i of a column being row i, of any height. Out: products, rank,
bases of image and kernel, solutions and inverses. One elimination serves them all: it keeps for
each pivot bit a reduced vector of the image together with the columns that sum to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilenest.records import record


@record
class BitMatrix:
    """A matrix of `height` rows; a vector is an integer, bit j of it meaning column j."""

    height: int
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        assert all(0 <= column < 1 << self.height for column in self.columns), "a column too tall"

    @staticmethod
    def identity(size: int) -> BitMatrix:
        return BitMatrix(size, tuple(1 << place for place in range(size)))

    @property
    def width(self) -> int:
        return len(self.columns)

    def apply(self, vector: int) -> int:
        """The sum of the columns at the vector's bits."""
        return sum_of_columns(self.columns, vector)

    def compose(self, inner: BitMatrix) -> BitMatrix:
        """This matrix after `inner`."""
        assert inner.height == self.width, "the matrices do not chain"
        return BitMatrix(self.height, tuple(self.apply(column) for column in inner.columns))

    def rank(self) -> int:
        return len(Elimination(self.columns).pivots)

    def image_basis(self) -> tuple[int, ...]:
        """Reduced and independent vectors that span the image, the highest pivot first."""
        pivots = Elimination(self.columns).reduced()
        return tuple(pivots[place][0] for place in sorted(pivots, reverse=True))

    def kernel_basis(self) -> tuple[int, ...]:
        """Independent vectors that span what the matrix sends to 0."""
        return tuple(Elimination(self.columns).kernel)

    def solve(self, target: int) -> int | None:
        """A vector that goes to `target`, or None when there is none."""
        return Elimination(self.columns).solve(target)

    def inverse(self) -> BitMatrix | None:
        """The inverse of a square matrix of full rank."""
        solver, _ = self.solver()
        is_regular = self.height == self.width == self.rank()
        return solver if is_regular else None

    def solver(self) -> tuple[BitMatrix, BitMatrix]:
        """(S, R): `y` is in the image exactly when R y = 0, and then S y goes to it."""
        pivots = Elimination(self.columns).reduced()
        found = [pivots.get(place, (0, 0)) for place in range(self.height)]
        solution = tuple(combination for _, combination in found)
        residual = tuple(vector ^ 1 << place for place, (vector, _) in enumerate(found))
        return BitMatrix(self.width, solution), BitMatrix(self.height, residual)


class Elimination:
    """Columns eliminated one by one: `pivots[bit]` is (vector with that highest bit, the columns
    that sum to it), `kernel` the combinations that sum to 0."""

    def __init__(self, columns: Iterable[int]) -> None:
        self.pivots: dict[int, tuple[int, int]] = {}
        self.kernel: list[int] = []
        for place, column in enumerate(columns):
            vector, combination = self.reduce(column, 1 << place)
            if vector:
                self.pivots[vector.bit_length() - 1] = vector, combination
            else:
                self.kernel.append(combination)

    def reduce(self, vector: int, combination: int = 0) -> tuple[int, int]:
        """What is left of a vector after subtracting pivots from its highest bit on."""
        rest, left = vector, 0
        while rest:
            place = rest.bit_length() - 1
            pivot = self.pivots.get(place)
            if pivot is None:
                left |= 1 << place
                rest ^= 1 << place
            else:
                rest ^= pivot[0]
                combination ^= pivot[1]
        return left, combination

    def solve(self, target: int) -> int | None:
        rest, combination = self.reduce(target)
        return None if rest else combination

    def reduced(self) -> dict[int, tuple[int, int]]:
        """The pivots with no pivot bit set in any other's vector."""
        result: dict[int, tuple[int, int]] = {}
        for place in sorted(self.pivots):
            vector, combination = self.pivots[place]
            for lower, (below, columns) in result.items():
                if vector >> lower & 1:
                    vector, combination = vector ^ below, combination ^ columns
            result[place] = vector, combination
        return result

    def largest(self, start: int) -> tuple[int, int]:
        """The largest value of `start` plus a vector of the span, and its combination."""
        combination = 0
        for place in sorted(self.pivots, reverse=True):
            if not start >> place & 1:
                start ^= self.pivots[place][0]
                combination ^= self.pivots[place][1]
        return start, combination

    def smallest(self, start: int) -> tuple[int, int]:
        """The smallest value of `start` plus a vector of the span, and its combination."""
        combination = 0
        for place in sorted(self.pivots, reverse=True):
            if start >> place & 1:
                start ^= self.pivots[place][0]
                combination ^= self.pivots[place][1]
        return start, combination


def sum_of_columns(columns: Sequence[int], vector: int) -> int:
    """The sum over the field of the columns at a vector's bits."""
    total = 0
    while vector:
        lowest = vector & -vector
        total ^= columns[lowest.bit_length() - 1]
        vector ^= lowest
    return total
