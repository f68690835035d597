"""The scopes that programs and targets name, and which of them contain which.

In: nothing. Out: the scopes of the language, which contain one another as most machines have them,
and those of the CPU. Units of a device and groups go their own ways; what is inside of a group can
wait for each other. A target refuses what it lacks. Whoever compares scopes asks for containment,
whoever needs one for a nest that names none takes the best that fits.
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
NESTS = (OPEN_SCOPE, *LANGUAGE_SCOPES.names)
"""What a nest may say of its scope."""


def preferred_scopes(scopes: TargetScopes, *, is_outermost: bool) -> tuple[str, ...]:
    """Scopes for a nest that names none, the best first: what the whole machine holds shares out
    the outermost nest, and what is in a part of it those inside; wider ones come last."""
    widest_first = scopes.outside_in
    first = 1 if is_outermost else 2
    return widest_first[first:] + widest_first[:first][::-1]
