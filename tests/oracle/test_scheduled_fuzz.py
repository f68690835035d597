"""Damaged texts in Scheduled form, sent on to machine code: it is written, or refused in words.

Words of the texts of real kernels become other words of their kind, so that many a text still
reads. What the verifier lets pass is lowered, verified again, and written as LLVM text; whatever
refuses it is an error of ours that says so, never an assertion of the lowering.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.invariants.corpus import examples
from tests.oracle.test_text_fuzz import change_kin, change_lines, limits, product, rows
from tilenest.backends.llvm import EntryDescription, generate
from tilenest.driver import host
from tilenest.passes import lower_machine, simplify_machine
from tilenest.verify import verify_module

KINDS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(pattern), tuple(words.split()))
    for pattern, words in (
        (r"%\w+", ""),
        (
            r'"\w*"',
            '"plain" "vector" "unrolled" "transposed" "fold_left" "fold_right" "ordered_tree" '
            '"unordered_tree" "zero" "proven" "assume" "check" "add" "div" "exp" "lt" "shared"',
        ),
        (
            r"\b(?:exec|tensor|buf|view|scalar|tile|func|address)\.\w+",
            "exec.pipeline exec.serial exec.reduce exec.parallel exec.if exec.yield buf.read "
            "tile.load tile.store tile.map view.extent view.stride scalar.cast scalar.constant "
            "loop.for atom.call func.return memory.load address.load",
        ),
        (r"\b(?:f32|f64|index|bool|f16|i32)\b", "f32 f64 index bool f16 bf16 i8 i32 u8"),
        (r"-?\b\d+(?:\.\d+)?\b", f"0 1 2 3 8 16 17 -1 63 64 4096 {2**31} {2**63 - 1} {-(2**63)}"),
        (r"\b[a-z_]+ = ", ""),
        (r"\b[ds]\d\b", "d0 d1 d2 s0 s1"),
    )
)


@tn.kernel(bounds="check")
def folded(X: Any, Y: Any, scale: Any) -> None:
    """Checks, a branch, a loop of a run-time length, a reduction and a cell of an array."""
    n = tn.axis("n", 21)
    for row in tn.parallel(X.extent(0)):
        i = row.index()
        total: Any = tn.zeros((1, n), tn.float32)
        for step in row.serial(i):
            total = total + X[(step.index(), 0), (1, n)] * scale
        best: Any = tn.max(total, n)
        if X.at(i, 0).load() > 0.5:
            best = best + 1.0
        Y((i, 0), (1, n)).store(total - best)


@tn.kernel
def counted(X: Any, Y: Any) -> None:
    """Instances that update the same elements."""
    n = tn.axis("n", 8)
    for row in tn.parallel(X.extent(0)):
        Y(0, n).atomic_add(X[(row.index(), 0), (1, n)])


@cache
def corpus() -> tuple[tuple[str, EntryDescription], ...]:
    """Texts in Scheduled form, and how the compiled code of each is entered."""
    calls: list[tuple[tn.Kernel, tuple[Any, ...]]] = [
        (product, (array(20, 24), array(24, 17), array(20, 17))),
        (rows, (array(5, 37), array(5, 37))),
        (folded, (array(5, 21), array(5, 21), 2.0)),
        (counted, (array(5, 8), array(8))),
    ]
    found = []
    for kernel, arguments in calls:
        text = kernel.compile(*arguments).ir("scheduled")
        (variant,) = kernel.variants
        found.append((text, variant.captured.entry))
    return tuple(found)


def array(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def change_words(text: str, chance: random.Random) -> str:
    """One to three words become another of their kind, out of the text or out of the list."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        pattern, words = chance.choice(KINDS)
        places = list(pattern.finditer(text))
        if not places:
            continue
        pool = words if words and chance.random() < 0.6 else [place.group() for place in places]
        place = chance.choice(places)
        text = text[: place.start()] + chance.choice(pool) + text[place.end() :]
    return text


def outcome(text: str, entry: EntryDescription) -> str:
    """What becomes of a text, as one word."""
    try:
        module = tn.parse(text)
        verify_module(module)
    except tn.ParseError:
        return "unreadable"
    except tn.VerifyError:
        return "refused"
    if module.form != "scheduled":
        return "of another form"
    try:
        machine = lower_machine(module)
    except tn.TargetError as error:
        return "without a place" if error.location is None else "not for this target"
    verify_module(machine)
    simplify_machine(machine)
    verify_module(machine)
    generate(machine, entry, host().processor)
    return "written"


def fuzz(seeds: range) -> Counter[str]:
    found: Counter[str] = Counter()
    for seed in seeds:
        chance = random.Random(seed)
        text, entry = chance.choice(corpus())
        damage = chance.choice((change_words, change_words, change_words, change_kin, change_lines))
        try:
            with limits():
                found[outcome(damage(text, chance), entry)] += 1
        except Exception as error:
            error.add_note(f"in case {seed}")
            raise
    return found


def test_damaged_schedules_are_refused_or_written() -> None:
    found = fuzz(range(100))
    assert min(found[word] for word in ("unreadable", "refused", "written")) > 5, found
    assert not found["without a place"]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(2))
def test_many_damaged_schedules_are_refused_or_written(part: int) -> None:
    found = fuzz(range(100 + part * 1000, 1100 + part * 1000))
    assert sum(found.values()) == 1000
    assert not found["without a place"]


@pytest.mark.parametrize(
    ("example", "message"),
    [
        ("TN15-accepted-two-versions-in-turn", r"no code for exec\.pipeline"),
        ("TN07-accepted-copy-into-panels", "has no schedule"),
    ],
)
def test_what_cannot_be_lowered_is_refused_at_its_place(example: str, message: str) -> None:
    (text,) = [e.text for e in examples() if e.id == example]
    module = tn.parse(text)
    verify_module(module)
    with pytest.raises(tn.TargetError, match=message) as caught:
        lower_machine(module)
    assert caught.value.location is not None
