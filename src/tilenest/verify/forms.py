"""Rules `FM01` and `FM02`: a module holds only what the grammar of its form allows.

In: a module. Out: faults at the first op or value that has no place in the form. The grammar is the
table of `dialects.stages`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.dialects import FORMS
from tilenest.ir import Fault, Operation, Rule, Subject, Value, describe_type


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
    for place, value in _values(subject):
        if type(value.type) not in form.types:
            yield Fault(
                place,
                f"a {describe_type(value.type)} has no place in {subject.module.form} form",
                "run the pass that replaces such values first",
            )


def _values(subject: Subject) -> Iterator[tuple[Operation | None, Value]]:
    for function in subject.module.functions:
        for argument in function.arguments:
            yield None, argument
    for op in subject.operations:
        for result in op.results:
            yield op, result
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    yield op, argument


FORM_RULES = (
    Rule("FM01", "a form holds the ops of its grammar", _operations),
    Rule("FM02", "a form holds the types of its grammar", _types),
)
