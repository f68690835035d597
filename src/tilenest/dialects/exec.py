"""Structured execution: functions' returns, nests, conditionals.

Every nest takes its domain as index operands `lower`, `upper`, `step` (one of each per axis; a
domain of several axes runs in lexicographic order). Body blocks get one index argument per axis,
then the carried states.
"""

from __future__ import annotations

from tilenest.ir import Operation, attribute, operand, variadic


class Return(Operation):
    """Ends a function."""

    NAME = "func.return"
    TERMINATOR = True
    values = variadic()


class Yield(Operation):
    """Ends a region, handing values to the operation that owns it."""

    NAME = "exec.yield"
    TERMINATOR = True
    values = variadic()


class Nest(Operation):
    """Common shape of the four nests."""

    lower = variadic()
    upper = variadic()
    step = variadic()

    @property
    def rank(self) -> int:
        return len(self.lower)


class Parallel(Nest):
    """Independent instances, promised by the user. Region: (indices...). No results."""

    NAME = "exec.parallel"
    scope = attribute(str, default="auto")


class Serial(Nest):
    """Ordered instances carrying states. Region: (indices..., states...) -> states."""

    NAME = "exec.serial"
    initial = variadic()


class Reduce(Nest):
    """Combines contributions into states. Region: (indices..., states...) -> next states.

    `policy` is one of unordered_tree, ordered_tree, fold_left, fold_right (which visits the domain
    in reverse).
    """

    NAME = "exec.reduce"
    initial = variadic()
    policy = attribute(str, default="unordered_tree")


class Pipeline(Nest):
    """Ordered instances that may overlap, cut into stage regions.

    Region of stage s: (indices..., states..., the values yielded by stages 0..s-1 in order). The
    last stage yields the next states. `window` is the number of iterations in flight (0 = open).
    """

    NAME = "exec.pipeline"
    initial = variadic()
    window = attribute(int, default=0)
    interval = attribute(int, default=1)
    stage_names = attribute(tuple, default=())
    """one str or None per stage"""


class If(Operation):
    """Two regions without arguments that yield the results."""

    NAME = "exec.if"
    condition = operand()
