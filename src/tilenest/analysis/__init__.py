"""Questions about the IR with frozen answers; nothing here edits a program."""

from tilenest.analysis.coincidence import CoincidenceHazard, coincidence_hazard
from tilenest.analysis.effects import (
    Effects,
    coincide,
    effects_of,
    is_pure,
    is_written_between,
    may_overlap,
)
from tilenest.analysis.extent_bounds import counts_to_extent
from tilenest.analysis.index_values import (
    access_formulas,
    formula_of,
    is_same_place,
    range_of,
    ranges_of,
)
from tilenest.analysis.inside import is_inside
from tilenest.analysis.lifetimes import Lifetimes
from tilenest.analysis.memory_steps import offset_step
from tilenest.analysis.merges import (
    MERGES,
    TREE_POLICIES,
    known_merges,
    unmerged_reductions,
)
from tilenest.analysis.output_clips import OutputClip, output_clips
from tilenest.analysis.structure import (
    ancestor_in,
    constant_of,
    is_defined_above,
    is_splat,
    trip_counts,
)

__all__ = [
    "MERGES",
    "TREE_POLICIES",
    "CoincidenceHazard",
    "Effects",
    "Lifetimes",
    "OutputClip",
    "access_formulas",
    "ancestor_in",
    "coincide",
    "coincidence_hazard",
    "constant_of",
    "counts_to_extent",
    "effects_of",
    "formula_of",
    "is_defined_above",
    "is_inside",
    "is_pure",
    "is_same_place",
    "is_splat",
    "is_written_between",
    "known_merges",
    "may_overlap",
    "offset_step",
    "output_clips",
    "range_of",
    "ranges_of",
    "trip_counts",
    "unmerged_reductions",
]
