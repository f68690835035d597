"""(IR, Machine) -> frozen answers with reasons; passes read them and edit, nothing here does."""

from tilenest.plan.edges import EdgePlan, plan_edges
from tilenest.plan.joins import Epilogue, Join, plan_epilogue, plan_join
from tilenest.plan.packing import (
    Contraction,
    OperandPlan,
    PackPlan,
    contraction_of,
    plain_load,
    plan_packing,
    register_block_of,
)
from tilenest.plan.placement import PlacementPlan, plan_placement
from tilenest.plan.schedules import plan_schedule
from tilenest.plan.scratch import plan_scratch
from tilenest.plan.sharing import SharedBuf, plan_sharing

__all__ = [
    "Contraction",
    "EdgePlan",
    "Epilogue",
    "Join",
    "OperandPlan",
    "PackPlan",
    "PlacementPlan",
    "SharedBuf",
    "contraction_of",
    "plain_load",
    "plan_edges",
    "plan_epilogue",
    "plan_join",
    "plan_packing",
    "plan_placement",
    "plan_schedule",
    "plan_scratch",
    "plan_sharing",
    "register_block_of",
]
