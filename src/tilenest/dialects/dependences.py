"""What ties the stages of a pipeline to each other, and when they run.

In: two stages and what goes between them; numbers that a schedule came to. Out: the records that
`exec.pipeline` carries, and the loop it becomes. A schedule may overlap iterations as far as the
stated dependences let it.
"""

from __future__ import annotations

from tilenest.records import record

DEPENDENCE_KINDS = ("value", "effect")


@record
class Dependence:
    """Stage `consumer` of an iteration comes after stage `producer` of the iteration `distance`
    before it: for a value that it yields, or for an effect on memory that both touch."""

    producer: int
    consumer: int
    kind: str
    distance: int = 0
    scope: str = "auto"
    """the units of which each waits for its own instances alone; "auto" for all that run a stage"""


@record
class PipelineSchedule:
    """Stage s of iteration i runs from `i * interval + starts[s]` to `i * interval + ends[s]`.

    It keeps `dependences`, all there are. What stages hand on has `versions`: first each carried
    state, then each value that a stage yields to later ones. `names` are those of the stages.

    A loop that was a pipeline runs its stages in order and hands nothing on. Its `versions` are of
    the bufs made before it that its iterations read and write, as they first touch them: each is
    updated in place and has one.
    """

    interval: int
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    dependences: tuple[Dependence, ...] = ()
    versions: tuple[int, ...] = ()
    names: tuple[str | None, ...] = ()

    @property
    def span(self) -> int:
        """From the first start of an iteration to its last end."""
        return max(self.ends) - min(self.starts)

    @property
    def in_flight(self) -> int:
        """The most iterations that have begun and not ended."""
        return max(1, -(-self.span // self.interval))
