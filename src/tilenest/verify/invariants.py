"""The eighteen invariants of TileIR, and the rules that hold them.

In: nothing. Out: the table that the documentation is written from, by id, and every rule of an
invariant. A rule's id is its invariant's, with a letter where several rules hold one.
"""

from __future__ import annotations

from tilenest.ir import Rule
from tilenest.records import record
from tilenest.verify.access_rules import ACCESS_RULES
from tilenest.verify.atom_rules import OPERAND_RULES
from tilenest.verify.execution_rules import PLACE_RULES
from tilenest.verify.guard_rules import GUARD_RULES
from tilenest.verify.layout_rules import DISTRIBUTION_RULES, MAPS_MEET
from tilenest.verify.memory_rules import MEMORY_CLASS_RULES
from tilenest.verify.nest_rules import NEST_RULES
from tilenest.verify.ordering_rules import ORDERING_RULES
from tilenest.verify.pipeline_rules import PIPELINE_RULES
from tilenest.verify.reduction_rules import REDUCTION_RULES
from tilenest.verify.scratch_rules import SCRATCH_RULES
from tilenest.verify.update_rules import ANCESTOR_RULES


@record
class Invariant:
    """What must hold, and why a program that breaks it means nothing or something else."""

    id: str
    title: str
    meaning: str


INVARIANTS: tuple[Invariant, ...] = (
    Invariant(
        "TN01",
        "composed maps meet in one space",
        "The codomain of a layout map is the domain of the map after it, or what it addresses: as "
        "many coordinates, of the same axes. Otherwise the composition names no element.",
    ),
    Invariant(
        "TN02",
        "children cover their domain and keep their parent",
        "The child map of a nest is defined at every active point, gives each child one parent, "
        "and no handle or coordinate of a nest is used outside it.",
    ),
    Invariant(
        "TN03",
        "execution bindings follow the target's scopes",
        "A nest bound inside another is bound to a scope that the target contains in the outer "
        "one's. Levels that share a scope fit into its capacity together and converge together.",
    ),
    Invariant(
        "TN04",
        "work belongs to a region and to cuts that exist",
        "Every operation stands in an execution region; the prefix cuts it names are cuts of the "
        "nests around it, in order.",
    ),
    Invariant(
        "TN05",
        "remaps keep the domain and factor through what is seen",
        "An accepted remap reaches every active coordinate of the old structure once, and each "
        "cut that an anchor, a frontier, an owner or a convergence rule sees has a counterpart, "
        "or an explicit rewrite that is equivalent.",
    ),
    Invariant(
        "TN06",
        "anchors come before frontiers",
        "The anchor of an operation covers every coordinate it depends on, its frontier is no "
        "shallower, it reads ancestors' data only, and its atom has the participants it needs.",
    ),
    Invariant(
        "TN07",
        "distributed values cover their domain exactly",
        "Every logical coordinate of a distributed value is held by one participant, in one "
        "place, unless replication or masking is stated.",
    ),
    Invariant(
        "TN08",
        "updates of ancestors are typed and joined",
        "A value of an ancestor that children update has patches with a footprint, leaves "
        "untouched coordinates and old snapshots as they were, and names a combiner where "
        "instances overlap.",
    ),
    Invariant(
        "TN09",
        "reductions regroup only what they may",
        "A reduction groups every contribution, has an identity, update and merge of its types, "
        "counts contributions rather than copies, and is regrouped only as its policy permits.",
    ),
    Invariant(
        "TN10",
        "orderings are total and permutations single-valued",
        "A sort or selection orders every value its type can hold, ties, padding and NaN "
        "included; the permutation it gives has one place for every active element.",
    ),
    Invariant(
        "TN11",
        "memory is of a class its target has",
        "The resource of a memory is a class of the target whose instances exist for its owner, "
        "and that its accessors may reach with the operations they perform. Where its place is "
        "decided, it is aligned and lies inside the class with all versions and padding.",
    ),
    Invariant(
        "TN12",
        "accesses resolve to one place in range",
        "Under its predicate every access names one resource instance, one slice and an address "
        "inside it; what is claimed in range is proven.",
    ),
    Invariant(
        "TN13",
        "descendants see ancestors' memory by rule",
        "Memory of an ancestor is accessed where it is visible, and a read of what another "
        "instance wrote has a synchronisation in between.",
    ),
    Invariant(
        "TN14",
        "pipeline stages are cuts and dependences respect time",
        "Stages follow each other unconditionally with names of their own; what depends on "
        "another stage is issued after it, at the stated iteration distance.",
    ),
    Invariant(
        "TN15",
        "versions that live together do not share a place",
        "The ring of versions of a buffer is at least as long as its value lives; what a loop in "
        "order updates has one version. Bufs that are held together share no byte.",
    ),
    Invariant(
        "TN16",
        "operands of atoms lie as the atom demands",
        "The layout of every operand is the one of the atom's contract, or a repartition stands "
        "in between; an atom that a schedule names is proven for the step of its nest, clause by "
        "clause.",
    ),
    Invariant(
        "TN17",
        "guards imply what is assumed",
        "Every static extent, stride or coincidence that the code relies on follows from the "
        "guards of its variant, which state as well what it needs of the machine. No access relies "
        "on more alignment than the elements of an array have.",
    ),
    Invariant(
        "TN18",
        "specialised code says what happens otherwise",
        "Every family of candidates has a fallback that is legal, or refuses the inputs it does "
        "not take.",
    ),
)

TN_RULES: tuple[Rule, ...] = tuple(
    sorted(
        (
            MAPS_MEET,
            *NEST_RULES,
            *PLACE_RULES,
            *DISTRIBUTION_RULES,
            *ANCESTOR_RULES,
            *REDUCTION_RULES,
            *ORDERING_RULES,
            *ACCESS_RULES,
            *MEMORY_CLASS_RULES,
            *SCRATCH_RULES,
            *OPERAND_RULES,
            *PIPELINE_RULES,
            *GUARD_RULES,
        ),
        key=lambda rule: rule.id,
    )
)
"""The rules of the invariants, in their order."""
