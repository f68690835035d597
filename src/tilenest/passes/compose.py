"""The composer: grows the region of one map_reduce by evaluating values at its coordinates.

In: a loop domain and a rule that says which producers to inline. Asked for `element(value,
coordinates)`, it inlines the region of a pointwise producer at those coordinates, or makes the
value an input read there. Fusion, reductions and packing all build their regions through it.
Out: the pieces of a new `tensor.map_reduce_post`; the program is not touched until it is inserted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilenest.analysis import (
    BIT_FUNCTIONS,
    access_formulas,
    constant_of,
    formula_of,
    is_inside,
    ranges_of,
)
from tilenest.dialects import Access, MapReducePost, Yield
from tilenest.errors import SourceLocation
from tilenest.ir import (
    INDEX,
    Block,
    Builder,
    Operation,
    OpResult,
    ScalarType,
    Type,
    Value,
    clone_operation,
    element_dtype,
)
from tilenest.layouts import (
    Add,
    AffineMap,
    BitExpr,
    Const,
    DimRef,
    FloorDiv,
    IndexExpr,
    Interval,
    Mod,
    Mul,
    Sym,
    simplify,
)
from tilenest.passes.index_ops import apply_scalar, scalar_constant
from tilenest.records import replace

Coordinates = tuple[IndexExpr, ...]
IsFused = Callable[[Operation], bool]


def never(_: Operation) -> bool:
    """The rule that inlines nothing."""
    return False


class Composer:
    """One region under construction over the loop dims of `extents`."""

    def __init__(self, extents: Sequence[int], is_fused: IsFused = never) -> None:
        self.extents = tuple(extents)
        self.symbols: list[Value] = []
        self.inputs: list[Value] = []
        self.input_access: list[Access] = []
        self.block = Block([INDEX] * len(self.extents))
        self.builder = Builder(self.block)
        self.index_bindings: dict[Value, IndexExpr] = {}
        """what index values stand for, where that is no symbol (indices of a lifted reduction)"""
        self._is_fused = is_fused
        self._ranges: dict[DimRef | Sym, Interval] = {}
        self._ranged_symbols = -1
        self._elements: dict[tuple[Value, Coordinates], Value] = {}
        self._placements: dict[tuple[MapReducePost, Coordinates], list[Access]] = {}
        self._reads: dict[tuple[object, ...], Value] = {}
        self._indices: dict[IndexExpr, Value] = {}
        self._arguments: list[Value] = []
        self._states: list[Value] = []

    @property
    def rank(self) -> int:
        return len(self.extents)

    def location(self, location: SourceLocation | None) -> None:
        """Stamp what is inserted from here on."""
        self.builder.location = location

    # Index expressions ---------------------------------------------------------------------

    def symbol(self, value: Value) -> IndexExpr:
        """An index value as an expression over this domain and its symbols."""
        return formula_of(value, self._leaf)

    def _leaf(self, value: Value) -> IndexExpr:
        bound = self.index_bindings.get(value)
        if bound is not None:
            return bound
        if value not in self.symbols:
            self.symbols.append(value)
        return Sym(self.symbols.index(value))

    @property
    def ranges(self) -> dict[DimRef | Sym, Interval]:
        """Intervals of the loop dims and of the symbols so far."""
        if self._ranged_symbols != len(self.symbols):
            self._ranges = ranges_of(self.extents, self.symbols)
            self._ranged_symbols = len(self.symbols)
        return self._ranges

    def simplified(self, expr: IndexExpr) -> IndexExpr:
        """The one spelling of an expression that elements and reads are known by."""
        return simplify(expr, self.ranges)

    def place(
        self, access: Access, dims: Coordinates, symbols: Sequence[Value], memory: Value
    ) -> Access:
        """An access of another op, whose loop dims are at `dims` here, over this domain."""
        syms = [self.symbol(value) for value in symbols]
        results = access_formulas(access.map, dims, syms, self.ranges)
        return self.access(memory, results, access.bounds, access.fill)

    def index(self, expr: IndexExpr) -> Value:
        """An index expression as a value of the region."""
        found = self._indices.get(expr)
        if found is None:
            found = self._indices[expr] = self._make_index(expr)
        return found

    def _make_index(self, expr: IndexExpr) -> Value:
        match expr:
            case DimRef(position):
                return self.block.arguments[position]
            case Const(value):
                return self.constant(value, INDEX)
            case Sym(position):
                return self.read(self.symbols[position], Access(self.map(())))
            case Add(operands):
                total = self.index(operands[0])
                for operand in operands[1:]:
                    total = self.apply("add", [total, self.index(operand)], INDEX)
                return total
            case Mul(left, right):
                return self.apply("mul", [self.index(left), self.index(right)], INDEX)
            case FloorDiv(left, right):
                return self.apply("floordiv", [self.index(left), self.index(right)], INDEX)
            case Mod(left, right):
                return self.apply("mod", [self.index(left), self.index(right)], INDEX)
            case BitExpr():
                function = BIT_FUNCTIONS[type(expr)]
                return self.apply(function, [self.index(expr.left), self.index(expr.right)], INDEX)
        raise AssertionError(f"unknown index expression {expr!r}")

    # Region operations ---------------------------------------------------------------------

    def apply(self, function: str, arguments: Sequence[Value], type_: Type) -> Value:
        return apply_scalar(self.builder, function, *arguments, result_type=type_)

    def constant(self, value: bool | int | float, type_: Type) -> Value:
        return scalar_constant(self.builder, value, type_)

    def map(self, results: Sequence[IndexExpr]) -> AffineMap:
        return AffineMap(self.rank, len(self.symbols), tuple(results))

    def access(
        self, memory: Value, results: Sequence[IndexExpr], bounds: str, fill: bool | int | float = 0
    ) -> Access:
        """An access to this memory, 'proven' where it cannot leave it."""
        wanted = Access(self.map(results), bounds, fill)
        if bounds == "zero" and all(is_inside(wanted, memory, self.ranges, self.symbols)):
            return Access(wanted.map)
        return wanted

    def read(self, value: Value, access: Access) -> Value:
        """Make `value` an input read at `access`; equal reads share one input."""
        number = constant_of(value)
        if number is not None:
            return self.constant(number, value.type)
        key = value, access.map.results, access.bounds, access.fill
        found = self._reads.get(key)
        if found is None:
            found = self.builder.add_argument(ScalarType(element_dtype(value.type)), value.name)
            self._reads[key] = found
            self._arguments.append(found)
            self.inputs.append(value)
            self.input_access.append(access)
        return found

    def state(self, type_: Type, name: str | None = None) -> Value:
        """A new state argument of the fold."""
        argument = self.builder.add_argument(type_, name)
        self._states.append(argument)
        return argument

    def bind(self, value: Value, coordinates: Coordinates, element: Value) -> None:
        """Make `element` the answer for `value` at these coordinates."""
        self._elements[value, self._key(coordinates)] = element

    def _key(self, coordinates: Coordinates) -> Coordinates:
        return tuple(self.simplified(expr) for expr in coordinates)

    # Evaluation ----------------------------------------------------------------------------

    def element(self, value: Value, coordinates: Coordinates) -> Value:
        """The element of a tile, buf or scalar at coordinates that are inside it.

        What it is computed from comes first, from a list of our own: chains of producers may be
        longer than Python's stack.
        """
        wanted = value, self._key(coordinates)
        pending = [wanted]
        while wanted not in self._elements:
            missing = [key for key in self._sources(*pending[-1]) if key not in self._elements]
            pending += missing
            if not missing:
                key = pending.pop()
                if key not in self._elements:
                    self._elements[key] = self._evaluate(*key)
        return self._elements[wanted]

    def _sources(self, value: Value, coordinates: Coordinates) -> list[tuple[Value, Coordinates]]:
        """The elements of fused producers that this one is computed from."""
        owner = value.owner if isinstance(value, OpResult) else None
        if owner is None or not self._is_fused(owner):
            return []
        if not isinstance(owner, MapReducePost):
            return [(operand, ()) for operand in owner.operands]
        dims = self._dims_at(owner, value.index, coordinates)
        return [
            (source, self._key(access.map.results))
            for source, access in zip(owner.inputs, self._placed(owner, dims), strict=True)
            if access.bounds == "proven"
        ]

    def _dims_at(
        self, producer: MapReducePost, result: int, coordinates: Coordinates
    ) -> Coordinates:
        """The producer's loop dims where its result has these coordinates."""
        axes = producer.spec(result).dims
        return tuple(coordinates[axes.index(d)] for d in range(producer.rank))

    def _placed(self, producer: MapReducePost, dims: Coordinates) -> list[Access]:
        """Where the producer's inputs are read when its loop dims are at `dims`."""
        found = self._placements.get((producer, dims))
        if found is None:
            found = self._placements[producer, dims] = [
                self.place(producer.access("input", i), dims, producer.symbols, value)
                for i, value in enumerate(producer.inputs)
            ]
        return found

    def _evaluate(self, value: Value, coordinates: Coordinates) -> Value:
        if value in self.index_bindings:
            return self.index(self.simplified(self.index_bindings[value]))
        owner = value.owner if isinstance(value, OpResult) else None
        if owner is not None and self._is_fused(owner):
            if isinstance(owner, MapReducePost):
                self.inline(owner, self._dims_at(owner, value.index, coordinates))
                return self._elements[value, coordinates]
            return self._clone_scalar(owner, value.index)
        return self.read(value, Access(self.map(coordinates)))

    def _clone_scalar(self, owner: Operation, result: int) -> Value:
        values = {operand: self.element(operand, ()) for operand in owner.operands}
        copy = self.builder.insert(clone_operation(owner, values))
        for old, new in zip(owner.results, copy.results, strict=True):
            self._elements[old, ()] = new
        return copy.results[result]

    def inline(
        self, producer: MapReducePost, dims: Coordinates, states: Sequence[Value] = ()
    ) -> list[Value]:
        """The producer's region with its loop dims at `dims`; returns what it yields."""
        block = producer.fold_block
        arguments: list[Value] = []
        for argument, expr in zip(block.arguments, dims, strict=False):
            used = argument.has_uses
            arguments.append(self.index(self.simplified(expr)) if used else argument)
        for value, access in zip(producer.inputs, self._placed(producer, dims), strict=True):
            arguments.append(self.input_element(value, access))
        yields = self.paste(block, [*arguments, *states], {})
        for j, result in enumerate(producer.results):
            kept = tuple(dims[d] for d in producer.spec(j).dims)
            self.bind(result, kept, yields[j])
        return yields

    def paste(
        self, block: Block, arguments: Sequence[Value], values: dict[Value, Value]
    ) -> list[Value]:
        """Copy a scalar region here; `values` stands in for what it captures."""
        mapped = dict(values)
        mapped.update(zip(block.arguments, arguments, strict=True))
        for op in block.operations:
            if op.TERMINATOR:
                return [mapped.get(value, value) for value in op.operands]
            self.builder.insert(clone_operation(op, mapped))
        raise AssertionError("the block has no terminator")

    def input_element(self, value: Value, access: Access) -> Value:
        """The element of an input: inlined where proven inside, else read with its fill."""
        if access.bounds == "proven":
            return self.element(value, access.map.results)
        return self.read(value, access)

    # Result --------------------------------------------------------------------------------

    def finish(self, yields: Sequence[Value], states_first: bool = False) -> Block:
        """Close the region: indices, elements, states (or states, elements), and the yield."""
        self.builder.insert(Yield(values=list(yields)))
        pair = [*self._arguments, *self._states]
        if states_first:
            pair = [*self._states, *self._arguments]
        self.builder.order_arguments([*self.block.arguments[: self.rank], *pair])
        return self.block

    def shared(self, accesses: Sequence[Access]) -> tuple[Access, ...]:
        """The accesses with all symbols of this domain, as an op wants them."""
        count = len(self.symbols)
        return tuple(replace(a, map=AffineMap(self.rank, count, a.map.results)) for a in accesses)
