"""What a program leaves open: an attribute whose value is a variable until somebody chooses.

In: a name. Out: the value `?name` of an attribute that its operation declares open. The same name
in several places is one choice to make. Whoever asks the operation for the attribute gets the
declared default, which stands for "not chosen"; `op.attributes` holds the variable itself.
"""

from __future__ import annotations

from tilenest.records import record


@record
class Variable:
    """A choice that is still to be made."""

    name: str

    def __str__(self) -> str:
        return f"?{self.name}"
