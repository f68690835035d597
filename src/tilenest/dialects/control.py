"""Branches: terminators that go on with another block of their region.

In: values for the arguments of that block. A region of blocks is entered at its first block and
left by whatever terminator is no branch: a yield or a return. Bodies of functions, nests and
conditionals may be such regions in Candidate form, until `structure_branches` writes them with
`exec.if`. A scalar region is one block.
"""

from __future__ import annotations

from tilenest.ir import Operation, OwnEffects, operand, successor


class BlockBranch(Operation):
    """Go on with the block `target`."""

    NAME = "cf.branch"
    FORMS = ("candidate",)
    TERMINATOR = True
    target = successor()

    def effects(self) -> OwnEffects:
        return ()


class CondBranch(Operation):
    """Go on with the block `then` where the condition is true, and with `otherwise` elsewhere."""

    NAME = "cf.cond_branch"
    FORMS = ("candidate",)
    TERMINATOR = True
    condition = operand()
    then = successor()
    otherwise = successor()

    def effects(self) -> OwnEffects:
        return ()
