"""The target that a module is judged for.

In: the subject of a verification. Out: its target; a CPU where none was handed in. What a module in
Candidate form means has nothing to do with one.
"""

from __future__ import annotations

from tilenest.ir import Subject
from tilenest.machine import AVX512, Target, cpu_target

_USUAL = cpu_target(AVX512)


def target_of(subject: Subject) -> Target:
    """What the rules hold the module against."""
    return subject.context if isinstance(subject.context, Target) else _USUAL
