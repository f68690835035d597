"""A short way to write IR by hand, for the tests of the interpreter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tilenest.dialects import SCALAR_FUNCTIONS, Apply, Cast, Constant, Nest, Return, Yield
from tilenest.interp import interpret
from tilenest.ir import (
    BOOL,
    INDEX,
    Block,
    BlockArgument,
    Builder,
    DType,
    Function,
    Module,
    Operation,
    Region,
    ScalarType,
    TileType,
    Type,
    Value,
    VectorType,
    ViewType,
    bool_,
)
from tilenest.layouts import Dim

OpT = TypeVar("OpT", bound=Operation)


def view(dtype: DType, rank: int) -> ViewType:
    return ViewType(dtype, (None,) * rank, (None,) * rank)


def tile(dtype: DType, *dims: Dim) -> TileType:
    return TileType(dtype, dims)


def blank(*types: Type) -> Region:
    """A region with one empty block of these arguments."""
    return Region([Block(types)])


class Program:
    """A function under construction."""

    def __init__(self, *parameters: Type, name: str = "main", into: Module | None = None) -> None:
        self.module = Module() if into is None else into
        self.function = self.module.add(Function(name, parameters))
        self.arguments = self.function.arguments
        self.builder = Builder(self.function.body)

    def add(self, operation: OpT) -> OpT:
        return self.builder.insert(operation)

    def value(self, operation: Operation) -> Value:
        return self.builder.insert(operation).result

    def constant(self, value: bool | int | float, type_: Type = INDEX) -> Value:
        return self.value(Constant(value=value, result_types=[type_]))

    def indices(self, *values: int) -> list[Value]:
        return [self.constant(value) for value in values]

    def apply(self, name: str, *arguments: Value) -> Value:
        type_ = arguments[-1].type
        if SCALAR_FUNCTIONS[name].result == "bool":
            type_ = VectorType(bool_, type_.lanes) if isinstance(type_, VectorType) else BOOL
        return self.value(Apply(arguments=arguments, function=name, result_types=[type_]))

    def cast(self, value: Value, dtype: DType) -> Value:
        return self.value(Cast(value=value, result_types=[ScalarType(dtype)]))

    @contextmanager
    def inside(self, operation: Operation, region: int = 0) -> Iterator[list[BlockArgument]]:
        block = operation.regions[region].block
        with self.builder.at_end(block):
            yield block.arguments

    def finish(self, *values: Value) -> Module:
        self.add(Return(values=values))
        return self.module

    def yields(self, *values: Value) -> None:
        self.add(Yield(values=values))

    def nest(
        self,
        kind: type[Nest],
        domain: Sequence[Value | int | tuple[int, int, int]],
        initial: Sequence[Value] = (),
        **fields: Any,
    ) -> Nest:
        """A nest over extents or (lower, upper, step) triples, with one empty region."""
        bounds: list[tuple[Value, Value, Value]] = []
        for axis in domain:
            if isinstance(axis, Value):
                bounds.append((self.constant(0), axis, self.constant(1)))
            else:
                lower, upper, step = (0, axis, 1) if isinstance(axis, int) else axis
                bounds.append((self.constant(lower), self.constant(upper), self.constant(step)))
        states = [value.type for value in initial]
        if initial:
            fields["initial"] = initial
        return self.add(
            kind(
                lower=[axis[0] for axis in bounds],
                upper=[axis[1] for axis in bounds],
                step=[axis[2] for axis in bounds],
                result_types=states,
                regions=[blank(*[INDEX] * len(bounds), *states)],
                **fields,
            )
        )

    def run(self, *arguments: Any, shuffle: int | None = None) -> list[Any]:
        return interpret(self.module, arguments, shuffle=shuffle)
