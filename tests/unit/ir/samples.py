"""Modules made by chance from the declarations of the op classes, and a comparer of modules.

The modules are well formed as structures (except that ops mean nothing), so they exercise printing,
parsing and cloning for every class. The comparer walks two modules side by side and shares nothing
with the printer.
"""

from __future__ import annotations

import math
import random
import struct
from typing import Any

from tilenest.dialects import (
    Access,
    AtomChoice,
    AtomEffect,
    Dependence,
    Loop,
    OrderingContract,
    Patch,
    ReductionContract,
    ResultSpec,
    Sched,
    StateLaw,
    contract_of,
)
from tilenest.ir import (
    BOOL,
    INDEX,
    POINTER,
    TOKEN,
    ArrayType,
    Block,
    BufType,
    Function,
    Module,
    Operation,
    Region,
    ScalarType,
    TileType,
    TupleType,
    Type,
    Value,
    Variable,
    VectorType,
    ViewType,
    bfloat16,
    float32,
    int8,
    uint64,
)
from tilenest.layouts import AffineMap, Dim, DimRef, Sym, positional_dim
from tilenest.records import fields_of, is_record

AXIS = Dim("m", 96)
OTHER = Dim(None, 0)
PLAIN = positional_dim(0, 16)
ELSEWHERE = positional_dim(2, 3)
TYPES: tuple[Type, ...] = (
    INDEX,
    BOOL,
    ScalarType(bfloat16),
    TileType(float32, (AXIS, OTHER)),
    TileType(int8, (PLAIN,)),
    TileType(int8, (ELSEWHERE, AXIS, PLAIN)),
    ViewType(float32, (129, None), (None, 1)),
    ViewType(uint64, (), ()),
    ViewType(float32, (0,), (-1,)),
    BufType(float32, (6, 16, 0)),
    BufType(float32, (6,)),
    BufType(float32, ()),
    VectorType(float32, 16),
    VectorType(INDEX.dtype, 1),
    POINTER,
    TOKEN,
    TupleType(()),
    TupleType((INDEX, TupleType((TileType(int8, (ELSEWHERE, AXIS)), TOKEN)))),
    ArrayType(TileType(float32, (AXIS, PLAIN)), (2, 3), False),
    ArrayType(TileType(int8, (PLAIN,)), (0,), True),
)
MAPS = (
    AffineMap(0, 0, ()),
    AffineMap.identity(2),
    AffineMap(3, 1, ((DimRef(0) * 6 + Sym(0)) // 4 % 7, DimRef(2) - 3)),
)
FLOATS = (
    0.0,
    -0.0,
    1.0,
    math.inf,
    -math.inf,
    math.nan,
    -math.nan,
    struct.unpack("<d", struct.pack("<Q", 0x7FF8_0000_0000_0001))[0],
    5e-324,
    0.1,
    1e300,
    -1.7976931348623157e308,
)
STRINGS = ("zero", "", 'a "quoted" \\ one', "line\nbreak\t\x00", "µ∂ \U0001f600", "%d0 = ; }")
INTEGERS = (0, 1, -1, 96, (1 << 63) - 1, -(1 << 63), (1 << 64) - 1)
NAMES = (None, None, "acc", "acc", "acc_1", "x", "d0", "été", "7up", "a b")


def any_value(chance: random.Random, depth: int = 0) -> Any:
    """An attribute value of any kind."""
    leaves = (
        lambda: None,
        lambda: chance.choice((True, False)),
        lambda: chance.choice(INTEGERS),
        lambda: chance.choice(FLOATS),
        lambda: chance.choice(STRINGS),
        lambda: chance.choice(MAPS),
        lambda: chance.choice((AXIS, OTHER, PLAIN, ELSEWHERE)),
        lambda: chance.choice(TYPES),
        lambda: any_record(chance),
    )
    if depth < 3 and chance.random() < 0.2:
        return tuple(any_value(chance, depth + 1) for _ in range(chance.randrange(4)))
    return chance.choice(leaves)()


CONTRACTS = (
    ReductionContract(),
    contract_of("ordered_tree", "add", None),
    ReductionContract(
        laws=(StateLaw("@merge", -0.0), StateLaw("mul", 1, is_exact=True)),
        orientation="element_first",
        provenance="trusted",
    ),
)


def any_record(chance: random.Random) -> Any:
    loops = tuple(
        Loop(chance.randrange(3), chance.choice((1, 8)), chance.choice(("plain", "vector")))
        for _ in range(chance.randrange(3))
    )
    return chance.choice(
        (
            Access(chance.choice(MAPS)),
            Access(chance.choice(MAPS), "zero", chance.choice((0, 0.0, -0.0, False, 1))),
            ResultSpec(()),
            ResultSpec((0, 1), contract_of("fold_left", "add"), True, 2),
            Sched(loops),
            Sched(loops, "blocked"),
            Sched(loops, "transposed", (AtomChoice("cpu.any", 2), AtomChoice("cpu.other"))),
            Patch(1),
            Patch(0, "add", True),
            Dependence(0, 1, "value"),
            AtomEffect("read", 2),
            *CONTRACTS,
            OrderingContract(
                ScalarType(float32), "descending", nan="first", selected=3, permutation=MAPS[0]
            ),
            OrderingContract(ScalarType(float32), "source", reduction=CONTRACTS[1]),
        )
    )


def value_of_kind(kind: type, chance: random.Random) -> Any:
    choices: dict[Any, Any] = {
        bool: (True, False),
        ReductionContract: CONTRACTS,
        int: INTEGERS,
        float: FLOATS,
        str: STRINGS,
        AffineMap: MAPS,
        str | Variable: (*STRINGS, Variable("w"), Variable("é_1")),
        int | Variable: (*INTEGERS, Variable("w")),
        object | Variable: [any_value(chance), Variable("w")],
        tuple: [tuple(any_value(chance) for _ in range(size)) for size in (0, 1, 3)],
        object: [any_value(chance)],
    }
    return chance.choice(choices[kind])


def any_operation(
    cls: type[Operation],
    visible: list[Value],
    chance: random.Random,
    depth: int,
    following: Block,
) -> Operation:
    """An instance with operands of any type, any number of results and regions; a branch goes to
    the block that follows."""
    given: dict[str, Any] = {}
    for name, arity in cls.SPEC.groups:
        if arity == "many":
            given[name] = [chance.choice(visible) for _ in range(chance.choice((0, 1, 3)))]
            if name in cls.SPEC.successors:
                given[name] = (following, given[name])
        elif arity == "one" or chance.random() < 0.5:
            given[name] = chance.choice(visible)
    for field in cls.SPEC.attributes:
        if not (field.has_default and chance.random() < 0.5):
            given[field.name] = value_of_kind(field.kind, chance)
    types = [chance.choice(TYPES) for _ in range(chance.randrange(3))]
    regions = [any_region(cls, visible, chance, depth) for _ in range(chance.randrange(3))]
    op = cls(result_types=types, regions=regions if depth else (), **given)
    for result in op.results:
        result.name = chance.choice(NAMES)
    return op


def any_region(
    cls: type[Operation], visible: list[Value], chance: random.Random, depth: int
) -> Region:
    region = Region()
    if not depth:
        return region
    for _ in range(chance.randrange(3)):
        region.append(any_block(chance))
    fill_blocks(region, cls, visible, chance, depth - 1)
    return region


def any_block(chance: random.Random) -> Block:
    block = Block([chance.choice(TYPES) for _ in range(chance.choice((0, 1, 4)))])
    for argument in block.arguments:
        argument.name = chance.choice(NAMES)
    return block


def fill_blocks(
    region: Region, cls: type[Operation], visible: list[Value], chance: random.Random, depth: int
) -> None:
    """Instances in every block; what branches has a block to go to."""
    blocks = list(region.blocks)
    if branches(cls) and blocks:
        region.append(any_block(chance))
    following_blocks = [*list(region.blocks)[1:], Block()]
    for block, following in zip(blocks, following_blocks, strict=False):
        inside = [*visible, *block.arguments]
        for _ in range(chance.randrange(3)):
            op = any_operation(cls, inside, chance, depth, following)
            block.append(op)
            inside.extend(op.results)


def branches(cls: type[Operation]) -> bool:
    return bool(cls.SPEC.successors)


def any_module(cls: type[Operation], seed: int) -> Module:
    """A module of instances of one class."""
    chance = random.Random(seed)
    module = Module("candidate", {"target": "cpu", "levels": (1, 2)} if seed % 2 else None)
    for name in ("main", "other part"):
        function = module.add(Function(name, TYPES, [INDEX] * (seed % 3)))
        if seed % 4 == 1:
            function.attributes["noalias"] = (True, AXIS)
        for argument in function.arguments:
            argument.name = chance.choice(NAMES)
        visible: list[Value] = list(function.arguments)
        following = function.region.append(any_block(chance)) if branches(cls) else function.body
        for _ in range(4):
            op = any_operation(cls, visible, chance, 2, following)
            function.body.append(op)
            visible.extend(op.results)
    return module


class Comparer:
    """Asserts that two modules are the same but for identities."""

    def __init__(self) -> None:
        self.values: dict[Value, Value] = {}
        self.blocks: dict[Block, Block] = {}
        self.dims: dict[Dim, Dim] = {}

    def modules(self, a: Module, b: Module) -> None:
        assert a.form == b.form
        self.attributes(a.attributes, b.attributes)
        assert len(a.functions) == len(b.functions)
        for left, right in zip(a.functions, b.functions, strict=True):
            assert left.name == right.name
            self.lists(self.same, left.result_types, right.result_types)
            self.attributes(left.attributes, right.attributes)
            self.regions(left.region, right.region)

    def regions(self, a: Region, b: Region) -> None:
        assert len(a.blocks) == len(b.blocks)
        self.blocks.update(zip(a.blocks, b.blocks, strict=True))
        for left, right in zip(a.blocks, b.blocks, strict=True):
            self.lists(self.definitions, left.arguments, right.arguments)
            self.lists(self.operations, list(left.operations), list(right.operations))

    def operations(self, a: Operation, b: Operation) -> None:
        assert type(a) is type(b)
        assert a.segments == b.segments
        assert [self.blocks[block] for block in a.successors] == b.successors
        assert [self.values[value] for value in a.operands] == b.operands
        self.attributes(a.attributes, b.attributes)
        self.lists(self.regions, a.regions, b.regions)
        self.lists(self.definitions, a.results, b.results)

    def definitions(self, a: Value, b: Value) -> None:
        self.same(a.type, b.type)
        self.values[a] = b

    def attributes(self, a: dict[str, Any], b: dict[str, Any]) -> None:
        assert a.keys() == b.keys()
        for name, value in a.items():
            self.same(value, b[name])

    def lists(self, compare: Any, a: Any, b: Any) -> None:
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            compare(left, right)

    def same(self, a: Any, b: Any) -> None:
        assert type(a) is type(b)
        if isinstance(a, Dim):
            assert (a.label, a.extent, a.position) == (b.label, b.extent, b.position)
            assert self.dims.setdefault(a, b) is b
        elif isinstance(a, float):
            assert struct.pack("<d", a) == struct.pack("<d", b)
        elif isinstance(a, tuple):
            self.lists(self.same, a, b)
        elif is_record(a) and not isinstance(a, AffineMap):
            for name in fields_of(type(a)):
                self.same(getattr(a, name), getattr(b, name))
        else:
            assert a == b
