"""Views, memory, atomics and synchronization: their text, effects and forms."""

from __future__ import annotations

import pytest

from tests.unit.verify.effect_modules import GOOD_EFFECTS
from tilenest.analysis import effects_of, is_pure
from tilenest.dialects import (
    Atomic,
    MemoryAllocate,
    MemoryLoad,
    MemoryStore,
    Remap,
    Store,
    Synchronize,
    base_of,
    registry,
)
from tilenest.ir import EffectKind, Operation, parse_module, print_module


@pytest.mark.parametrize("name", GOOD_EFFECTS)
def test_modules_print_and_parse_back(name: str) -> None:
    module = parse_module(GOOD_EFFECTS[name], registry())
    text = print_module(module)
    assert print_module(parse_module(text, registry())) == text


def ops(name: str, kind: type[Operation]) -> list[Operation]:
    module = parse_module(GOOD_EFFECTS[name], registry())
    return [op for op in module.walk() if isinstance(op, kind)]


KINDS = {
    Remap: ("views", set(), True),
    MemoryAllocate: ("memory", {EffectKind.ALLOCATE}, True),
    MemoryLoad: ("memory", {EffectKind.READ}, True),
    MemoryStore: ("memory", {EffectKind.WRITE}, False),
    Atomic: ("atomics", {EffectKind.ATOMIC}, False),
    Synchronize: ("atomics", {EffectKind.SYNCHRONIZE}, False),
}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_effects_of_each(kind: type[Operation]) -> None:
    name, effects, is_dispensable = KINDS[kind]
    for op in ops(name, kind):
        assert {effect.kind for effect in op.effects()} - {EffectKind.FAULT} == effects
        assert is_pure(op) == is_dispensable


def test_a_memory_is_stored_to_by_name() -> None:
    (first, *_) = ops("memory", MemoryStore)
    assert isinstance(first, MemoryStore)
    assert effects_of(first).writes == {first.memory}


def test_views_of_views_lie_in_one_storage() -> None:
    (store,) = ops("views", Store)
    assert isinstance(store, Store)
    assert base_of(store.view).name == "A"
    assert {base_of(op.results[0]).name for op in ops("views", Remap)} == {"A", "flags"}
