"""The CPU as a target: its scopes, what memory there is, and the atoms its backend has.

In: the facts of one machine. Out: a `Target`. The pool hands one instance of the root parallel, a
group, to one thread; what is parallel inside of it are workers that this thread runs one after the
other, and the lanes of a vector act together. Private memory is a worker's, shared memory a
group's, and what a kernel makes outside of every parallel for the instances inside is the call's.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilenest.ir import COMBINE, MOVE, EffectKind
from tilenest.layouts import AffineMap, Const, DimRef
from tilenest.machine.atoms import MOVES, Arithmetic, AtomContract, Catalogue, ValuePattern
from tilenest.machine.facts import VECTORS, Machine
from tilenest.machine.resources import ResourceClass, Synchronisation, accesses
from tilenest.machine.scopes import CPU_SCOPES, DEVICE, GROUP, VECTOR, WORKER
from tilenest.machine.target import Target

TRANSPOSE_LANES = "cpu.lanes.transpose"
PRINT = "cpu.print"
ASSERT = "cpu.assert"

_DATA = ("load", "store")
_CODE = CPU_SCOPES.names
_CACHE_LINE = 64
_ADDRESSES = 1 << 47
"""Bytes that one process can address: 64-bit processors translate this many bits, or a few more."""
_BOUNDARY = "the end of a root parallel"
_VECTORS = frozenset({VECTORS})
_ANY_KIND = "biufx"
_MERGES: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("cpu.lanes.reduce", ("add", "mul"), "iufx"),
    ("cpu.lanes.extreme", ("minimum", "maximum"), "biufx"),
    ("cpu.lanes.number", ("fmin", "fmax"), "f"),
    ("cpu.lanes.bits", ("and", "or", "xor"), "biux"),
)
"""Contracts that combine lanes: their id, functions, and the kinds of element these are for."""
LANE_REDUCTIONS = MappingProxyType({merge: name for name, merges, _ in _MERGES for merge in merges})
"""The atom that combines lanes by a function."""
_ROW, _COLUMN = DimRef(0), DimRef(1)

CPU_RESOURCES = (
    ResourceClass(
        "private",
        WORKER,
        _ADDRESSES,
        _CACHE_LINE,
        "always",
        accesses((WORKER, VECTOR), ("allocate", *_DATA)),
    ),
    ResourceClass(
        "shared",
        GROUP,
        _ADDRESSES,
        _CACHE_LINE,
        "always",
        accesses((GROUP, WORKER, VECTOR), ("allocate", *_DATA)),
    ),
    ResourceClass(
        "call",
        DEVICE,
        _ADDRESSES,
        _CACHE_LINE,
        "synchronised",
        accesses(_CODE, ("allocate", *_DATA)),
        (Synchronisation(WORKER, WORKER, _BOUNDARY),),
    ),
    ResourceClass(
        "global",
        DEVICE,
        _ADDRESSES,
        1,
        "synchronised",
        accesses(_CODE, (*_DATA, "atomic")),
        (Synchronisation(WORKER, WORKER, _BOUNDARY),),
    ),
)
"""A kernel makes nothing in the memory that arguments lie in."""
_CHOICES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "auto": ("private", "shared", "call"),
        "private": ("private",),
        "shared": ("shared", "call"),
    }
)
"""What is shared by the instances inside of the kernel itself is the call's."""


def _lane_reduction(name: str, merges: tuple[str, ...], kinds: str) -> AtomContract:
    return AtomContract(
        name,
        1,
        frozenset(COMBINE + merge for merge in merges),
        (ValuePattern("vector", kinds),),
        (ValuePattern("scalar", kinds),),
        Arithmetic("halving", "each"),
        VECTOR,
        (AffineMap(1, 0, (Const(0), DimRef(0))),),
        (AffineMap(1, 0, ()),),
        needs=_VECTORS,
    )


CPU_ATOMS = Catalogue(
    (
        AtomContract(
            TRANSPOSE_LANES,
            1,
            frozenset({MOVE}),
            (ValuePattern("square", _ANY_KIND),),
            (ValuePattern("square", _ANY_KIND),),
            MOVES,
            VECTOR,
            # Element (row, column) comes in lane `column` of register `row`, and leaves transposed.
            (AffineMap(2, 0, (_ROW, _COLUMN)),),
            (AffineMap(2, 0, (_COLUMN, _ROW)),),
            needs=_VECTORS,
        ),
        *(_lane_reduction(*row) for row in _MERGES),
        AtomContract(
            PRINT,
            1,
            frozenset({"print"}),
            (ValuePattern("values", _ANY_KIND),),
            (),
            MOVES,
            WORKER,
            effects=frozenset({EffectKind.CALL}),
            protocol="output",
            is_uniform=False,
        ),
        AtomContract(
            ASSERT,
            1,
            frozenset({"assert"}),
            (ValuePattern("scalar", "b"),),
            (),
            MOVES,
            WORKER,
            effects=frozenset({EffectKind.FAULT}),
        ),
    )
)


def cpu_target(machine: Machine) -> Target:
    """The target that kernels run on, for one machine."""
    return Target(
        "cpu",
        machine,
        CPU_SCOPES,
        CPU_RESOURCES,
        _CHOICES,
        CPU_ATOMS,
        machine.features,
        accessor=WORKER,
        arguments="global",
        boundaries=frozenset({_BOUNDARY}),
        root_scopes=(GROUP, WORKER, VECTOR, DEVICE),
        nested_scopes=(WORKER, VECTOR, GROUP, DEVICE),
    )
