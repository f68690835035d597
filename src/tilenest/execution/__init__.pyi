from tilenest.execution.bindings import Binding, bind, check_bindings
from tilenest.execution.distribution import (
    Distribution,
    Repartition,
    are_compatible,
    check_distribution,
    repartition,
)
from tilenest.execution.legality import Reanchor, RemapProof, check, holds_at, judge
from tilenest.execution.levels import (
    MOST_INSTANCES,
    Definition,
    ExecLevel,
    ExecStructure,
    Observer,
    ObserverKind,
    PrefixCut,
)
from tilenest.execution.memory_claims import (
    Claim,
    check_allocation,
    check_apart,
    check_equation,
    check_instances,
    failures,
)
from tilenest.execution.memory_equation import (
    AccessRight,
    Allocation,
    MemoryEquation,
    Physical,
)
from tilenest.execution.proofs import Fact, first_failure
from tilenest.execution.rearrange import (
    coalesce,
    fuse,
    insert_unit,
    permute,
    remove_unit,
    reshape,
    split,
    unite,
)
from tilenest.execution.remap import ExecRemap, compose, identity
from tilenest.execution.scopes import TargetScope, TargetScopes

__all__ = [
    "MOST_INSTANCES",
    "AccessRight",
    "Allocation",
    "Binding",
    "Claim",
    "Definition",
    "Distribution",
    "ExecLevel",
    "ExecRemap",
    "ExecStructure",
    "Fact",
    "MemoryEquation",
    "Observer",
    "ObserverKind",
    "Physical",
    "PrefixCut",
    "Reanchor",
    "RemapProof",
    "Repartition",
    "TargetScope",
    "TargetScopes",
    "are_compatible",
    "bind",
    "check",
    "check_allocation",
    "check_apart",
    "check_bindings",
    "check_distribution",
    "check_equation",
    "check_instances",
    "coalesce",
    "compose",
    "failures",
    "first_failure",
    "fuse",
    "holds_at",
    "identity",
    "insert_unit",
    "judge",
    "permute",
    "remove_unit",
    "repartition",
    "reshape",
    "split",
    "unite",
]
