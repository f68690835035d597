"""Index formulas, intervals, memory steps and possible overlaps, against small enumerations."""

from __future__ import annotations

import itertools

import pytest

from tilenest.analysis import (
    coincide,
    formula_of,
    is_inside,
    may_overlap,
    offset_step,
    range_of,
    ranges_of,
)
from tilenest.dialects import Access, Alloc, Apply, Constant, Extent, Parallel, Return, Yield
from tilenest.ir import (
    INDEX,
    Block,
    BufType,
    Builder,
    Function,
    Module,
    Region,
    Value,
    ViewType,
    float32,
)
from tilenest.layouts import AffineMap, Const, DimRef, Sym, parse_affine_map


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
