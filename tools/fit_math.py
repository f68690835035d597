"""Derives the polynomial coefficients of `tilenest.backends.llvm.math_*`.

Run `python tools/fit_math.py NAME ...` (or no name for all) with mpmath installed. In: a table of
problems, each a function, an interval, a weight and the powers to fit. Out: for each format the
coefficients, lowest power first, rounded to it, and the fit's largest weighted error. Method:
Remez exchange in high precision; coefficients are rounded one after the other, lowest first, and
the rest fitted again, so that the rounding of the large ones is made good by the small ones.
"""

import struct
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mpmath import mp, mpf

mp.prec = 260


@dataclass(frozen=True, slots=True)
class Problem:
    """Fit sum c[k] x^k of `degree` to `target`, the error times `weight` being what is small."""

    target: Callable[[mpf], mpf]
    weight: Callable[[mpf], mpf]
    interval: tuple[float, float]
    degrees: dict[str, int]


def rounded(value: mpf, precision: str) -> mpf:
    number = float(value)
    if precision == "float":
        number = struct.unpack("<f", struct.pack("<f", number))[0]
    return mpf(number)


def remez(
    target: Callable[[mpf], mpf],
    weight: Callable[[mpf], mpf],
    powers: Sequence[int],
    interval: tuple[mpf, mpf],
) -> tuple[list[mpf], mpf]:
    """Coefficients of the given powers and the weighted error."""
    low, high = interval
    count = len(powers) + 1
    middle, half = (low + high) / 2, (high - low) / 2
    grid = [middle - half * mp.cos(mp.pi * step / (40 * count)) for step in range(40 * count + 1)]
    values = [(target(point), weight(point)) for point in grid]
    chosen = [40 * count * place // (count - 1) for place in range(count)]
    coefficients: list[mpf] = []
    worst = mpf(0)
    for _ in range(30):
        system = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, place in enumerate(chosen):
            for column, power in enumerate(powers):
                system[row, column] = values[place][1] * grid[place] ** power
            system[row, count - 1] = (-1) ** row
            right[row] = values[place][1] * values[place][0]
        solved = mp.lu_solve(system, right)
        coefficients = [solved[place] for place in range(count - 1)]
        level = abs(solved[count - 1])
        errors = [
            (value - sum(c * x**p for c, p in zip(coefficients, powers, strict=True))) * w
            for x, (value, w) in zip(grid, values, strict=True)
        ]
        worst = max(abs(error) for error in errors)
        if worst <= level * mpf("1.001"):
            break
        chosen = exchange(errors, count)
    return coefficients, worst


def exchange(errors: Sequence[mpf], count: int) -> list[int]:
    """The `count` alternating extremes with the largest errors."""
    extremes: list[int] = []
    for place, error in enumerate(errors):
        if extremes and (error > 0) == (errors[extremes[-1]] > 0):
            if abs(error) > abs(errors[extremes[-1]]):
                extremes[-1] = place
        else:
            extremes.append(place)
    while len(extremes) > count:
        first, last = abs(errors[extremes[0]]), abs(errors[extremes[-1]])
        extremes.pop(0 if first < last else -1)
    assert len(extremes) == count, "the error has too few extremes"
    return extremes


def fit(problem: Problem, precision: str) -> tuple[list[float], float]:
    degree = problem.degrees[precision]
    interval = (mpf(problem.interval[0]), mpf(problem.interval[1]))
    fixed: list[mpf] = []
    worst = mpf(0)
    for first in range(degree + 1):

        def rest(x: mpf, known: tuple[mpf, ...] = tuple(fixed)) -> mpf:
            return problem.target(x) - sum(c * x**p for p, c in enumerate(known))

        solved, worst = remez(rest, problem.weight, range(first, degree + 1), interval)
        fixed.append(rounded(solved[0], precision))
        if precision == "double" and first > 2:
            fixed += [rounded(value, precision) for value in solved[1:]]
            break
    return [float(value) for value in fixed], float(worst)


def series(coefficient: Callable[[int], mpf], closed: Callable[[mpf], mpf], x: mpf) -> mpf:
    """`closed(x)`, or its power series where the closed form cancels."""
    if abs(x) > mpf("1e-9"):
        return closed(x)
    return sum(coefficient(k) * x**k for k in range(8))


LOG2_RANGE = (-0.3467, 0.34671)
SQUARE_PI_4 = (0.7853981633974483 * 1.0005) ** 2
ERF_SPLIT = {"float": 0.875, "double": 0.84375}


def exp_tail(x: mpf) -> mpf:
    """(exp(x) - 1 - x) / x^2"""
    return series(lambda k: 1 / mp.factorial(k + 2), lambda t: (mp.expm1(t) - t) / t**2, x)


def log_tail(f: mpf) -> mpf:
    """(log(1 + f) - f + f^2/2) / f^3"""
    return series(
        lambda k: mpf((-1) ** k) / (k + 3), lambda t: (mp.log1p(t) - t + t * t / 2) / t**3, f
    )


def atanh_tail(z: mpf) -> mpf:
    """(log((1 + s)/(1 - s)) - 2 s) / s^3 at s = sqrt(z)"""

    def closed(t: mpf) -> mpf:
        s = mp.sqrt(t)
        return (2 * mp.atanh(s) - 2 * s) / (s * t)

    return series(lambda k: mpf(2) / (2 * k + 3), closed, z)


def power_tail(z: mpf) -> mpf:
    """(3 log((1 + s)/(1 - s)) / (2 s) - 3 - s^2) / s^4 at s = sqrt(z)"""

    def closed(t: mpf) -> mpf:
        s = mp.sqrt(t)
        return (3 * mp.atanh(s) / s - 3 - t) / (t * t)

    return series(lambda k: mpf(3) / (2 * k + 5), closed, z)


def sin_tail(z: mpf) -> mpf:
    """(sin(r) - r) / r^3 at r = sqrt(z)"""

    def closed(t: mpf) -> mpf:
        r = mp.sqrt(t)
        return (mp.sin(r) - r) / (r * t)

    return series(lambda k: mpf((-1) ** (k + 1)) / mp.factorial(2 * k + 3), closed, z)


def tanh_tail(z: mpf) -> mpf:
    """(tanh(x) - x) / x^3 at x = sqrt(z)"""

    def closed(t: mpf) -> mpf:
        x = mp.sqrt(t)
        return (mp.tanh(x) - x) / (x * t)

    return closed(max(z, mpf("1e-9")))


def cos_tail(z: mpf) -> mpf:
    """(cos(r) - 1 + r^2/2) / r^4 at r = sqrt(z)"""

    def closed(t: mpf) -> mpf:
        return (mp.cos(mp.sqrt(t)) - 1 + t / 2) / (t * t)

    return series(lambda k: mpf((-1) ** k) / mp.factorial(2 * k + 4), closed, z)


def erf_head(z: mpf) -> mpf:
    """erf(x)/x - 1 at x = sqrt(z)"""

    def closed(t: mpf) -> mpf:
        r = mp.sqrt(t)
        return mp.erf(r) / r - 1

    return series(
        lambda k: 2 / mp.sqrt(mp.pi) * mpf((-1) ** k) / (mp.factorial(k) * (2 * k + 1)) - (k == 0),
        closed,
        z,
    )


PROBLEMS = {
    "exp": Problem(exp_tail, lambda x: x * x / mp.exp(x), LOG2_RANGE, {"float": 4, "double": 9}),
    "expm1": Problem(
        exp_tail,
        lambda x: abs(x * x / mp.expm1(x)),
        LOG2_RANGE,
        {"float": 4, "double": 9},
    ),
    "tanh": Problem(tanh_tail, lambda z: z, (1e-8, 0.4001**2), {"float": 3, "double": 8}),
    "log": Problem(
        log_tail, lambda f: f**3 / (mp.log1p(f) if f else 1), (-0.293, 0.4145), {"float": 7}
    ),
    "log_quotient": Problem(atanh_tail, lambda z: z, (1e-9, 0.02945), {"double": 6}),
    "power": Problem(power_tail, lambda z: z * z, (1e-9, 0.02945), {"double": 7}),
    "sin": Problem(sin_tail, lambda z: z, (1e-9, SQUARE_PI_4), {"float": 2, "double": 5}),
    "cos": Problem(cos_tail, lambda z: z * z, (1e-9, SQUARE_PI_4), {"float": 2, "double": 5}),
    "erf_small_float": Problem(
        erf_head, lambda _: mpf(1), (1e-9, ERF_SPLIT["float"] ** 2), {"float": 5}
    ),
    "erf_small_double": Problem(
        erf_head, lambda _: mpf(1), (1e-9, ERF_SPLIT["double"] ** 2), {"double": 10}
    ),
    "erf_large_float": Problem(
        lambda a: mp.log(mp.erfc(a)), mp.erfc, (ERF_SPLIT["float"], 4.0), {"float": 6}
    ),
    "erf_large_double": Problem(
        lambda a: mp.log(mp.erfc(a)),
        mp.erfc,
        (ERF_SPLIT["double"], 6.0),
        {"double": 20},
    ),
}


def main(names: Sequence[str]) -> None:
    for name in names or PROBLEMS:
        for precision in PROBLEMS[name].degrees:
            coefficients, worst = fit(PROBLEMS[name], precision)
            sys.stdout.write(f"{name} {precision}: largest weighted error {worst:.3e}\n")
            digits = 9 if precision == "float" else 17
            for value in coefficients:
                sys.stdout.write(f"    {value:.{digits}g},\n")


if __name__ == "__main__":
    main(sys.argv[1:])
