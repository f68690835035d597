"""Rule TN12: accesses that claim to stay in range do, and storage of the compiler is never left.

In: the obligations of functions in lifted or Scheduled form. Out: faults at accesses whose claim is
not proven: UNKNOWN is refused like a disproof. An access of a buf without a claim has to be inside,
or to say what is read outside.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilenest.analysis import LayoutFacts
from tilenest.dialects import MapReducePost
from tilenest.ir import Fault, Rule, Subject


def _in_range(subject: Subject) -> Iterator[Fault]:
    # Only work makes claims, and most modules in other forms have none.
    functions = dict.fromkeys(work.parent_function for work in subject.of(MapReducePost))
    for function in functions:
        assert function is not None, "work stands in a function"
        for relied in subject.analyses.get(LayoutFacts, function).obligations:
            if not relied.answer.is_proven:
                what = f"{relied.touch.group} {relied.touch.position}"
                yield Fault(
                    relied.operation,
                    f"{what} is not proven to stay in axis {relied.axis}: {relied.answer}",
                    'clip the work, or let it read a fill and drop writes there (bounds = "zero")',
                )


ACCESS_RULES = (Rule("TN12", "accesses claimed in range are", _in_range),)
