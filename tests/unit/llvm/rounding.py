"""How far a result is from the exact one, in units of its last place.

In: results and references of a wider format. Out: the error of each; what must agree exactly (NaN,
infinities, the sign of zero) counts as an infinite error where it does not.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def ulp_errors(got: Array, exact: Array) -> Array:
    """`exact` has more digits than `got`; overflow to inf is right where `exact` rounds to it."""
    facts = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = exact.astype(got.dtype)
        _, exponent = np.frexp(np.abs(exact))
        last_place = np.ldexp(
            np.ones_like(exact), np.maximum(exponent - 1, facts.minexp) - facts.nmant
        )
        errors = (np.abs(got.astype(exact.dtype) - exact) / last_place).astype(np.float64)
    largest = facts.max
    is_special = ~np.isfinite(rounded)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    nearly = np.isinf(rounded) & np.isfinite(exact) & (got == np.copysign(largest, rounded))
    errors[is_special] = np.where(same, 0.0, np.where(nearly, 1.0, np.inf))[is_special]
    errors[np.isnan(errors)] = np.inf
    is_zero = exact == 0
    wrong_zero = is_zero & ((got != 0) | (np.signbit(got) != np.signbit(exact)))
    errors[is_zero] = np.where(wrong_zero, np.inf, 0.0)[is_zero]
    return np.asarray(errors)


def stratified_floats(per_exponent: int, seed: int) -> NDArray[np.float32]:
    """Every sign and exponent of float32 with as many mantissas, the ends among them."""
    random = np.random.default_rng(seed)
    tops = np.arange(512, dtype=np.uint32)[:, None] << 23
    mantissas = random.integers(0, 1 << 23, (512, per_exponent), dtype=np.uint32)
    mantissas[:, 0], mantissas[:, 1] = 0, (1 << 23) - 1
    return np.asarray((tops | mantissas).ravel().view(np.float32))


# Among them the double closest to a multiple of pi/2, and the bounds of the reductions.
SPECIALS = np.array(
    [
        *(0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 10.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324),
        *(2.2250738585072014e-308, 1.7976931348623157e308, -1.7976931348623157e308),
        *(709.782712893384, 709.7827128933841, -745.1332191019411, -745.1332191019412),
        *(6381956970095103.0 * 2.0**797, 2.0**17, 2.0**30, 2.0**1023, 2.0**-1022),
    ]
)
