"""The target that a module is judged for, and the scopes its nests may be bound to.

In: the subject of a verification. Out: its target; a CPU where none was handed in. What a module in
Candidate form means has nothing to do with one, but it may name what only its target has.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilenest.dialects import CANDIDATE
from tilenest.execution import TargetScopes
from tilenest.ir import Subject
from tilenest.machine import AVX512, LANGUAGE_SCOPES, Target, cpu_target

_USUAL = cpu_target(AVX512)


def target_of(subject: Subject) -> Target:
    """What the rules hold the module against."""
    return subject.context if isinstance(subject.context, Target) else _USUAL


def scopes_of(subject: Subject, named: Iterable[str]) -> TargetScopes:
    """The scopes that judge nests which name these: the target's once a module is planned; before,
    the language's, or those of the target that was handed in where the language lacks one."""
    if subject.module.form == CANDIDATE:
        is_known = set(named) <= set(LANGUAGE_SCOPES.names)
        if is_known or not isinstance(subject.context, Target):
            return LANGUAGE_SCOPES
    return target_of(subject).scopes
