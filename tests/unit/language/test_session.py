"""Where operations may be written and which values may be used there."""

from __future__ import annotations

import pytest

from tests.unit.language.building import find, open_session
from tilenest import language as tn
from tilenest.dialects import Map, Serial
from tilenest.errors import CaptureError, ScopeError, SourceLocation
from tilenest.ir import INDEX, Block, Region, float32, index


def test_outside_a_kernel_is_a_capture_error() -> None:
    with pytest.raises(CaptureError, match="outside a kernel") as caught:
        tn.zeros(4, float32)
    assert "@tn.kernel" in str(caught.value)


def test_the_session_ends_with_its_context() -> None:
    with open_session() as (session, _):
        assert tn.current_session() is session
    with pytest.raises(CaptureError):
        tn.current_session()


def test_operations_get_the_current_location() -> None:
    place = SourceLocation("k.py", 3, 5, 9, "kernel", "    x = y")
    with open_session() as (session, _):
        session.builder.location = place
        tn.zeros(4, float32)
        (made,) = find(session, Map)
        assert made.location is place
        assert all(op.location is place for op in made.walk())


def open_serial(session: tn.Session) -> Block:
    """An open region over [0, 4)."""
    body = Block([INDEX])
    bound = session.value_of(tn.scalar(4, index))
    session.insert(Serial(regions=[Region([body])], lower=[bound], upper=[bound], step=[bound]))
    return body


def test_outer_values_are_visible_inside_a_region() -> None:
    with open_session() as (session, _):
        outer = tn.scalar(1, index)
        with session.builder.at_end(open_serial(session)):
            assert session.value_of(outer) is outer.value


def test_a_value_of_an_ended_region_is_a_scope_error() -> None:
    with open_session() as (session, _):
        with session.builder.at_end(open_serial(session)):
            inner = tn.full(4, 1.0, float32)
        with pytest.raises(ScopeError, match="after the region") as caught:
            inner + 1.0
        assert "defined before the region" in str(caught.value)


def test_a_value_of_another_session_is_a_scope_error() -> None:
    with open_session():
        foreign = tn.scalar(1, index)
    with open_session(), pytest.raises(ScopeError, match="another kernel call"):
        foreign + 1


def test_marked_functions_are_recognised() -> None:
    @tn.function
    def marked() -> None: ...

    assert tn.is_tile_function(marked)
    assert not tn.is_tile_function(open_serial)


def test_stage_needs_a_capture() -> None:
    with open_session() as (session, _):
        handle = tn.NestHandle(session, tn.root().pipeline(4), [tn.scalar(0, index)])
        with pytest.raises(CaptureError, match="stage"):
            handle.stage("load")
