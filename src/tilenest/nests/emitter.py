"""Writing Machine operations: index arithmetic that folds numbers, loops, splats.

An `Index` is a number known now or an index value; arithmetic on numbers emits nothing. Constants
are placed once a function, at its entry, so no loop holds one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tilenest.dialects import Apply, Constant, For, LoopIf, LoopYield, Splat
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    Builder,
    DType,
    Function,
    Operation,
    Region,
    ScalarType,
    Type,
    Value,
    VectorType,
    element_dtype,
)

Index = int | Value


def lane_type(dtype: DType, lanes: int) -> Type:
    """A vector of `lanes`, or a scalar when `lanes` is 0."""
    return VectorType(dtype, lanes) if lanes else ScalarType(dtype)


def lanes_of(value: Value) -> int:
    """Lane count of a vector, 0 for a scalar."""
    return value.type.lanes if isinstance(value.type, VectorType) else 0


class Emitter:
    """A builder in one function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.builder = Builder(function.body)
        self._constants: dict[tuple[str, Type], Value] = {}

    def constant(self, value: bool | int | float, type_: Type) -> Value:
        """A number of the given scalar or vector type."""
        dtype = element_dtype(type_)
        if dtype.is_float or dtype.is_bool:
            value = float(value) if dtype.is_float else bool(value)
        key = (repr(value), type_)
        found = self._constants.get(key)
        if found is None:
            op = Constant(value=value, result_types=[type_])
            entry = self.function.body
            entry.insert(op, entry.operations.first)
            found = self._constants[key] = op.result
        return found

    def value(self, index: Index) -> Value:
        return self.constant(index, INDEX) if isinstance(index, int) else index

    def emit(self, operation: Operation) -> Value:
        """Insert an operation with one result."""
        return self.builder.insert(operation).result

    def apply(self, function: str, *arguments: Value, type_: Type | None = None) -> Value:
        result = arguments[-1].type if type_ is None else type_
        return self.emit(Apply(arguments=arguments, function=function, result_types=[result]))

    # Index arithmetic ------------------------------------------------------------------------

    def add(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        return a if b == 0 else self.apply("add", self.value(a), self.value(b))

    def subtract(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self.apply("sub", self.value(a), self.value(b))

    def multiply(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1:
            return b
        return a if b == 1 else self.apply("mul", self.value(a), self.value(b))

    def floor_divide(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a // b if b else 0
        return a if b == 1 else self.apply("floordiv", self.value(a), self.value(b))

    def remainder(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return a % b if b else 0
        return 0 if b == 1 else self.apply("mod", self.value(a), self.value(b))

    def minimum(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return min(a, b)
        return self.apply("minimum", self.value(a), self.value(b))

    def maximum(self, a: Index, b: Index) -> Index:
        if isinstance(a, int) and isinstance(b, int):
            return max(a, b)
        return self.apply("maximum", self.value(a), self.value(b))

    def ceil_divide(self, a: Index, b: int) -> Index:
        return self.floor_divide(self.add(a, b - 1), b)

    def compare(self, function: str, a: Index, b: Index) -> Value:
        return self.apply(function, self.value(a), self.value(b), type_=BOOL)

    # Lanes -----------------------------------------------------------------------------------

    def spread(self, value: Value, lanes: int) -> Value:
        """The value as a vector of `lanes` (itself when it is one, or when lanes is 0)."""
        if not lanes or isinstance(value.type, VectorType):
            return value
        return self.emit(
            Splat(value=value, result_types=[VectorType(element_dtype(value.type), lanes)])
        )

    def both(self, a: Value | None, b: Value | None, lanes: int) -> Value | None:
        """The conjunction of two optional masks."""
        if a is None or b is None:
            return b if a is None else a
        if lanes_of(a) or lanes_of(b):
            a, b = self.spread(a, lanes), self.spread(b, lanes)
        return self.apply("and", a, b)

    # Regions ---------------------------------------------------------------------------------

    @contextmanager
    def inside(self, operation: Operation, region: int = 0) -> Iterator[None]:
        with self.builder.at_end(operation.regions[region].block):
            yield

    @contextmanager
    def before(self, operation: Operation) -> Iterator[None]:
        """Insert in front of `operation` for the duration of the context."""
        saved = self.builder.block, self.builder.before
        block = operation.parent
        assert block is not None
        self.builder.block, self.builder.before = block, operation
        try:
            yield
        finally:
            self.builder.block, self.builder.before = saved

    def open_for(self, lower: Index, upper: Index, step: Index, initial: Sequence[Value]) -> For:
        """A loop with an empty body; the caller fills it and ends it with `finish`."""
        types = [value.type for value in initial]
        loop = For(
            lower=self.value(lower),
            upper=self.value(upper),
            step=self.value(step),
            initial=initial,
            result_types=types,
            regions=[new_region([INDEX, *types])],
        )
        self.builder.insert(loop)
        return loop

    def finish(self, values: Sequence[Value]) -> None:
        self.builder.insert(LoopYield(values=values))

    def branch(
        self,
        condition: Value,
        types: Sequence[Type],
        then: Callable[[], Sequence[Value]],
        otherwise: Callable[[], Sequence[Value]],
    ) -> list[Value]:
        """Run one of two emitters; the values they return (of these types) are the results."""
        op = LoopIf(
            condition=condition, result_types=types, regions=[new_region([]), new_region([])]
        )
        self.builder.insert(op)
        for region, emit in enumerate((then, otherwise)):
            with self.inside(op, region):
                self.finish(emit())
        return list(op.results)


def new_region(types: Sequence[Type]) -> Region:
    """A region of one block with arguments of these types."""
    return Region([Block(types)])
