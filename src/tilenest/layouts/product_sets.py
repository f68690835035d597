"""Whether integers can meet conditions that multiply and divide variables by one another.

In: equations and inequalities over coordinates and symbols, with products, and with quotients and
remainders by any divisor. Out: True where surely no integers meet them; False says nothing. A
quotient becomes a variable, bound by what division means for each sign of the divisor. Equations
are solved for what stands alone. Then each product counts as a variable of its own, bound by the
conditions multiplied with what is never negative. What is left is linear, and isl looks for points.
All conditions of one question share a budget, so that no question takes long.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import combinations, product
from math import prod

from tilenest.errors import ShapeError
from tilenest.layouts.index_expr import (
    Add,
    BitExpr,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Mod,
    Mul,
    Sym,
    split_terms,
)
from tilenest.layouts.index_range import Interval, Ranges, bounds
from tilenest.layouts.isl_sets import BudgetError, least_values, within_budget
from tilenest.layouts.spaces import Constraint
from tilenest.records import record

# The numbers of its variables, in order.
_Product = tuple[int, ...]
# The coefficient of each product, and of 1.
_Row = dict[_Product, int]
_MOST_CASES = 81
_MOST_FACTORS = 6
_MOST_ROWS = 600
# Numbers in rows, each a few microseconds of isl's, and what it costs when isl gives up.
_MOST_WORK = 160_000
_WORK_IN_VAIN = 6_000


class Budget:
    """The work that is left for a question; once it is spent, there is none for anything."""

    def __init__(self) -> None:
        self._left = _MOST_WORK
        self.exceeded = ""
        """what ended a search, if anything did"""

    @property
    def is_spent(self) -> bool:
        return self._left <= 0

    def spend(self, work: int) -> None:
        """Takes so much of it, or raises BudgetError."""
        self._left -= work
        if self.is_spent:
            raise BudgetError(f"over {_MOST_WORK} numbers in the conditions of all cases")


def are_never_met(
    constraints: Iterable[Constraint], rank: int, n_symbols: int, ranges: Ranges, budget: Budget
) -> bool:
    """Whether surely no integers meet conditions over this many coordinates and symbols; those that
    have a range lie in it."""
    if budget.is_spent:
        return False
    flat = _Flattening(rank, ranges)
    try:
        plain = [Constraint(flat.polynomial(c.expression), c.is_equality) for c in constraints]

        def system(further: Iterable[Constraint]) -> _System:
            return _system([*plain, *further], flat.size, n_symbols)

        divisors = tuple(dict.fromkeys(each.divisor for each in flat.divisions.values()))
        signs = [
            [
                sign
                for sign in _signs(bounds(divisor, ranges))
                if sign == 1 or not system([_of_sign(divisor, sign)]).is_empty(budget)
            ]
            for divisor in divisors
        ]
        if prod(map(len, signs)) > _MOST_CASES:
            return False
        cases = (system(flat.meaning(divisors, case)) for case in product(*signs))
        return all(
            case.is_empty(budget) or case.tightened(budget).is_empty(budget) for case in cases
        )
    except BudgetError as error:
        budget.exceeded = str(error)
        return False
    except ShapeError:
        return False


@record
class _Division:
    dividend: IndexExpr
    divisor: IndexExpr
    quotient: IndexExpr
    remainder: IndexExpr
    is_natural: bool
    """whether the dividend is never negative"""

    def meaning(self, sign: int) -> tuple[Constraint, ...]:
        """What holds of the quotient and the remainder where the divisor has this sign."""
        if sign == 0:
            parts = self.divisor, self.quotient, self.remainder
            return tuple(Constraint(part, is_equality=True) for part in parts)
        whole = self.divisor * self.quotient + self.remainder
        below = (Constraint(self.quotient * sign),) if self.is_natural else ()
        return (
            *below,
            _of_sign(self.divisor, sign),
            Constraint(self.dividend - whole, is_equality=True),
            Constraint(self.remainder * sign),
            Constraint((self.divisor - self.remainder) * sign - 1),
        )


class _Flattening:
    """Expressions as polynomials, with a variable for each quotient and for what has bits."""

    def __init__(self, rank: int, ranges: Ranges) -> None:
        self.size = rank
        self.ranges = ranges
        self.divisions: dict[tuple[IndexExpr, IndexExpr], _Division] = {}
        self.masks: dict[IndexExpr, IndexExpr] = {}

    def polynomial(self, expr: IndexExpr) -> IndexExpr:
        match expr:
            case Add(operands):
                return sum(map(self.polynomial, operands), start=Const(0))
            case Mul(left, right):
                return self.polynomial(left) * self.polynomial(right)
            case FloorDiv(dividend, divisor):
                return self._division(dividend, divisor).quotient
            case Mod(dividend, divisor):
                return self._division(dividend, divisor).remainder
            case BitExpr():
                if expr not in self.masks:
                    self.masks[expr] = self._variable()
                return self.masks[expr]
        return expr

    def meaning(self, divisors: Sequence[IndexExpr], signs: Sequence[int]) -> list[Constraint]:
        """What holds of all variables where the divisors have these signs."""
        sign_of = dict(zip(divisors, signs, strict=True))
        found = (each.meaning(sign_of[each.divisor]) for each in self.divisions.values())
        return [constraint for part in found for constraint in part]

    def _division(self, dividend: IndexExpr, divisor: IndexExpr) -> _Division:
        key = self.polynomial(dividend), self.polynomial(divisor)
        if key not in self.divisions:
            low, _ = bounds(dividend, self.ranges) or (-1, -1)
            self.divisions[key] = _Division(*key, self._variable(), self._variable(), low >= 0)
        return self.divisions[key]

    def _variable(self) -> IndexExpr:
        self.size += 1
        return DimRef(self.size - 1)


def _signs(interval: Interval | None) -> tuple[int, ...]:
    """The signs that a divisor may have."""
    if interval is None:
        return 1, 0, -1
    is_possible = {1: interval[1] > 0, 0: interval[0] <= 0 <= interval[1], -1: interval[0] < 0}
    return tuple(sign for sign, is_so in is_possible.items() if is_so)


def _of_sign(expr: IndexExpr, sign: int) -> Constraint:
    return Constraint(expr * sign - 1) if sign else Constraint(expr, is_equality=True)


@record
class _System:
    """Polynomials that are 0, and such as are at least 0."""

    equations: tuple[_Row, ...]
    at_least: tuple[_Row, ...]

    @property
    def products(self) -> dict[_Product, None]:
        """The products that may count as variables."""
        return _parts({unit for row in (*self.equations, *self.at_least) for unit in row})

    @property
    def factors(self) -> list[_Product]:
        """Those that are never negative."""
        natural = {place for row in self.at_least for place in _natural(row)}
        return [part for part in self.products if natural.issuperset(part)]

    def is_empty(self, budget: Budget) -> bool:
        """Whether no number for each product meets all polynomials and their multiples."""
        return self._least((), budget) is None

    def tightened(self, budget: Budget) -> _System:
        """The same, where what multiplies a factor is bound as tightly as integers are."""
        rows, factors = (*self.equations, *self.at_least), self.factors
        forms = [form for row in rows for form in _cofactors(row, factors)]
        pairs = zip(forms, self._least(forms, budget) or (), strict=True)
        tight = [form | {(): form.get((), 0) - low} for form, low in pairs if low is not None]
        return _System(self.equations, (*self.at_least, *tight))

    def _least(self, forms: Sequence[_Row], budget: Budget) -> list[int | None] | None:
        """The least values of forms where a number for each product meets the rows, by isl; None in
        place of all where no numbers do."""
        products, factors = self.products, self.factors
        budget.spend(len(self.equations) * len(products) + len(self.at_least) * len(factors))
        equations = [*self.equations, *_multiplied(self.equations, products, products)]
        at_least = [*self.at_least, *_multiplied(self.at_least, factors, products)]
        if len(equations) + len(at_least) > _MOST_ROWS:
            raise BudgetError(f"over {_MOST_ROWS} conditions")
        units = {unit for row in (*equations, *at_least, *forms) for unit in row if unit}
        names = {unit: f"x{'_'.join(map(str, unit))}" for unit in sorted(units)}

        def text(row: _Row) -> str:
            parts = (f"{n} * {names[unit]}" if unit else f"{n}" for unit, n in row.items())
            return " + ".join(parts) or "0"

        conditions = dict.fromkeys(f"{text(row)} = 0" for row in equations)
        conditions |= dict.fromkeys(f"{text(row)} >= 0" for row in at_least)
        asked = [*names.values()], [*conditions], [text(form) for form in forms]
        budget.spend(len(names) * len(conditions))
        try:
            return within_budget(lambda: least_values(*asked))
        except BudgetError:
            budget.spend(_WORK_IN_VAIN)
            raise


def _system(constraints: Sequence[Constraint], size: int, n_symbols: int) -> _System:
    """Constraints over coordinates and symbols, solved for what an equation tells."""
    equations, at_least = _solved(constraints, size, n_symbols)
    return _System(
        tuple(_row(expr, size) for expr in equations), tuple(_row(expr, size) for expr in at_least)
    )


def _solved(
    constraints: Sequence[Constraint], size: int, n_symbols: int
) -> tuple[list[IndexExpr], list[IndexExpr]]:
    """Equations and inequalities, where variables that an equation tells are replaced."""
    waiting = [c.expression for c in constraints if c.is_equality]
    at_least = [c.expression for c in constraints if not c.is_equality]
    leaves = [*map(DimRef, range(size))], [*map(Sym, range(n_symbols))]
    kept: list[IndexExpr] = []
    while waiting:
        equation = waiting.pop(0)
        told = _told(equation)
        if told is None:
            kept.append(equation)
            continue
        waiting = [_replaced(expr, *told, leaves) for expr in (*kept, *waiting)]
        at_least = [_replaced(expr, *told, leaves) for expr in at_least]
        kept = []
    return kept, at_least


def _told(equation: IndexExpr) -> tuple[DimRef | Sym, IndexExpr] | None:
    """The first variable that an equation tells, and what it is."""
    terms, _ = split_terms(equation)
    for unit, step in terms.items():
        if abs(step) == 1 and isinstance(unit, DimRef | Sym):
            others = (other for other in terms if other != unit)
            if not any(_has(other, unit) for other in others):
                return unit, unit - equation * step
    return None


def _has(expr: IndexExpr, leaf: DimRef | Sym) -> bool:
    mask = expr.dim_mask if isinstance(leaf, DimRef) else expr.sym_mask
    return bool(mask >> leaf.position & 1)


def _replaced(
    expr: IndexExpr, leaf: DimRef | Sym, value: IndexExpr, leaves: tuple[list[DimRef], list[Sym]]
) -> IndexExpr:
    if not _has(expr, leaf):
        return expr
    return expr.substitute(*([value if one == leaf else one for one in part] for part in leaves))


def _row(polynomial: IndexExpr, size: int) -> _Row:
    terms, constant = split_terms(polynomial)
    row = {_places(unit, size): step for unit, step in terms.items()}
    return row | {(): constant} if constant else row


def _places(unit: IndexExpr, size: int) -> _Product:
    """The variables of a product by number: coordinates, then symbols."""
    numbers = [one.position + size * isinstance(one, Sym) for one in _factors(unit)]
    return tuple(sorted(numbers))


def _factors(unit: IndexExpr) -> list[DimRef | Sym]:
    if isinstance(unit, Mul):
        return _factors(unit.left) + _factors(unit.right)
    assert isinstance(unit, DimRef | Sym), f"{unit} is not flat"
    return [unit]


def _parts(products: Iterable[_Product]) -> dict[_Product, None]:
    """Whatever divides a product of several variables, besides 1."""
    found: dict[_Product, None] = {}
    for one in sorted(unit for unit in products if len(unit) > 1):
        if len(one) > _MOST_FACTORS:
            raise BudgetError(f"a product of {len(one)} variables")
        for count in range(1, len(one) + 1):
            found.update(dict.fromkeys(combinations(one, count)))
    return found


def _natural(row: _Row) -> _Product:
    """The variable that is never negative where a polynomial is not."""
    units = [unit for unit in row if unit]
    is_alone = len(units) == 1 == len(units[0]) and row[units[0]] > 0 >= row.get((), 0)
    return units[0] if is_alone else ()


def _multiplied(
    rows: Iterable[_Row], factors: Iterable[_Product], known: Container[_Product]
) -> list[_Row]:
    """Polynomials multiplied by products, where that gives no product that is new."""
    found = []
    for row in rows:
        for factor in factors:
            grown = {tuple(sorted(unit + factor)): step for unit, step in row.items() if step}
            if all(len(unit) == 1 or unit in known for unit in grown):
                found.append(grown)
    return found


def _cofactors(row: _Row, factors: Iterable[_Product]) -> Iterator[_Row]:
    """What multiplies a factor in a polynomial, and the opposite of that."""
    for factor in factors:
        form = {}
        for unit, step in row.items():
            rest = Counter(unit)
            rest.subtract(factor)
            if min(rest.values(), default=-1) >= 0 and rest.total():
                form[tuple(rest.elements())] = step
        if form:
            yield form
            yield {unit: -step for unit, step in form.items()}
