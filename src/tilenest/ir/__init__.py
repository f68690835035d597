"""IR core: modules, functions, regions, blocks, operations, values, uses, types.

Knows no op by name. Dialects declare op classes with the fields of `fields.py`; printing, parsing,
cloning and structural verification derive from the declaration.
"""

from functools import cache
from types import ModuleType

from tilenest.errors import ParseError
from tilenest.ir.analyses import Analysis, AnalysisManager, Asker, On, fresh
from tilenest.ir.builder import Builder
from tilenest.ir.clone import (
    ValueMap,
    clone_function,
    clone_module,
    clone_operation,
    clone_region,
    inline_block,
)
from tilenest.ir.contents import module_of
from tilenest.ir.core import (
    Block,
    BlockArgument,
    Edge,
    Function,
    Operation,
    OpResult,
    OwnAccesses,
    OwnEffects,
    Region,
    Use,
    Value,
)
from tilenest.ir.declarations import operand, optional, successor, variadic
from tilenest.ir.dominators import DominatorTree, block_dominators, dominators, next_blocks
from tilenest.ir.edits import Edit, EditKind
from tilenest.ir.fields import OpSpec, Successor, attribute, open_attribute
from tilenest.ir.interfaces import (
    COMBINE,
    MOVE,
    AtomRequest,
    Carry,
    Effect,
    EffectKind,
    Induction,
    Iteration,
    IterationDim,
    MapUse,
    RegionUse,
    Touch,
)
from tilenest.ir.lists import LinkedList
from tilenest.ir.locations import fuse_locations
from tilenest.ir.module import Module
from tilenest.ir.printer import names_in_text, print_module
from tilenest.ir.registry import Registry
from tilenest.ir.rewriter import Rewriter
from tilenest.ir.rules import Diagnostic, Fault, Rule, Subject, parameter_of
from tilenest.ir.spelling import describe_attribute, describe_type, describe_types
from tilenest.ir.structure_rules import STRUCTURE_RULES
from tilenest.ir.transactions import Transaction
from tilenest.ir.types import (
    BOOL,
    DTYPE_BY_TEXT,
    DTYPES,
    INDEX,
    LARGEST_EXTENT,
    MOST_LANES,
    POINTER,
    STATE,
    TOKEN,
    ArrayType,
    BufType,
    DType,
    MemoryType,
    PointerType,
    ScalarType,
    StateType,
    TileType,
    TokenType,
    TupleType,
    Type,
    VectorType,
    ViewType,
    bfloat16,
    bool_,
    element_dtype,
    float16,
    float32,
    float64,
    index,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from tilenest.ir.variables import Variable
from tilenest.ir.verifier import check, verify

MOST_CHARACTERS = 1 << 24
"""How long a text may be; a module of a hundred thousand operations takes half of it."""


def parse_module(text: str, registry: Registry, *, file: str = "<text>") -> Module:
    """Read the text of one module; `file` is what errors call it."""
    if len(text) > MOST_CHARACTERS:
        raise ParseError(
            f"{file} has more than the {MOST_CHARACTERS} characters that a text may have",
            "cut the program into several modules",
        )
    module: Module = _import_parser().parse_module(text, registry, file=file)
    return module


@cache
def _import_parser() -> ModuleType:
    """The reader of IR text, which calling a kernel does without."""
    from tilenest.ir import parser

    return parser


__all__ = [
    "BOOL",
    "COMBINE",
    "DTYPES",
    "DTYPE_BY_TEXT",
    "INDEX",
    "LARGEST_EXTENT",
    "MOST_CHARACTERS",
    "MOST_LANES",
    "MOVE",
    "POINTER",
    "STATE",
    "STRUCTURE_RULES",
    "TOKEN",
    "Analysis",
    "AnalysisManager",
    "ArrayType",
    "Asker",
    "AtomRequest",
    "Block",
    "BlockArgument",
    "BufType",
    "Builder",
    "Carry",
    "DType",
    "Diagnostic",
    "DominatorTree",
    "Edge",
    "Edit",
    "EditKind",
    "Effect",
    "EffectKind",
    "Fault",
    "Function",
    "Induction",
    "Iteration",
    "IterationDim",
    "LinkedList",
    "MapUse",
    "MemoryType",
    "Module",
    "On",
    "OpResult",
    "OpSpec",
    "Operation",
    "OwnAccesses",
    "OwnEffects",
    "PointerType",
    "Region",
    "RegionUse",
    "Registry",
    "Rewriter",
    "Rule",
    "ScalarType",
    "StateType",
    "Subject",
    "Successor",
    "TileType",
    "TokenType",
    "Touch",
    "Transaction",
    "TupleType",
    "Type",
    "Use",
    "Value",
    "ValueMap",
    "Variable",
    "VectorType",
    "ViewType",
    "attribute",
    "bfloat16",
    "block_dominators",
    "bool_",
    "check",
    "clone_function",
    "clone_module",
    "clone_operation",
    "clone_region",
    "describe_attribute",
    "describe_type",
    "describe_types",
    "dominators",
    "element_dtype",
    "float16",
    "float32",
    "float64",
    "fresh",
    "fuse_locations",
    "index",
    "inline_block",
    "int8",
    "int16",
    "int32",
    "int64",
    "module_of",
    "names_in_text",
    "next_blocks",
    "open_attribute",
    "operand",
    "optional",
    "parameter_of",
    "parse_module",
    "print_module",
    "successor",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "variadic",
    "verify",
]
