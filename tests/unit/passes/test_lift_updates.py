"""Updates on the way to machine form: every step leaves the bits that the interpreter gave."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.interp.updating import program, run
from tests.unit.passes.lowering import lowered
from tilenest.dialects import Launch, Parallel, YieldUpdates
from tilenest.machine import AVX2, AVX512, Machine

PATCHES = {
    "cover": "exec.yield_updates(payloads = [%new], origins = [%o, %c0], "
    "patches = [#patch<result = 0>])",
    "condition": "exec.yield_updates(payloads = [%new], origins = [%o, %c4], "
    "predicates = [%keep], patches = [#patch<result = 0, conditional = true>])",
    "outside": "%far = scalar.constant -2 : index\n"
    "    exec.yield_updates(payloads = [%new], origins = [%far, %c4], "
    'patches = [#patch<result = 0, combine = "maximum">])',
    "in turn": "exec.yield_updates(payloads = [%new, %one, %one], "
    "origins = [%o, %c0, %o, %c3, %o, %c3], "
    'patches = [#patch<result = 0>, #patch<result = 0>, #patch<result = 0, combine = "add">])',
    "scalar": "exec.yield_updates(payloads = [%one, %new], origins = [%o, %c0], "
    'patches = [#patch<result = 1, combine = "add">, #patch<result = 0>])',
    "condition on one": '%first = scalar.apply "eq"(%i, %c1) : bool\n'
    "    exec.yield_updates(payloads = [%one], predicates = [%first], "
    "patches = [#patch<result = 1, conditional = true>])",
    "far": "%up = scalar.constant 9223372036854775807 : index\n"
    '    %far = scalar.apply "sub"(%up, %i) : index\n'
    "    %down = scalar.constant -9223372036854775808 : index\n"
    "    exec.yield_updates(payloads = [%new, %new], origins = [%far, %c0, %o, %down], "
    "patches = [#patch<result = 0>, #patch<result = 0>])",
    "nothing": "exec.yield_updates",
}


@pytest.mark.parametrize("machine", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize("name", PATCHES)
def test_every_step_keeps_the_bits(name: str, machine: Machine) -> None:
    module = program(PATCHES[name])
    expected = run(module)
    for step, reached in lowered(module, machine):
        for wanted, found in zip(expected, run(reached), strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=f"after {step}")


def test_disjoint_patches_stay_parallel_and_combined_ones_run_in_order() -> None:
    for name, count in (("cover", 1), ("outside", 0)):
        module = program(PATCHES[name])
        *_, (_, machine) = lowered(module, AVX512)
        assert not any(isinstance(op, YieldUpdates) for op in module.walk())
        assert sum(isinstance(op, Parallel) for op in module.walk()) == count
        assert sum(isinstance(op, Launch) for op in machine.walk()) == count
