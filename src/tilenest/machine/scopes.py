"""The scopes that programs and targets name, and which of them contain which.

In: nothing. Out: the scopes of the language, which contain one another as most machines have them,
and those of the CPU. Units of a device and groups go their own ways; what is inside of a group can
wait for each other. A target refuses what it lacks, and may have scopes of its own. Whoever
compares scopes asks for containment; what a nest that names none gets is the target's choice.
"""

from __future__ import annotations

from tilenest.execution import TargetScope, TargetScopes

OPEN_SCOPE = "auto"
"""What a nest says that leaves its scope to the plan."""
DEVICE = "device"
GROUP = "group"
SUBGROUP = "subgroup"
WORKER = "worker"
VECTOR = "vector"

LANGUAGE_SCOPES = TargetScopes(
    (
        TargetScope(DEVICE),
        TargetScope(GROUP, (DEVICE,)),
        TargetScope(SUBGROUP, (GROUP,), is_convergent=True),
        TargetScope(WORKER, (SUBGROUP,), is_convergent=True),
        TargetScope(VECTOR, (WORKER,), is_convergent=True),
    )
)
CPU_SCOPES = TargetScopes(
    (
        TargetScope(DEVICE),
        TargetScope(GROUP, (DEVICE,)),
        TargetScope(WORKER, (GROUP,)),
        TargetScope(VECTOR, (WORKER,), is_convergent=True),
    )
)
