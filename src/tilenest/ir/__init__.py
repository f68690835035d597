"""IR core: modules, functions, regions, blocks, operations, values, uses, types.

Knows no op by name. Dialects declare op classes with the fields of `fields.py`; printing, parsing,
cloning and structural verification derive from the declaration.
"""

from functools import cache
from types import ModuleType

from tilenest.ir.builder import Builder
from tilenest.ir.clone import ValueMap, clone_module, clone_operation, clone_region, inline_block
from tilenest.ir.core import (
    Block,
    BlockArgument,
    Function,
    Operation,
    OpResult,
    Region,
    Use,
    Value,
    operand,
    optional,
    variadic,
)
from tilenest.ir.fields import OpSpec, attribute
from tilenest.ir.lists import LinkedList
from tilenest.ir.module import Module
from tilenest.ir.printer import print_module
from tilenest.ir.registry import Registry
from tilenest.ir.rewriter import Rewriter
from tilenest.ir.rules import Diagnostic, Fault, Rule, Subject
from tilenest.ir.spelling import describe_type
from tilenest.ir.structure_rules import STRUCTURE_RULES
from tilenest.ir.types import (
    BOOL,
    DTYPE_BY_TEXT,
    DTYPES,
    INDEX,
    POINTER,
    BufType,
    DType,
    PointerType,
    ScalarType,
    TileType,
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
from tilenest.ir.verifier import check, verify


def parse_module(text: str, registry: Registry, *, file: str = "<text>") -> Module:
    """Read the text of one module; `file` is what errors call it."""
    module: Module = _import_parser().parse_module(text, registry, file=file)
    return module


@cache
def _import_parser() -> ModuleType:
    """The reader of IR text, which calling a kernel does without."""
    from tilenest.ir import parser

    return parser


__all__ = [
    "BOOL",
    "DTYPES",
    "DTYPE_BY_TEXT",
    "INDEX",
    "POINTER",
    "STRUCTURE_RULES",
    "Block",
    "BlockArgument",
    "BufType",
    "Builder",
    "DType",
    "Diagnostic",
    "Fault",
    "Function",
    "LinkedList",
    "Module",
    "OpResult",
    "OpSpec",
    "Operation",
    "PointerType",
    "Region",
    "Registry",
    "Rewriter",
    "Rule",
    "ScalarType",
    "Subject",
    "TileType",
    "Type",
    "Use",
    "Value",
    "ValueMap",
    "VectorType",
    "ViewType",
    "attribute",
    "bfloat16",
    "bool_",
    "check",
    "clone_module",
    "clone_operation",
    "clone_region",
    "describe_type",
    "element_dtype",
    "float16",
    "float32",
    "float64",
    "index",
    "inline_block",
    "int8",
    "int16",
    "int32",
    "int64",
    "operand",
    "optional",
    "parse_module",
    "print_module",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "variadic",
    "verify",
]
