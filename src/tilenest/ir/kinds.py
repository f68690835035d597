"""Whether an attribute value is of the kind that was declared for it.

In: a value and a class, union or `tuple[...]` annotation. Out: yes or no. Parser and verifier ask
this for op attributes and for the fields of attribute records alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from tilenest.ir.types import Type
from tilenest.ir.variables import Variable
from tilenest.layouts import AffineMap, Dim
from tilenest.records import is_record

_PLAIN = (bool, int, float, str, NoneType, Type, Dim, AffineMap)

_SURE = frozenset({bool, int, float, str})
"""Kinds whose own values fit without a closer look."""


def fits(value: Any, kind: Any) -> bool:
    """True when `value` is an attribute value of `kind`; a bool is no int and an int no float. A
    variable is of no kind but its own, which open attributes have in theirs."""
    if kind in _SURE and value.__class__ is kind:
        return True
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return any(fits(value, choice) for choice in get_args(kind))
    if origin is tuple:
        return isinstance(value, tuple) and _items_fit(value, get_args(kind))
    if kind is None:
        return value is None
    if kind is Variable:
        return isinstance(value, Variable)
    if kind is int and isinstance(value, bool):
        return False
    return isinstance(value, kind) and is_attribute_value(value)


def _items_fit(items: tuple[Any, ...], kinds: tuple[Any, ...]) -> bool:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return all(fits(item, kinds[0]) for item in items)
    return len(items) == len(kinds) and all(map(fits, items, kinds))


def is_attribute_value(value: Any) -> bool:
    """True for what may stand in an attribute: immutable, comparable and spelled in the text."""
    if isinstance(value, _PLAIN):
        return True
    if isinstance(value, tuple):
        return all(is_attribute_value(item) for item in value)
    if not is_record(value) or isinstance(value, Variable):
        return False
    kinds = record_kinds(value.__class__)
    return all(fits(getattr(value, name), kind) for name, kind in kinds.items())


@cache
def record_kinds(record: type) -> Mapping[str, Any]:
    """The kind of every field of an attribute record."""
    return get_type_hints(record)


def refusal(what: str, value: Any, kind: Any) -> tuple[str, str]:
    """What is wrong with a value that does not fit a kind, and what to do."""
    remedy = "give it a value" if kind is object else f"give it a value of kind {kind_text(kind)}"
    if isinstance(value, Variable):
        return f"{what} cannot be left open, as {value}", remedy
    return f"{what} must be of kind {kind_text(kind)}", remedy


def kind_text(kind: Any) -> str:
    """A kind as a reader would say it."""
    if get_origin(kind) in (Union, UnionType):
        return " or ".join(map(kind_text, get_args(kind)))
    return "attribute value" if kind is object else getattr(kind, "__name__", str(kind))
