"""Damaged texts: they parse and verify, or are refused with a caret; nothing else ever happens.

Texts of modules in every form are cut, doubled, swapped, renumbered and spliced. Whatever still
parses is verified; what it prints must read back to the same text.
"""

from __future__ import annotations

import random
import re
import resource
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import tilenest as tn
from tests.unit.ir.samples import any_module
from tilenest.dialects import OPERATIONS
from tilenest.errors import ParseError, VerifyError
from tilenest.ir import Module, print_module
from tilenest.verify import verify_module

SECONDS = 30.0
"""A case takes some milliseconds; this is a hang, on however slow a machine."""
MEGABYTES = 1500
_TOKEN = re.compile(r'"[^"\n]*"|%\w+|\^\d+|#\w+|[A-Za-z_][\w.]*|-?\d+(?:\.\d+)?|\s+|.')
_NUMBER = re.compile(r"\d+")
_NUMBERS = ("0", "1", "-1", "2", "63", "64", "4096", str(2**31), str(2**63 - 1), str(-(2**63)))
Damage = Callable[[str, random.Random], str]


@tn.kernel
def product(A: Any, B: Any, C: Any, *, size: int = 8) -> None:
    m, n, k = tn.axis("m", size), tn.axis("n", size), tn.axis("k", size)
    for block in tn.parallel(tn.cdiv(C.extent(0), size), tn.cdiv(C.extent(1), size)):
        i, j = block.index()
        total = tn.zeros((m, n), tn.float32)
        for step in block.pipeline(tn.cdiv(A.extent(1), size), window=2):
            place = step.index() * size
            step.stage("load")
            left, right = A[(i * size, place), (m, k)], B[(place, j * size), (k, n)]
            step.stage("compute")
            total = tn.mma(left, right, total)  # type: ignore[arg-type]  # tiles, as staged
        C((i * size, j * size), (m, n)).store(total)


@tn.kernel
def rows(X: Any, Y: Any) -> None:
    n = tn.axis("n", 37)
    for block in tn.parallel(X.extent(0)):
        row = X[(block.index(), 0), (1, n)]
        Y((block.index(), 0), (1, n)).store(tn.softmax(row, n))


@cache
def corpus() -> tuple[str, ...]:
    """Modules in every form: kernels, the examples of the invariants, instances of every op."""
    a = np.ones((20, 24), np.float32)
    b = np.ones((24, 17), np.float32)
    compiled = [
        product.compile(a, b, np.ones((20, 17), np.float32)),
        rows.compile(np.ones((5, 37), np.float32), np.ones((5, 37), np.float32)),
    ]
    texts = [one.ir(form) for one in compiled for form in ("candidate", "scheduled", "machine")]
    folder = Path(__file__).parent.parent / "invariants"
    texts += [path.read_text(encoding="utf-8") for path in sorted(folder.glob("TN*/*.tileir"))]
    texts += [
        print_module(any_module(cls, place), locations=place % 2 == 0)
        for place, cls in enumerate(OPERATIONS)
    ]
    return tuple(texts)


def change_bytes(text: str, chance: random.Random) -> str:
    data = bytearray(text.encode())
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(len(data))
        data[place : place + chance.randrange(2)] = bytes([chance.randrange(256)])
    return data.decode(errors="replace")


def change_tokens(text: str, chance: random.Random) -> str:
    tokens = _TOKEN.findall(text)
    for _ in range(chance.randrange(1, 5)):
        place, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        match chance.randrange(4):
            case 0:
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case 1:
                tokens[place] = tokens[other]
            case 2:
                tokens.insert(place, tokens[other])
            case 3 if len(tokens) > 1:
                del tokens[place]
    return "".join(tokens)


def change_kin(text: str, chance: random.Random) -> str:
    """A token becomes another of its kind, so that the text often still parses."""
    tokens = _TOKEN.findall(text)
    for _ in range(chance.randrange(1, 4)):
        place = chance.randrange(len(tokens))
        kind = tokens[place][:1]
        kin = [t for t in tokens if t[:1] == kind or (kind.isalpha() and t[:1].isalpha())]
        tokens[place] = chance.choice(kin)
    return "".join(tokens)


def change_lines(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    for _ in range(chance.randrange(1, 4)):
        place, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(3):
            case 0:
                lines[place], lines[other] = lines[other], lines[place]
            case 1:
                lines.insert(place, lines[other])
            case 2 if len(lines) > 1:
                del lines[place]
    return "\n".join(lines)


def change_numbers(text: str, chance: random.Random) -> str:
    found = list(_NUMBER.finditer(text))
    for number in sorted(chance.sample(found, min(len(found), 3)), key=lambda m: -m.start()):
        text = text[: number.start()] + chance.choice(_NUMBERS) + text[number.end() :]
    return text


def splice(text: str, chance: random.Random) -> str:
    lines, others = text.split("\n"), chance.choice(corpus()).split("\n")
    return "\n".join(
        lines[: chance.randrange(len(lines))] + others[chance.randrange(len(others)) :]
    )


DAMAGES: tuple[Damage, ...] = (
    change_bytes,
    change_tokens,
    change_kin,
    change_kin,
    change_lines,
    change_numbers,
    splice,
)


def held() -> int:
    """Bytes of addresses that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


@contextmanager
def limits() -> Iterator[None]:
    """An alarm in the middle of what hangs, and no more memory than a text may need."""

    def expire(_: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still at {frame}")

    before = signal.signal(signal.SIGALRM, expire)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held() + MEGABYTES * 2**20, hard))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, before)


def read(text: str) -> Module | ParseError:
    """The module, or why the text is none."""
    try:
        return tn.parse(text)
    except ParseError as error:
        return error


def fault_of(module: Module) -> VerifyError | None:
    """The rule that a module breaks."""
    try:
        verify_module(module)
    except VerifyError as error:
        return error
    return None


def outcome(text: str) -> str:
    """What becomes of a text, as one word."""
    module = read(text)
    if isinstance(module, ParseError):
        assert module.location is not None
        return "unreadable"
    printed = print_module(module)
    assert print_module(tn.parse(printed)) == printed
    fault = fault_of(module)
    assert fault is None or fault.location is not None
    return "right" if fault is None else "refused"


def fuzz(seeds: range) -> Counter[str]:
    texts = corpus()
    found: Counter[str] = Counter()
    for seed in seeds:
        chance = random.Random(seed)
        text = chance.choice(DAMAGES)(chance.choice(texts), chance)
        try:
            with limits():
                found[outcome(text)] += 1
        except Exception as error:
            error.add_note(f"in case {seed}")
            raise
    return found


def test_damaged_texts_are_refused_or_right() -> None:
    found = fuzz(range(1000))
    assert min(found[word] for word in ("unreadable", "refused", "right")) > 20, found


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_damaged_texts_are_refused_or_right(part: int) -> None:
    found = fuzz(range(1000 + part * 2000, 3000 + part * 2000))
    assert sum(found.values()) == 2000
