"""Asking rules about a module: all violations as data, or an error that shows the first.

In: a module (or the subject made of one, so that several askings list its contents once) and rules,
by default the structural ones. Out: one `Diagnostic` for each violated rule and place. Rooms above
hand in rules of their own; a rule that is not handed in is not asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilenest.errors import ShapeError, VerifyError
from tilenest.ir.core import Operation
from tilenest.ir.module import Module
from tilenest.ir.printer import print_module_lines
from tilenest.ir.rules import Diagnostic, Fault, Rule, Subject
from tilenest.ir.structure_rules import STRUCTURE_RULES

_CONTEXT = 3


def verify(module: Module | Subject, rules: Sequence[Rule] = STRUCTURE_RULES) -> list[Diagnostic]:
    """Every violation of the rules, in their order."""
    subject = module if isinstance(module, Subject) else Subject(module)
    found: list[Diagnostic] = []
    for rule in rules:
        faults = _ask(rule, subject)
        for fault in faults:
            place = fault.operation or fault.function or subject.module
            found.append(
                Diagnostic(rule.id, fault.operation, place.location, fault.message, fault.remedy)
            )
        if faults and rule.is_foundation:
            break
    return found


def _ask(rule: Rule, subject: Subject) -> list[Fault]:
    """What a rule finds. Where the numbers are beyond what any layout has, its question has no
    answer, and that is a fault as well."""
    faults: list[Fault] = []
    try:
        faults.extend(rule.check(subject))
    except ShapeError as error:
        remedy = error.remedy or "use smaller numbers"
        faults.append(Fault(None, f"the rule has no answer: {error.message}", remedy))
    return faults


def check(module: Module | Subject, rules: Sequence[Rule] = STRUCTURE_RULES) -> None:
    """Raise a `VerifyError` that shows the first violation inside the text around it."""
    subject = module if isinstance(module, Subject) else Subject(module)
    found = verify(subject, rules)
    if not found:
        return
    first = found[0]
    titles = {rule.id: rule.title for rule in rules}
    parts = [str(first), f"rule {first.rule}: {titles[first.rule]}"]
    is_readable = not any(rule.is_foundation and rule.id == first.rule for rule in rules)
    if is_readable and first.operation is not None:
        parts += _excerpt(subject.module, first.operation)
    parts += [f"also: {diagnostic}" for diagnostic in found[1:4]]
    if len(found) > 4:
        parts.append(f"and {len(found) - 4} more")
    raise VerifyError("\n".join(parts), first.remedy, first.location)


def _excerpt(module: Module, operation: Operation) -> list[str]:
    lines, line_of = print_module_lines(module)
    place = line_of.get(operation)
    if place is None:
        return []
    start = max(place - _CONTEXT, 0)
    shown = enumerate(lines[start : place + _CONTEXT + 1], start=start)
    return [f"{'>' if number == place else ' '} {number + 1:4} | {line}" for number, line in shown]
