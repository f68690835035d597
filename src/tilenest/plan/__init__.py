"""(IR, Machine) -> frozen answers with reasons; passes read them and edit, nothing here does."""

from tilenest.plan.anchors import plan_anchors
from tilenest.plan.edges import EdgePlan, plan_edges
from tilenest.plan.hoisting import HoistPlan, plan_hoists
from tilenest.plan.joins import Epilogue, Join, plan_epilogue, plan_join
from tilenest.plan.levels import LevelPlan, plan_levels, stays, subject_of
from tilenest.plan.packing import (
    Contraction,
    OperandPlan,
    PackPlan,
    contraction_of,
    plain_load,
    plan_packing,
    register_block_of,
)
from tilenest.plan.placement import PlacementPlan, Placements, choose_memory, plan_scopes
from tilenest.plan.schedules import NestPlan, NestPlans, plan_schedule
from tilenest.plan.scratch import plan_scratch
from tilenest.plan.sharing import SharedBuf, plan_sharing

__all__ = [
    "Contraction",
    "EdgePlan",
    "Epilogue",
    "HoistPlan",
    "Join",
    "LevelPlan",
    "NestPlan",
    "NestPlans",
    "OperandPlan",
    "PackPlan",
    "PlacementPlan",
    "Placements",
    "SharedBuf",
    "choose_memory",
    "contraction_of",
    "plain_load",
    "plan_anchors",
    "plan_edges",
    "plan_epilogue",
    "plan_hoists",
    "plan_join",
    "plan_levels",
    "plan_packing",
    "plan_schedule",
    "plan_scopes",
    "plan_scratch",
    "plan_sharing",
    "register_block_of",
    "stays",
    "subject_of",
]
