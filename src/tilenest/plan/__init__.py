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
from tilenest.plan.records import Decision, Plan
from tilenest.plan.schedules import plan_schedule

__all__ = [
    "Contraction",
    "Decision",
    "EdgePlan",
    "Epilogue",
    "Join",
    "OperandPlan",
    "PackPlan",
    "Plan",
    "contraction_of",
    "plain_load",
    "plan_edges",
    "plan_epilogue",
    "plan_join",
    "plan_packing",
    "plan_schedule",
    "register_block_of",
]
