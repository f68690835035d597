"""Patches laid over an ancestor's values, against NumPy, and overlaps that have no meaning."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.updating import ENTRY, program, run
from tilenest.errors import AncestorUpdateError, VerifyError


@pytest.mark.parametrize("shuffle", [None, 1, 2])
def test_patches_of_their_own_tile_the_whole(shuffle: int | None) -> None:
    module = program(
        "exec.yield_updates(payloads = [%new], origins = [%o, %c0], patches = [#patch<result = 0>])"
    )
    a, b, s = run(module, shuffle)
    np.testing.assert_array_equal(b, ENTRY * 2 + np.float32(0.5))
    np.testing.assert_array_equal(a, ENTRY)
    assert s[0] == 0.5


def test_untouched_elements_keep_their_value() -> None:
    module = program(
        "exec.yield_updates(payloads = [%new], origins = [%o, %c4], predicates = [%keep], "
        "patches = [#patch<result = 0, conditional = true>])"
    )
    expected = ENTRY.copy()
    for i in range(3):
        for column in range(min(4, i + 1)):
            rows = slice(4 * i, 4 * i + 4)
            expected[rows, 4 + column] = ENTRY[rows, column] * 2 + np.float32(0.5)
    np.testing.assert_array_equal(run(module)[1], expected)


def test_parts_outside_are_dropped() -> None:
    module = program(
        "%far = scalar.constant -2 : index\n"
        "    exec.yield_updates(payloads = [%new], origins = [%far, %c4], "
        'patches = [#patch<result = 0, combine = "maximum">])'
    )
    expected = ENTRY.copy()
    for i in range(3):
        part = ENTRY[4 * i + 2 : 4 * i + 4, :4] * 2 + np.float32(0.5)
        expected[:2, 4:] = np.maximum(expected[:2, 4:], part)
    np.testing.assert_array_equal(run(module)[1], expected)


def test_patches_of_one_instance_apply_in_order() -> None:
    module = program(
        "exec.yield_updates(payloads = [%new, %one, %one], "
        "origins = [%o, %c0, %o, %c3, %o, %c3], "
        'patches = [#patch<result = 0>, #patch<result = 0>, #patch<result = 0, combine = "add">])'
    )
    expected = ENTRY * 2 + np.float32(0.5)
    expected[::4, 3] = 3
    np.testing.assert_array_equal(run(module)[1], expected)


@pytest.mark.parametrize("shuffle", [None, 1, 2, 3])
def test_instances_may_combine_in_the_order_of_the_domain(shuffle: int | None) -> None:
    module = program(
        "%x = scalar.cast(%i) : f32\n    %big = scalar.constant 16777216.0 : f32\n"
        '    %first = scalar.apply "eq"(%i, %c0) : bool\n'
        '    %term = scalar.apply "where"(%first, %big, %one) : f32\n'
        "    exec.yield_updates(payloads = [%term], "
        'patches = [#patch<result = 1, combine = "add">])'
    )
    total = np.float32(0.5)
    for term in (16777216.0, 1.5, 1.5):
        total = np.float32(total + np.float32(term))
    assert run(module, shuffle)[2][0] == total


@pytest.mark.parametrize(
    "patches",
    [
        "[#patch<result = 0>]",
        "[#patch<result = 0>, #patch<result = 0>]",
        '[#patch<result = 0, combine = "add">, #patch<result = 0>]',
        '[#patch<result = 0, combine = "add">, #patch<result = 0, combine = "mul">]',
    ],
)
@pytest.mark.parametrize("shuffle", [None, 5])
def test_overlaps_without_one_function_are_refused(patches: str, shuffle: int | None) -> None:
    count = patches.count("#patch")
    updates = (
        f"exec.yield_updates(payloads = [{', '.join(['%new'] * count)}], "
        f"origins = [{', '.join(['%o, %c0'] * count)}], patches = {patches})"
    )
    with pytest.raises(VerifyError, match="TN08"):
        program(updates, stride="%c3")
    module = program(updates, stride="%late")
    with pytest.raises(AncestorUpdateError, match=r"instances \(0, 0\) and \(1, 0\)") as caught:
        run(module, shuffle)
    assert "element (3, 0)" in str(caught.value)
    assert caught.value.remedy is not None and "combine" in caught.value.remedy


def test_no_instance_leaves_the_values_given() -> None:
    module = program("exec.yield_updates")
    np.testing.assert_array_equal(run(module)[1], ENTRY)
