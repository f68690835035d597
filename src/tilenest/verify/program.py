"""All rules together: the structure of the IR, what each op demands, the grammar of the form.

In: a module. Out: nothing, or a `VerifyError` that shows the first violation in the text. Rules
about ops assume the structure is sound, so they are asked only when it is.
"""

from __future__ import annotations

from tilenest.ir import STRUCTURE_RULES, Diagnostic, Module, check, verify
from tilenest.verify.execution import EXECUTION_RULES
from tilenest.verify.forms import FORM_RULES
from tilenest.verify.loops import LOOP_RULES
from tilenest.verify.scalars import SCALAR_RULES
from tilenest.verify.schedules import SCHEDULE_RULES
from tilenest.verify.tensors import TENSOR_RULES
from tilenest.verify.tiles import TILE_RULES

OP_RULES = (
    *EXECUTION_RULES,
    *SCALAR_RULES,
    *TILE_RULES,
    *TENSOR_RULES,
    *LOOP_RULES,
    *SCHEDULE_RULES,
    *FORM_RULES,
)


def verify_module(module: Module) -> None:
    """Raise a `VerifyError` when the module breaks a rule."""
    check(module, STRUCTURE_RULES)
    check(module, OP_RULES)


def diagnose_module(module: Module) -> list[Diagnostic]:
    """Every violation."""
    return verify(module, STRUCTURE_RULES) or verify(module, OP_RULES)
