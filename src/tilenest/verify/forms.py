"""Rules `FM01` to `FM03`: a module holds only what the grammar of its form allows.

In: a module. Out: faults at the first op or value that has no place in the form. The grammar is the
table of `dialects.stages`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.dialects import CANDIDATE, FORMS, LIFTED
from tilenest.ir import Fault, Rule, Subject, Variable, describe_type, parameter_of


def _operations(subject: Subject) -> Iterator[Fault]:
    form = FORMS.get(subject.module.form)
    if form is None:
        known = ", ".join(FORMS)
        yield Fault(None, f"no form is named {subject.module.form!r}", f"forms are {known}")
        return
    for op in subject.operations:
        if type(op) not in form.operations:
            yield Fault(
                op,
                f"has no place in {subject.module.form} form",
                "run the pass that lowers it before the module changes its form",
            )


def _types(subject: Subject) -> Iterator[Fault]:
    form = FORMS.get(subject.module.form)
    if form is None:
        return
    for place, value in subject.values:
        if type(value.type) not in form.types:
            yield Fault(
                place,
                f"a {describe_type(value.type)} has no place in {subject.module.form} form",
                "run the pass that replaces such values first",
                parameter_of(value),
            )


def _variables(subject: Subject) -> Iterator[Fault]:
    if subject.module.form in (CANDIDATE, LIFTED):
        return
    for op in subject.operations:
        for name, value in op.attributes.items():
            if isinstance(value, Variable):
                yield Fault(
                    op,
                    f"`{name}` is the variable {value} in {subject.module.form} form",
                    "choose a value before the module is scheduled",
                )


FORM_RULES = (
    Rule("FM01", "a form holds the ops of its grammar", _operations),
    Rule("FM02", "a form holds the types of its grammar", _types),
    Rule("FM03", "what is scheduled has no variables", _variables),
)
