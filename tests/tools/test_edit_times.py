"""The program that times edits makes legal ones, and all of them."""

from tilenest.ir import verify
from tools.edit_times import KINDS, Subject, median_times


def test_every_kind_of_edit_is_timed() -> None:
    for times in median_times([100, 200], edits=20):
        assert list(times) == [kind.__name__ for kind in KINDS]
        assert min(times.values()) > 0


def test_what_leaves_no_trace_is_legal() -> None:
    subject = Subject(200)
    assert verify(subject.module) == []
    count = sum(1 for _ in subject.module.walk())
    for kind in KINDS:
        if kind.__name__ in ("erasure", "attribute", "undone"):
            kind(subject)()
    assert verify(subject.module) == []
    # The copy that is erased may keep a use that its place does not see; it is gone by now.
    assert sum(1 for _ in subject.module.walk()) == count
