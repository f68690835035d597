"""Random kernels of loops, conditions, swaps and snapshots, against Python running the same text.

The kernel's text is captured and interpreted; the same text runs as plain Python. Both must leave
the same numbers behind.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from tests.random_programs import Array, Writer, arguments, plain_function, staged_kernel
from tests.unit.capture.kernels import run


def compare(seed: int, n: int) -> None:
    text = Writer(seed).text()
    x, _, expected = arguments(n)
    with np.errstate(over="ignore"):
        try:
            plain_function(text)(Array(x), n, Array(expected))
        except OverflowError:
            reject()  # a host number outgrew the tiles' dtype: only plain Python notices
    x, number, actual = arguments(n)
    run(staged_kernel(text), x, number, actual)
    np.testing.assert_array_equal(actual, expected, err_msg=text)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([0, 1, 3]))
def test_a_random_program_means_what_python_means(seed: int, n: int) -> None:
    compare(seed, n)
