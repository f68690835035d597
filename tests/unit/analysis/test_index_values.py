"""Index formulas, intervals, memory steps and possible overlaps, against small enumerations."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tilenest.analysis import (
    Facts,
    coincide,
    formula_of,
    is_inside,
    may_overlap,
    offset_step,
    range_of,
    ranges_of,
)
from tilenest.analysis.index_values import index_formula, number_of
from tilenest.dialects import (
    Access,
    Alloc,
    Apply,
    Constant,
    Extent,
    Parallel,
    Return,
    Yield,
    views,
)
from tilenest.ir import (
    INDEX,
    Block,
    BufType,
    Builder,
    Function,
    Module,
    Operation,
    Region,
    Value,
    ViewType,
    float32,
)
from tilenest.layouts import AffineMap, Const, DimRef, IndexExpr, Sym, parse_affine_map


class Program:
    """A function over one view with a nest of 0..10 by 3, and index arithmetic in it."""

    def __init__(self) -> None:
        view = ViewType(float32, (10, None), (None, 1))
        self.function = Function("f", [view, view, view], attributes={"alias_groups": (0, 1, 0)})
        Module().add(self.function)
        self.views = self.function.arguments
        self.builder = Builder(self.function.body)
        bounds = [self.number(value) for value in (0, 10, 3)]
        body = Block([INDEX])
        nest = Parallel(
            lower=bounds[:1], upper=bounds[1:2], step=bounds[2:], regions=[Region([body])]
        )
        self.builder.insert(nest)
        self.builder.insert(Return())
        self.index = body.arguments[0]
        self.builder = Builder(body)
        self.last = self.builder.insert(Yield())
        self.builder = Builder(body, self.last)

    def number(self, value: int) -> Value:
        return self.builder.insert(Constant(value=value, result_types=[INDEX])).result

    def apply(self, function: str, *arguments: Value) -> Value:
        op = Apply(arguments=arguments, function=function, result_types=[INDEX])
        return self.builder.insert(op).result

    def extent(self, axis: int) -> Value:
        op = Extent(view=self.views[0], axis=axis, result_types=[INDEX])
        return self.builder.insert(op).result


def test_arithmetic_becomes_a_formula_over_leaves() -> None:
    p = Program()
    value = p.apply("add", p.apply("mul", p.index, p.number(4)), p.number(-2))
    assert formula_of(value, lambda _: Sym(0)) == Sym(0) * 4 - 2
    assert formula_of(p.extent(0), lambda _: Sym(0)) == Const(10)
    assert formula_of(p.extent(1), lambda _: Sym(0)) == Sym(0)


def test_shared_arithmetic_is_read_once() -> None:
    p = Program()
    value: Value = p.index
    for _ in range(40):
        value = p.apply("add", value, value)
    assert formula_of(value, lambda _: Sym(0)) == Sym(0) * 2**40


@pytest.mark.parametrize(
    ("function", "operand"),
    [("add", 5), ("sub", 5), ("mul", -3), ("floordiv", 4), ("mod", 4), ("minimum", 4),
     ("maximum", 4)],
)  # fmt: skip
def test_ranges_hold_every_value(function: str, operand: int) -> None:
    p = Program()
    found = range_of(p.apply(function, p.index, p.number(operand)))
    meaning = {
        "add": lambda i: i + operand,
        "sub": lambda i: i - operand,
        "mul": lambda i: i * operand,
        "floordiv": lambda i: i // operand,
        "mod": lambda i: i % operand,
        "minimum": lambda i: min(i, operand),
        "maximum": lambda i: max(i, operand),
    }
    values = [meaning[function](i) for i in range(0, 10, 3)]
    assert found is not None
    assert found[0] <= min(values)
    assert max(values) <= found[1] <= max(values) + 1


def test_a_nest_index_stops_at_its_last_step() -> None:
    assert range_of(Program().index) == (0, 9)


def test_what_is_unknown_has_no_range() -> None:
    p = Program()
    assert range_of(p.apply("floordiv", p.index, p.extent(1))) is not None
    low_high = range_of(p.extent(1))
    assert low_high is not None
    assert low_high[0] == 0


def test_an_access_is_judged_axis_by_axis() -> None:
    p = Program()
    access = Access(parse_affine_map("(d0)[s0] -> (s0, d0)"), "zero")
    ranges = ranges_of((5,), [p.index])
    assert is_inside(access, p.views[0], ranges) == (True, False)
    buf = Alloc(result_types=[BufType(float32, (9, 5))]).result
    assert is_inside(access, buf, ranges) == (False, True)


def test_an_index_that_counts_an_extent_stays_below_it() -> None:
    p = Program()
    builder = Builder(p.function.body, p.function.body.terminator)
    ends = [
        builder.insert(Extent(view=p.views[0], axis=axis, result_types=[INDEX])).result
        for axis in (1, 0)
    ]
    body = Block([INDEX])
    zero, one = (
        builder.insert(Constant(value=value, result_types=[INDEX])).result for value in (0, 1)
    )
    nest = Parallel(lower=[zero], upper=ends[:1], step=[one], regions=[Region([body])])
    builder.insert(nest)
    Builder(body).insert(Yield())
    symbols = body.arguments
    ranges = ranges_of((1,), symbols)
    for text, expected in (
        ("(d0)[s0] -> (0, s0)", (True, True)),
        ("(d0)[s0] -> (0, d0 + s0)", (True, True)),
        ("(d0)[s0] -> (0, s0 + 1)", (True, False)),
        ("(d0)[s0] -> (0, s0 - 1)", (True, False)),
        ("(d0)[s0] -> (s0, 0)", (False, False)),
    ):
        access = Access(parse_affine_map(text), "zero")
        assert is_inside(access, p.views[0], ranges, symbols) == expected
    other = Access(parse_affine_map("(d0)[s0] -> (0, s0)"), "zero")
    assert is_inside(other, p.views[1], ranges, symbols) == (True, False)


@pytest.mark.parametrize(
    "text",
    ["(d0, d1) -> (d0, d1)", "(d0, d1) -> (d1, d0)", "(d0, d1) -> (d0 // 4, d0 % 4 + d1)"],
)
def test_steps_in_memory_match_addresses(text: str) -> None:
    map_ = parse_affine_map(text)
    extents = (8, 4)
    memory = BufType(float32, (16, 4))
    for dim in range(2):
        moves = {
            address(map_, (i + (dim == 0), j + (dim == 1))) - address(map_, (i, j))
            for i, j in itertools.product(range(extents[0] - 1), range(extents[1] - 1))
        }
        step = offset_step(memory, map_, dim, extents)
        assert (step in moves and len(moves) == 1) if step is not None else True
        if len(moves) == 1:
            assert step is not None


def address(map_: AffineMap, point: tuple[int, int]) -> int:
    row, column = map_.evaluate(point)
    return row * 4 + column


def test_an_unknown_stride_gives_no_step() -> None:
    view = ViewType(float32, (None, None), (None, 1))
    identity = AffineMap.identity(2)
    assert offset_step(view, identity, 0, (3, 3)) is None
    assert offset_step(view, identity, 1, (3, 3)) == 1
    assert offset_step(view, AffineMap(1, 0, (Const(2), DimRef(0))), 0, (3,)) == 1


def test_only_arguments_of_one_group_overlap() -> None:
    a, b, c = Program().views
    assert may_overlap(a, c)
    assert coincide(a, c)
    assert not may_overlap(a, b)
    del a.block.parent.parent.attributes["alias_groups"]  # type: ignore[union-attr]  # a function
    assert may_overlap(a, b)
    assert not coincide(a, b)


def test_a_view_may_have_more_elements_than_an_array() -> None:
    p = Program()
    below = p.views[0]
    builder = Builder(p.function.body, p.function.body.operations.first)

    def insert(op: Operation) -> Operation:
        return builder.insert(op)

    sizes = Extent(view=below, axis=1, result_types=[INDEX])
    factor = Constant(value=1 << 10, result_types=[INDEX])
    many = Apply(arguments=[sizes.result, factor.result], function="mul", result_types=[INDEX])
    for op in (sizes, factor, many):
        insert(op)
    # Its element 2**50 is the first one of the rows from 1 on.
    slowly = AffineMap(1, 0, (DimRef(0) // (1 << 50), Const(0)))
    slow = views.remap(insert, below, slowly, [many.result])
    rows = views.remap(insert, below, AffineMap(1, 0, (DimRef(0) + 1, Const(0))), [9])
    first = views.remap(insert, below, AffineMap(1, 0, (DimRef(0), Const(0))), [1])
    assert may_overlap(slow.result, rows.result)
    assert may_overlap(slow.result, first.result)
    assert not may_overlap(rows.result, first.result)


DEEP_STEPS = ("collatz", "doubling", "extremes", "sums")


def deep_step(p: Program, name: str, value: Value) -> tuple[Value, Callable[[int], int]]:
    """One more operation, and what it computes."""
    one, two, three = (p.number(n) for n in (1, 2, 3))
    match name:
        case "collatz":
            odd = p.apply("add", p.apply("mul", value, three), one)
            return p.apply("floordiv", odd, two), lambda x: (x * 3 + 1) // 2 if x < 2**61 else x
        case "doubling":
            halves = p.apply("floordiv", value, two), p.apply("mod", value, three)
            return p.apply("add", *halves), lambda x: x // 2 + x % 3
        case "extremes":
            both = p.apply("minimum", p.apply("add", value, one), p.apply("mul", value, two))
            return p.apply("maximum", both, one), lambda x: max(min(x + 1, 2 * x), 1)
    return p.apply("add", value, one), lambda x: x + 1


@pytest.mark.parametrize("name", DEEP_STEPS)
def test_chains_may_be_longer_than_the_stack(name: str) -> None:
    """Formulas, intervals and numbers of a chain of thousands of operations, at once."""
    p = Program()
    value: Value = p.index
    wanted = 7
    for _ in range(3 if name == "collatz" else 1500):
        value, compute = deep_step(p, name, value)
        wanted = compute(wanted)
    for _ in range(3000 if name == "collatz" else 0):
        value, _ = deep_step(p, name, value)
    seven = Facts(scalars={p.index: 7})
    number = number_of(value, seven)
    leaves: list[Value] = []

    def leaf(found: Value) -> IndexExpr:
        leaves.append(found)
        return Sym(len(leaves) - 1)

    formula = formula_of(value, leaf)
    numbers = [number_of(found, seven) for found in leaves]
    known = [found for found in numbers if found is not None]
    assert len(known) == len(numbers)
    assert formula.evaluate((), known) == number
    interval = range_of(value)
    assert number is not None
    assert interval is None or interval[0] <= number <= interval[1]
    assert name == "collatz" or number == wanted
    index_formula(value, {p.index: DimRef(0)}, Facts())


def test_extremes_of_far_numbers_are_formulas() -> None:
    p = Program()
    one, other = (Extent(view=view, axis=1, result_types=[INDEX]) for view in p.views[:2])
    far = [
        p.apply(
            "mul", p.apply("sub", p.builder.insert(op).result, p.number(2**47)), p.number(65535)
        )
        for op in (one, other)
    ]
    coordinates: dict[Value, IndexExpr] = {one.result: DimRef(0), other.result: DimRef(1)}
    ends = (0, 1, 2, 2**47, 2**48 - 1, 2**48)
    for function, expected in (("minimum", min), ("maximum", max)):
        formula = index_formula(p.apply(function, *far), coordinates, Facts())
        assert formula is not None
        for a, b in itertools.product(ends, ends):
            wanted = expected((a - 2**47) * 65535, (b - 2**47) * 65535)
            assert formula.evaluate((a, b)) == wanted, (function, a, b)
