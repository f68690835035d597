"""Records behave as frozen dataclasses with slots do."""

import copy
import pickle
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from tilenest.records import REQUIRED, fields_of, is_record, record, replace


@record
class Point:
    """A point."""

    x: int
    y: int = 0
    kind: ClassVar[str] = "point"

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


@record
class Named(Point):
    name: str = "p"


@record(eq=False)
class Token:
    text: str


@record
class Close:
    value: float

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Close) and abs(self.value - other.value) < 1

    def __hash__(self) -> int:
        return 0


@record
class Nothing:
    """No fields."""


@dataclass(frozen=True, slots=True)
class Reference:
    x: int
    y: int = 0


def test_construction_takes_positions_names_and_defaults() -> None:
    assert (Point(1).x, Point(1).y) == (1, 0)
    assert Point(y=3, x=2) == Point(2, 3)
    arguments: list[dict[str, Any]] = [{}, {"x": 1, "z": 2}]
    for given in arguments:
        for cls in (Point, Reference):
            with pytest.raises(TypeError, match="argument"):
                cls(**given)
    with pytest.raises(ValueError, match="negative"):
        Point(-1)


def test_fields_cannot_change_and_none_can_be_added() -> None:
    point: Any = Point(1)
    for name in ("x", "z"):
        with pytest.raises(AttributeError, match=f"'{name}' cannot change"):
            setattr(point, name, 2)
    with pytest.raises(AttributeError, match="frozen"):
        del point.x
    assert not hasattr(point, "__dict__")


def test_equality_is_by_value_and_class() -> None:
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(2, 1)
    values: object = (1, 2)
    assert Point(1, 2) != values
    assert Point(1) != Named(1)
    assert hash(Point(1, 2)) == hash(Point(1, 2))
    assert {Point(1), Point(1, 0)} == {Point(1)}
    assert Nothing() == Nothing()
    assert hash(Nothing()) == hash(Nothing())


def test_a_class_may_define_equality_itself() -> None:
    assert Token("a") != Token("a")
    assert Close(1.0) == Close(1.5)
    assert hash(Close(1.0)) == 0


def test_text_names_every_field_as_a_dataclass_does() -> None:
    assert repr(Point(1, 2)) == repr(Reference(1, 2)).replace("Reference", "Point")
    assert repr(Named(1)) == "Named(x=1, y=0, name='p')"


def test_fields_are_inherited_matched_and_listed() -> None:
    match Named(1, 2, "q"):
        case Named(x, y, name):
            assert (x, y, name) == (1, 2, "q")
    assert dict(fields_of(Named)) == {"x": REQUIRED, "y": 0, "name": "p"}
    assert is_record(Named(1))
    assert not is_record(Named)
    assert not is_record(Reference(1))
    assert Point.kind == "point"


def test_copies_are_equal() -> None:
    point = Named(1, 2, "q")
    assert replace(point, y=5) == Named(1, 5, "q")
    assert copy.copy(point) == point
    assert copy.deepcopy(point) == point
    assert pickle.loads(pickle.dumps(point)) == point
    with pytest.raises(TypeError, match="argument"):
        replace(point, z=1)
