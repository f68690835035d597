"""A partial map as the engines see it: constraints on a domain, and one expression a result.

In: a space, constraints and index expressions over it. Out: one frozen record. Every layout map
that has expressions becomes one (or several, for a piecewise map), and an engine that cannot read
an expression says so by answering None.
"""

from __future__ import annotations

from tilenest.layouts.index_expr import IndexExpr
from tilenest.layouts.spaces import IndexSet, Space
from tilenest.records import record


@record
class Formula:
    """On `domain`, the point x goes to `results(x)`; `codomain` is where results should lie.

    `DimRef(i)` is coordinate i of the domain; `Sym(i)` is `symbols[i]`, which holds the run-time
    extents of domain and codomain, and whatever else the expressions use. In the constraints of the
    domain, `Sym(i)` is `domain.symbols[i]`. The symbols in `extents` are extents of a space that a
    composition went through, and so never negative, as those of domain and codomain are.

    What engines answer about a tuple of formulas, the pieces of one map with disjoint domains:
    it is *defined* at the points of a piece's domain where every result fits signed 64 bits.
    *Total*: defined at every point of the domain's space. *Bounded*: where it is defined, the
    results lie in the codomain. *Injective*: no two different points where it is defined meet.
    *Covers* a set: every point of the set is a result; *surjective*: it covers the codomain.
    *Equal*: defined at the same points, with equal results there. *Disjoint*: two maps into one
    space share no result. Witnesses: one point of the domain for total, bounded and equal; two
    for injective; one of each domain for disjoint; one of the codomain for covers and
    surjective.
    """

    domain: IndexSet
    codomain: Space
    results: tuple[IndexExpr, ...]
    symbols: tuple[str, ...] = ()
    extents: tuple[str, ...] = ()
