"""All rules together: structure, what each op demands, the grammar of the form, the invariants.

In: a module, and the target it is for. Out: nothing, or a `VerifyError` that shows the first
violation in the text. Rules assume what earlier steps hold (that maps meet is such a step, that a
schedule covers its domain another), so they are asked only when it does.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.ir import STRUCTURE_RULES, Diagnostic, Module, Rule, Subject, check, verify
from tilenest.machine import Target
from tilenest.verify.arrays import ARRAY_RULES
from tilenest.verify.atomics import ATOMIC_RULES
from tilenest.verify.atoms import ATOM_RULES
from tilenest.verify.control import CONTROL_RULES
from tilenest.verify.execution import EXECUTION_RULES
from tilenest.verify.forms import FORM_RULES
from tilenest.verify.guard_rules import ENTRY_RULES
from tilenest.verify.invariants import TN_RULES
from tilenest.verify.layout_rules import MAPS_MEET
from tilenest.verify.loops import LOOP_RULES
from tilenest.verify.memory import MEMORY_RULES
from tilenest.verify.pipelines import PIPELINE_RULES
from tilenest.verify.scalars import SCALAR_RULES
from tilenest.verify.schedules import SCHEDULE_RULES
from tilenest.verify.tensors import TENSOR_RULES
from tilenest.verify.tiles import TILE_RULES
from tilenest.verify.updates import UPDATE_RULES
from tilenest.verify.views import VIEW_RULES

OP_RULES = (
    *EXECUTION_RULES,
    *SCALAR_RULES,
    *TILE_RULES,
    *TENSOR_RULES,
    *LOOP_RULES,
    *SCHEDULE_RULES,
    *VIEW_RULES,
    *MEMORY_RULES,
    *ATOMIC_RULES,
    *CONTROL_RULES,
    *UPDATE_RULES,
    *PIPELINE_RULES,
    *ARRAY_RULES,
    *ATOM_RULES,
    *ENTRY_RULES,
    *FORM_RULES,
)

RULE_STEPS = (
    STRUCTURE_RULES,
    (MAPS_MEET,),
    tuple(rule for rule in OP_RULES if rule not in SCHEDULE_RULES),
    SCHEDULE_RULES,
    tuple(rule for rule in TN_RULES if rule is not MAPS_MEET),
)
"""The rules in steps, each asked where the ones before it find nothing."""


def verify_module(module: Module, target: Target | None = None) -> None:
    """Raise a `VerifyError` when the module breaks a rule."""
    subject = Subject(module, target)
    for rules in RULE_STEPS:
        check(subject, rules)


def diagnose_module(
    module: Module,
    steps: Sequence[Sequence[Rule]] = RULE_STEPS,
    target: Target | None = None,
) -> list[Diagnostic]:
    """Every violation of the first step that is not passed."""
    subject = Subject(module, target)
    return next((found for rules in steps if (found := verify(subject, rules))), [])
