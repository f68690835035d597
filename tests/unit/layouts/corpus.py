"""Questions about layouts with known answers: small maps, maps far too large to enumerate, and
random ones.

A case names a question, the maps it is asked about, and the verdict that is right, where a person
worked it out. The small cases (with `choices` of their run-time extents) are judged by every point.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from itertools import product

from tests.unit.layouts.judge import Extent, formula
from tilenest.errors import ShapeError
from tilenest.layouts import Const, DimRef, IndexExpr, Sym, bit_and, shift_left, shift_right, xor
from tilenest.layouts.formula import Formula
from tilenest.layouts.spaces import Constraint
from tilenest.records import record

D0, D1, D2 = DimRef(0), DimRef(1), DimRef(2)
QUESTIONS = ("is_total", "is_bounded", "is_injective", "is_surjective")
PROVEN, DISPROVEN = "proven", "disproven"
Maps = tuple[tuple[Formula, ...], ...]


@record
class Case:
    """One question; `choices` are values of the run-time extents at which it is enumerated."""

    name: str
    question: str
    maps: Maps
    verdict: str | None = None
    choices: tuple[Mapping[str, int], ...] = ()


def cases() -> Iterator[Case]:
    """Everything, the named ones first."""
    yield from named_cases()
    yield from affine_cases()
    yield from matrix_cases()
    for kind in ("affine", "bits", "quotients", "run-time"):
        yield from random_cases(kind, 150, seed=1)


def facts(
    name: str, f: Formula, verdicts: str, choices: tuple[Mapping[str, int], ...] = ()
) -> Iterator[Case]:
    """The four facts of a map: a letter each, `y`es, `n`o, or `?` where the judge decides."""
    meanings = {"y": PROVEN, "n": DISPROVEN, "?": None}
    for question, letter in zip(QUESTIONS, verdicts, strict=True):
        yield Case(f"{name}: {question}", question, ((f,),), meanings[letter], choices)


def named_cases() -> Iterator[Case]:
    yield from _small_cases()
    yield from _large_cases()
    yield from _bit_cases()
    yield from _run_time_cases()


def _small_cases() -> Iterator[Case]:
    once: tuple[Mapping[str, int], ...] = ({},)
    yield from facts("row-major", formula([2, 3], [6], [D0 * 3 + D1]), "yyyy", once)
    yield from facts("stride 0", formula([2, 3], [3], [D1]), "yyny", once)
    yield from facts("transposed", formula([2, 3], [3, 2], [D1, D0]), "yyyy", once)
    flat = D0 * 3 + D1
    yield from facts("reshaped", formula([2, 3], [3, 2], [flat // 2, flat % 2]), "yyyy", once)
    yield from facts("2i+4j", formula([5, 5], [30], [D0 * 2 + D1 * 4]), "yynn", once)
    yield from facts("2i+3j", formula([3, 2], [8], [D0 * 2 + D1 * 3]), "yyyn", once)
    yield from facts("backwards", formula([7], [7], [6 - D0]), "yyyy", once)
    yield from facts("digits", formula([60], [5, 12], [D0 % 5, D0 // 5]), "yyyy", once)
    yield from facts("remainders", formula([12], [3, 4], [D0 % 3, D0 % 4]), "yyyy", once)
    yield from facts("no axes", formula([], [3], [2]), "yyyn", once)
    for shift in (shift_left(D0, 60), shift_right(shift_left(D0, 60), 60)):
        yield from facts("shifted", formula([8], [16], [shift]), "????", once)


def _large_cases() -> Iterator[Case]:
    side, last = 1048577, 2**63
    joint = formula([side, side], [2**22, 2**22], [D0 * 2 + D1, D0 + D1 * 2])
    yield from facts("joint rank", joint, "yyyn")
    peeled = [D0 * (4 * side) + D1 * 2 + D2, D1 + D2 * 2]
    yield from facts("peeled, then rank", formula([side] * 3, [2**63, 2**23], peeled), "yyyn")
    prime = 2**31 - 1
    scaled = [D0 * prime + D1 * (2 * prime), D0 * (2 * prime) + D1 * prime]
    yield from facts("scaled by a prime", formula([4, 4], [2**40, 2**40], scaled), "yyyn")
    square = formula([2**40, 2**40], [2**40, 2**40], [D0, D1])
    yield from facts("2^40 x 2^40", square, "yyyy")
    yield from facts("2^40 x 2^40 flat", formula([2**40, 2**40], [last], [D0 * 2**40 + D1]), "nyyy")
    yield from facts("the last extent", formula([last], [last], [D0]), "yyyy")
    yield from facts("one too far", formula([last], [last], [D0 + 1]), "nyyn")
    yield from facts("cancelling", formula([last, 2], [last], [D0 * 2 - D0 + D1 - D1]), "yyny")
    yield from facts("empty, far", formula([0, last], [4], [D0 * 2**62 + D1 * 2**62]), "yyyn")
    unknown = formula([0, "n"], [4], [D0 + D1 * 2**62])
    yield from facts("empty, run-time", unknown, "yyyn", ({"n": 0}, {"n": 3}))


def _bit_cases() -> Iterator[Case]:
    gray = xor(D0, D0 // 2)
    for extent in (1, 8, 31, 32, 2**21 - 1, 2**21, 2**63):
        small: tuple[Mapping[str, int], ...] = ({},) if extent <= 32 else ()
        room = 1 << (extent - 1).bit_length()
        verdicts = "yyyy" if room == extent else "yyyn"
        yield from facts(f"gray {extent}", formula([extent], [room], [gray]), verdicts, small)
    row_swizzle = D0 * 2048 + xor(D1, D0 % 32 * 8)
    yield from facts("swizzle", formula([1024, 2048], [2**21], [row_swizzle]), "yyyy")
    lost = D0 * 2048 + xor(D1, bit_and(D1, 8))
    yield from facts("a bit lost", formula([1024, 2048], [2**21], [lost]), "yynn")
    # Columns 3 and 5 reach 0, 3, 5 and 6: never 7, the bits of both.
    correlated = xor(D0 * 3, D1 * 5)
    yield from facts("fits 7", formula([2, 2], [7], [correlated]), "yyyn", ({},))
    yield from facts("not 6", formula([2, 2], [6], [correlated]), "ynyn", ({},))
    # As the identity at 0, 1, 2 and 4, and not at 3.
    nonlinear = D0 - bit_and(D0, D0 // 2) % 2
    yield from facts("linear on the basis", formula([8], [8], [nonlinear]), "????", ({},))
    yield from facts("offset", formula([6, 8], [64], [xor(D0 * 8 + D1, 21)]), "yyyn", ({},))
    ragged = D0 * 192 + (D1 // 64) * 64 + xor((D1 % 64) // 8, D0 % 8) * 8 + D1 % 8
    yield from facts("ragged swizzle", formula([100, 192], [19200], [ragged]), "yyyy")


def _run_time_cases() -> Iterator[Case]:
    several = tuple({"n": n, "m": 3} for n in (0, 1, 2, 3, 5, 8))
    rows: list[Extent] = ["n", 64]
    yield from facts("identity of rows", formula(rows, rows, [D0, D1]), "yyyy")
    swizzled = [D0, xor(D1 // 8, D0 % 8) * 8 + D1 % 8]
    yield from facts("swizzled rows", formula(rows, rows, swizzled), "yyyy")
    yield from facts("tiles", formula(["n"], ["n", 8], [D0 // 8, D0 % 8]), "yyyn", several)
    yield from facts("backwards", formula(["n"], ["n"], [Sym(0) - 1 - D0]), "yyyy", several)
    yield from facts("doubled", formula(["n"], ["n"], [D0 * 2]), "nnyn", several)
    stacked = formula(["m", "n"], ["k"], [D0 * Sym(2) + D1])
    yield Case("run-time rows: is_injective", "is_injective", ((stacked,),), PROVEN)
    even = formula(["n"], ["m"], [D0 * 2], [])
    odd = formula(["n"], ["m"], [D0 * 2 + 1])
    yield Case("even and odd", "are_disjoint", ((even,), (odd,)), PROVEN, several)
    low = formula(["n"], ["n"], [D0], [Constraint(3 - D0)])
    high = formula(["n"], ["n"], [D0], [Constraint(D0 - 4)])
    yield Case("two pieces", "equal", ((low, high), (formula(["n"], ["n"], [D0]),)), PROVEN)
    yield Case("two pieces: total", "is_total", ((low, high),), PROVEN, several)
    yield Case("one piece: total", "is_total", ((low,),), DISPROVEN, several)


def affine_cases() -> Iterator[Case]:
    """9375 maps of two coordinates: all steps from -2 to 2 on fifteen boxes, and their facts."""
    boxes = list(product((1, 2, 3, 4, 5), (1, 2, 4)))
    for number, (steps, box) in enumerate(product(product(range(-2, 3), repeat=4), boxes)):
        a, b, c, d = steps
        f = formula(box, [4, 3], [D0 * a + D1 * b, D0 * c + D1 * d])
        # One fact a map, each in turn; over all maps every fact meets every box and every step.
        question = QUESTIONS[(number + number // 15) % 4]
        yield Case(f"affine {steps} on {box}", question, ((f,),), None, ({},))


def matrix_cases() -> Iterator[Case]:
    """All 3x3 matrices over two elements, on a whole and on a ragged box."""
    for number, columns in enumerate(product(range(8), repeat=3)):
        parts = [D0 // (1 << bit) % 2 * column for bit, column in enumerate(columns)]
        result = xor(xor(parts[0], parts[1]), parts[2])
        for extent in (8, 7 - number % 3):
            f = formula([extent], [8], [xor(result, number % 8)])
            for question in ("is_bounded", "is_injective", "is_surjective"):
                yield Case(f"matrix {columns} on {extent}", question, ((f,),), None, ({},))


def random_cases(kind: str, count: int, seed: int) -> Iterator[Case]:
    """Random maps on small boxes, and pairs of them, every question."""
    chance = random.Random(f"{kind} {seed}")
    choices = tuple({"n": n} for n in (0, 1, 2, 3, 5, 8)) if kind == "run-time" else ({},)
    for number in range(count):
        try:
            f, g = random_maps(chance, kind)
        except ShapeError:
            continue
        for question in (*QUESTIONS, "is_monotone"):
            yield Case(f"{kind} {number}", question, (f,), None, choices)
        for question in ("equal", "are_disjoint"):
            yield Case(f"{kind} {number}", question, (f, g), None, choices)


def random_maps(chance: random.Random, kind: str) -> Maps:
    """Two maps between the same spaces."""
    rank = chance.randint(1, 3 if kind in ("affine", "bits") else 2)
    box: list[Extent] = [chance.choice([2, 3, 4, 5, 7, 8]) for _ in range(rank)]
    if chance.random() < 0.1:
        box[0] = chance.choice([0, 1])
    leaves: list[IndexExpr] = [DimRef(place) for place in range(rank)]
    if kind == "run-time":
        box[chance.randrange(rank)] = "n"
        leaves.append(Sym(0))
    room: list[Extent] = [chance.choice([1, 4, 6, 8, 16, 32]) for _ in range(chance.randint(1, 2))]
    if kind == "run-time" and chance.random() < 0.5:
        room[0] = "n"

    def results() -> list[IndexExpr]:
        return [random_expression(chance, kind, leaves, chance.randint(1, 3)) for _ in room]

    def pieces() -> tuple[Formula, ...]:
        if kind in ("affine", "bits") or chance.random() < 0.6:
            return (formula(box, room, results()),)
        side = D0 * chance.choice([-1, 1, 2]) - random_expression(chance, kind, leaves, 1)
        inside, outside = Constraint(side), Constraint(-1 - side)
        return formula(box, room, results(), [inside]), formula(box, room, results(), [outside])

    f = pieces()
    return f, f if chance.random() < 0.2 else pieces()


# What joins two operands and a number from 0 to 8; `a` and `b` are expressions, `c` is the number.
_JOINS: dict[str, Callable[[IndexExpr, IndexExpr, int], IndexExpr]] = {
    "a+b": lambda a, b, _: a + b,
    "a-b": lambda a, b, _: a - b,
    "a+8b": lambda a, b, _: a + b * 8,
    "a*(c-4)": lambda a, _, c: a * (c - 4),
    "a//c": lambda a, _, c: a // (c + 1),
    "a%c": lambda a, _, c: a % (c + 1),
    "a%-c": lambda a, _, c: a % -(c + 1),
    "a^b": lambda a, b, _: xor(a, b),
    "a^a/2": lambda a, *_: xor(a, a // 2),
    "a^c": lambda a, _, c: xor(a, c - 4),
    "a&b": lambda a, b, _: bit_and(a, b),
    "a&c": lambda a, _, c: bit_and(a, c),
    "a<<c": lambda a, _, c: shift_left(a, c % 5),
    "a>>c": lambda a, _, c: shift_right(a, c % 4),
    "a%2^c": lambda a, _, c: a % (1 << c % 4),
}
_KINDS = {
    "affine": ("a+b", "a-b", "a*(c-4)"),
    "bits": ("a^b", "a^a/2", "a&b", "a&c", "a<<c", "a>>c", "a+8b", "a-b", "a%2^c"),
    "quotients": ("a+b", "a-b", "a*(c-4)", "a//c", "a%c", "a%-c", "a^c", "a&c"),
    "run-time": ("a+b", "a-b", "a*(c-4)", "a//c", "a%c", "a%-c", "a^c", "a&c"),
}


def random_expression(
    chance: random.Random, kind: str, leaves: list[IndexExpr], depth: int
) -> IndexExpr:
    if depth == 0 or chance.random() < 0.2:
        return chance.choice(leaves) if chance.random() < 0.8 else Const(chance.randint(-4, 9))
    join = _JOINS[chance.choice(_KINDS[kind])]
    left = random_expression(chance, kind, leaves, depth - 1)
    right = random_expression(chance, kind, leaves, depth - 1)
    return join(left, right, chance.randint(0, 8))
