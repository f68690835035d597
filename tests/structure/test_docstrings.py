"""Every public name says what it is: functions, classes, and what can be called or read of them."""

from __future__ import annotations

import inspect
from types import FunctionType

import pytest

import tilenest as tn
from tests.errors.kinds import held

NAMES = [*tn.__all__, "interpret", "remap", "ops", *(f"ops.{name}" for name in tn.ops.__all__)]
ENDING = (".", ":")


def item_named(name: str) -> object:
    item: object = tn
    for part in name.split("."):
        item = getattr(item, part)
    return item


@pytest.mark.parametrize("name", NAMES)
def test_public_names_have_docstrings(name: str) -> None:
    """A value is described by its class."""
    item = item_named(name)
    assert (item.__doc__ or "").strip().endswith(ENDING), name


def public_classes() -> list[type]:
    named = [item for name in tn.__all__ if isinstance(item := getattr(tn, name), type)]
    found = [type(thing) for things in held() for thing in things.values()]
    return list(dict.fromkeys([*named, *found, type(tn.add), type(tn.float32)]))


@pytest.mark.parametrize("kind", public_classes(), ids=lambda kind: kind.__name__)
def test_public_classes_and_what_they_offer_have_docstrings(kind: type) -> None:
    assert (vars(kind).get("__doc__") or "").strip().endswith(ENDING)
    undescribed = [
        name
        for name, item in inspect.getmembers_static(kind)
        if not name.startswith("_")
        and isinstance(item, property | FunctionType)
        and not inspect.getdoc(item)
    ]
    assert undescribed == []
