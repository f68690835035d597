"""What `dir` says of the package and of its rooms is what one can ask them for."""

from importlib import import_module

import pytest

import tilenest as tn

LAZY = ("layouts", "machine", "analysis", "execution")


def test_the_package_lists_its_public_names() -> None:
    names = dir(tn)
    assert names == sorted(names)
    assert set(names) == {"interpret", "ops", "remap", *tn.__all__}
    assert all(hasattr(tn, name) for name in names)


@pytest.mark.parametrize("room", LAZY)
def test_a_lazy_room_lists_what_it_offers(room: str) -> None:
    face = import_module(f"tilenest.{room}")
    names = dir(face)
    assert names == sorted(names)
    assert all(hasattr(face, name) for name in names)
    assert not any(name.startswith("_") for name in names)
    assert len(names) > 5
