"""Names a kernel may have: whatever Python allows, with or without a definition of its own."""

from typing import Any

import numpy as np

import tilenest as tn


@tn.kernel
def größe_π(X, Y):  # noqa: PLC2401 - such names are what is tested
    n = tn.axis("größe", X.shape[0])
    for _ in tn.parallel(1):
        Y(0, n).store(X[0, n] * 2.0)


def test_names_beyond_ascii_compile() -> None:
    x = np.arange(5, dtype=np.float32)
    y = np.full(5, np.nan, np.float32)
    größe_π(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    module = größe_π.capture(x, y)
    assert str(tn.parse(str(module))) == str(module)


def test_a_lambda_may_be_a_kernel() -> None:
    fill: Any = tn.kernel(lambda Y: Y.at(2).store(7.0))
    y = np.zeros(5, np.float32)
    fill(y)
    np.testing.assert_array_equal(y, [0, 0, 7, 0, 0])
