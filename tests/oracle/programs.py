"""Random kernels as Python source: elementwise graphs, reductions, loops with carried state.

Each strategy draws the text of a function `kernel`; `kernel_of` writes it to a module of its own,
so that its source can be read, and makes it a kernel. What a text computes is the same bits under
any correct schedule: sums add small whole numbers, and transcendental functions come last.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import tilenest as tn

Draw = Callable[[st.SearchStrategy[Any]], Any]

FLOAT_BINARY = [
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} / {1}",
    "tn.minimum({0}, {1})",
    "tn.maximum({0}, {1})",
    "tn.fmin({0}, {1})",
    "tn.fmax({0}, {1})",
    "tn.fma({0}, {1}, {0})",
    "tn.where({0} < {1}, {1}, {0})",
    "tn.where({0} >= {1}, {0}, -{1})",
    "tn.where(({0} == {1}) | tn.isnan({0}), {1}, {0})",
    "tn.where(({0} != {1}) & ~({0} > {1}), {1}, {0})",
    "tn.clip({0}, -2.0, {1})",
    "tn.where(tn.isfinite({0}), {0}, {1})",
]
FLOAT_UNARY = [
    "-{0}",
    "abs({0})",
    "tn.sqrt({0})",
    "tn.floor({0})",
    "tn.ceil({0})",
    "tn.trunc({0})",
    "tn.rint({0})",
    "tn.square({0})",
    "tn.reciprocal({0})",
    "{0} * 0.3",
    "1.5 - {0}",
    "{0}**3",
    "{0}.cast(tn.int32).cast(tn.float32)",
    "{0}.cast(tn.float16).cast(tn.float32)",
    "{0}.cast(tn.float64).cast(tn.float32)",
    "tn.where(tn.isinf({0}), 1.0, {0})",
    "{0}.bitcast(tn.int32).bitcast(tn.float32)",
]
INTEGER_BINARY = [
    "{0} + {1}",
    "{0} - {1}",
    "{0} * {1}",
    "{0} // {1}",
    "{0} % {1}",
    "{0} & {1}",
    "{0} | {1}",
    "{0} ^ {1}",
    "{0} << {1}",
    "{0} >> {1}",
    "{0} << ({1} & 31)",
    "{0} >> ({1} & 31)",
    "tn.minimum({0}, {1})",
    "tn.maximum({0}, {1})",
    "tn.where({0} < {1}, {1}, {0})",
    "tn.where({0} == {1}, 7, {0})",
    "tn.clip({0}, -100, {1})",
]
INTEGER_UNARY = [
    "-{0}",
    "~{0}",
    "abs({0})",
    "{0} // 7",
    "{0} % -3",
    "{0} * 12345",
    "{0}**2",
    "{0}.cast(tn.int8).cast(tn.int32)",
    "{0}.cast(tn.int64).cast(tn.int32)",
    "{0}.cast(tn.uint16).cast(tn.int32)",
    "{0}.cast(tn.float32).cast(tn.int32)",
    "17 // {0}",
    "{0} >> 3",
]
LAST = ["exp", "exp2", "expm1", "log", "log2", "log1p", "tanh", "erf", "sin", "cos", "rsqrt"]
INPUTS, OUTPUTS = 3, 3


def _one_of(draw: Draw, items: list[str]) -> str:
    found: str = draw(st.sampled_from(items))
    return found


def _graph(draw: Draw, binary: list[str], unary: list[str], names: list[str]) -> list[str]:
    """Assignments of new names, each a function of earlier ones."""
    lines = []
    for place in range(draw(st.integers(1, 9))):
        one, two = _one_of(draw, names), _one_of(draw, names)
        lines.append(f"t{place} = {_one_of(draw, binary + unary).format(one, two)}")
        names.append(f"t{place}")
    return lines


@st.composite
def elementwise(draw: Draw, dtype: str) -> tuple[str, int]:
    """A graph over three rows of X into the rows of Z, and how many rows those are."""
    block = draw(st.sampled_from([1, 7, 16, 33, 64]))
    names = [f"x{row}" for row in range(INPUTS)]
    is_float = dtype == "float32"
    binary, unary = (FLOAT_BINARY, FLOAT_UNARY) if is_float else (INTEGER_BINARY, INTEGER_UNARY)
    graph = _graph(draw, binary, unary, names)
    results = names[-OUTPUTS:]
    if is_float:
        results.append(f"tn.{_one_of(draw, LAST)}({_one_of(draw, names)})")
    lines = [
        "def kernel(X, Z):",
        f"    n = tn.axis('n', {block})",
        f"    for part in tn.parallel(tn.cdiv(X.extent(1), {block})):",
        f"        s = part.index() * {block}",
        *(f"        x{row} = X[({row}, s), (1, n)]" for row in range(INPUTS)),
        *(f"        {line}" for line in graph),
        *(f"        Z(({row}, s), (1, n)).store({r})" for row, r in enumerate(results)),
    ]
    return _text(lines), len(results)


PROLOGUES = {
    "add": ["x", "x * 2 - 1", "tn.maximum(x, 1)", "x + x", "abs(x)"],
    "multiply": ["tn.where(x > 0, -x // x, x * 0 + 1)"],
    "maximum": ["x", "x * 3 - 1", "-x"],
    "minimum": ["x", "tn.where(x > 1, x * 5, x)", "-x"],
    "bitwise_and": ["x", "x | 8"],
    "bitwise_or": ["x", "x * 4"],
    "bitwise_xor": ["x", "x + 77"],
}


@st.composite
def reductions(draw: Draw) -> tuple[str, str, tuple[int, ...], tuple[int, ...]]:
    """A reduction of all of X into Y with an epilogue over X's shape into Z: the text, the dtype,
    the shape of X and that of Y."""
    dtype = draw(st.sampled_from(["float32", "int32", "float64", "int8", "float16"]))
    names = list(PROLOGUES)[: 4 if "float" in dtype else None]
    reducer = _one_of(draw, names)
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.sampled_from([0, 1, 2, 5, 17, 33, 70][: 7 - rank])) for _ in range(rank))
    axes = draw(st.sets(st.integers(0, rank - 1), min_size=1))
    kept = [axis for axis in range(rank) if axis not in axes]
    policy = draw(st.sampled_from([policy.value for policy in tn.reduction]))
    prologue = _one_of(draw, PROLOGUES[reducer])
    if "float" in dtype:
        prologue = prologue.replace("-x // x", "x * 0 - 1")
    seed = _one_of(draw, ["", "", f", init={draw(st.integers(-1, 1))}"])
    if reducer == "multiply":
        seed = ""
    dims = ", ".join(f"d{axis}" for axis in range(rank)) + ","
    reduced = ", ".join(f"d{axis}" for axis in sorted(axes)) + ","
    lines = [
        "def kernel(X, Y, Z):",
        *(f"    d{axis} = tn.axis('d{axis}', {extent})" for axis, extent in enumerate(shape)),
        f"    x = X[{(0,) * rank}, ({dims})]",
        f"    p = {prologue}",
        f"    r = tn.reduce(p, ({reduced}), tn.{reducer}{seed}, policy=tn.reduction.{policy})",
    ]
    if kept:
        place = ", ".join(f"d{axis}" for axis in kept) + ","
        lines.append(f"    Y({(0,) * len(kept)}, ({place})).store(r)")
    else:
        lines.append("    Y.at(0).store(r)")
    lines.append(
        f"    Z({(0,) * rank}, ({dims})).store({_one_of(draw, ['p - r', 'x + r', 'p * 2'])})"
    )
    return _text(lines), dtype, shape, tuple(shape[axis] for axis in kept) or (1,)


class _Loops:
    """Writes a body of nested loops over tiles a, b, c and the numbers k, p."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.count = 0

    def add(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def tile(self) -> str:
        return _one_of(self.draw, ["a", "b", "c"])

    def block(self, depth: int, handle: str, length: int) -> None:
        for _ in range(self.draw(st.integers(1, length))):
            kinds = [self.assign, self.assign, self.swap, self.number]
            kinds += [self.loop, self.loop, self.condition] if depth < 4 else []
            self.draw(st.sampled_from(kinds))(depth, handle)

    def assign(self, depth: int, handle: str) -> None:
        del handle
        one, two = self.tile(), self.tile()
        forms = [
            f"{one} + {two}",
            f"{one} - {two}",
            one,
            f"{one} * 0.5 + {two}",
            f"{one} + tn.scalar(k, tn.float32)",
        ]
        forms += [f"tn.maximum({one}, {two})", f"X[p % 5, w] + {one}"]
        self.add(depth, f"{self.tile()} = {_one_of(self.draw, forms)}")

    def swap(self, depth: int, handle: str) -> None:
        del handle
        one, two = self.draw(st.permutations(["a", "b", "c"]))[:2]
        if self.draw(st.booleans()):
            self.add(depth, f"{one}, {two} = {two}, {one}")
            return
        self.add(depth, f"old = {one}")
        self.add(depth, f"{one} = {one} * 0.25 - {two}")
        self.add(depth, f"{two} = old")

    def number(self, depth: int, handle: str) -> None:
        del handle
        forms = ["k + 1", "p - k", "p", "3", "k * 2 - p", "k // 3 + p % 7"]
        self.add(depth, f"{_one_of(self.draw, ['k', 'p'])} = {_one_of(self.draw, forms)}")

    def loop(self, depth: int, handle: str) -> None:
        self.count += 1
        step = f"s{self.count}"
        extent = _one_of(self.draw, ["n", "n", "2", "0", "range(1, n, 2)"])
        kind = _one_of(self.draw, ["serial", "pipeline"])
        self.add(depth, f"for {step} in {handle}.{kind}({extent}):")
        self.block(depth + 1, step, 3)
        if self.draw(st.booleans()):
            self.add(depth + 1, f"k = k + {step}.index()")

    def condition(self, depth: int, handle: str) -> None:
        forms = ["n > 1", "n == 0", "n > 0 and n < 3", "k > 1", "p > k", "not n == 3"]
        self.add(depth, f"if {_one_of(self.draw, forms)}:")
        self.block(depth + 1, handle, 2)
        if self.draw(st.booleans()):
            self.add(depth, "else:")
            self.block(depth + 1, handle, 2)


@st.composite
def loops(draw: Draw) -> str:
    """Nested loops that carry tiles and numbers, over X of 64 elements into 4 rows of Y."""
    writer = _Loops(draw)
    width = draw(st.sampled_from([1, 5, 16, 35]))
    parallel = draw(st.booleans())
    depth, handle, row = (2, "root", "row") if parallel else (1, "tn.root()", "0")
    writer.lines = ["def kernel(X, n, Y):", f"    w = tn.axis('w', {width})"]
    if parallel:
        writer.add(1, "for root in tn.parallel(Y.extent(0)):")
        writer.add(2, "row = root.index()")
    for place, name in enumerate("abc"):
        writer.add(depth, f"{name} = X[{place} + {row}, w]")
    writer.add(depth, "k = 1")
    writer.add(depth, "p = 2")
    writer.block(depth, handle, 4)
    for place, result in enumerate(["a", "b", "c", "a - a + tn.scalar(k - p, tn.float32)"]):
        writer.add(depth, f"Y(({row}, {place}, 0), (1, 1, w)).store({result})")
    return _text(writer.lines)


STEPS = ["{s} + {e}", "{e} + {s}", "tn.maximum({s}, {e})", "tn.minimum({e}, {s})"]
CHAINS = ["{s} * 0.5 + {e}", "{e} - {s}", "tn.where({s} > {e}, {s} - {e}, {e})"]


@st.composite
def region_reductions(draw: Draw) -> tuple[str, tuple[int, int]]:
    """Reduce nests over an axis of each row's tile, or over its rows, with up to three states: the
    text and X's shape. Z has X's shape, S a row for each state."""
    shape = draw(st.sampled_from([(1, 1), (3, 33), (5, 7), (2, 0), (4, 70), (17, 2)]))
    along_rows = draw(st.booleans())
    count = draw(st.integers(1, 3))
    policy = draw(st.sampled_from([policy.value for policy in tn.reduction]))
    steps = STEPS + (CHAINS if policy.startswith("fold") else [])
    element = draw(st.sampled_from(["x.at(c)", "x.at(c) * 2", "(abs(x.at(c)) - 1)"]))
    lines = [
        "def kernel(X, S, Z):",
        f"    m, n = tn.axis('m', {shape[0]}), tn.axis('n', {shape[1]})",
        "    x = X[(0, 0), (m, n)]",
    ]
    reduced, kept = ("m", "n") if along_rows else ("n", "m")
    for place in range(count):
        seed = _one_of(draw, ["0.0", "1.0", "-3.0"])
        lines.append(f"    s{place} = tn.full({kept}, {seed}, tn.float32)")
    lines.append(f"    for c in tn.root().reduce({reduced}, policy=tn.reduction.{policy}):")
    for place in range(count):
        others = [f"s{other}" for other in range(place)] if policy.startswith("fold") else []
        given = _one_of(draw, [element, *others])
        lines.append(f"        s{place} = {_one_of(draw, steps).format(s=f's{place}', e=given)}")
    lines += [f"    S(({place}, 0), (1, {kept})).store(s{place})" for place in range(count)]
    last = _one_of(draw, ["x - s0", f"tn.maximum(x, s{count - 1})", "x * 2 + s0"])
    lines.append(f"    Z((0, 0), (m, n)).store({last})")
    return _text(lines), shape


def _text(lines: list[str]) -> str:
    return "\n".join(['"""A random kernel."""', "import tilenest as tn", "", "", *lines, ""])


def kernel_of(text: str, folder: Path) -> tn.Kernel:
    """The kernel of a text, as a module of its own defines it."""
    path = folder / f"random_kernel_{len(list(folder.iterdir()))}.py"
    path.write_text(text)
    found = importlib.util.spec_from_file_location(path.stem, path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return tn.kernel(module.kernel)
