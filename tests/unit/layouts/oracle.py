"""What the layout tests judge by: formulas as plain Python trees, evaluated on their own.

A tree is an int, `("d", i)`, `("s", i)` or `(operator, left, right)`. `value_of` gives its value
at a point without the package; `build` makes the package's expression of it.
"""

from collections.abc import Sequence

from hypothesis import strategies as st

from tilenest.layouts import (
    DimRef,
    IndexExpr,
    Sym,
    as_index_expr,
    bit_and,
    shift_left,
    shift_right,
    xor,
)

BITWISE = {"^": xor, "&": bit_and, "<<": shift_left, ">>": shift_right}
N_DIMS = 3
N_SYMS = 2
Tree = int | tuple[str, int] | tuple[str, "Tree", "Tree"]

leaves: st.SearchStrategy[Tree] = st.one_of(
    st.integers(-13, 13),
    st.tuples(st.just("d"), st.integers(0, N_DIMS - 1)),
    st.tuples(st.just("s"), st.integers(0, N_SYMS - 1)),
)
trees: st.SearchStrategy[Tree] = st.recursive(
    leaves,
    lambda inner: st.tuples(st.sampled_from(["+", "-", "*", "//", "%"]), inner, inner),
    max_leaves=8,
)
# Sums of scaled leaves under constant divisions: the shape that views and tiles produce.
sums: st.SearchStrategy[Tree] = st.recursive(
    st.tuples(st.just("*"), leaves, st.sampled_from([1, 2, 3, 4, 6, 12])),
    lambda inner: st.one_of(
        st.tuples(st.just("+"), inner, inner),
        st.tuples(st.sampled_from(["//", "%"]), inner, st.sampled_from([2, 3, 4, 6, 12])),
    ),
    max_leaves=8,
)
# Swizzles: bits of coordinates moved by constant counts, the odd ones included, and joined.
shifts: st.SearchStrategy[Tree] = st.sampled_from([-2, 0, 1, 2, 3, 5, 63, 64])
bits: st.SearchStrategy[Tree] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(["^", "&", "+", "-"]), inner, inner),
        st.tuples(st.sampled_from(["<<", ">>"]), inner, shifts | leaves),
        st.tuples(st.sampled_from(["//", "%"]), inner, st.sampled_from([2, 4, 8])),
    ),
    max_leaves=6,
)
any_tree = st.one_of(trees, sums, bits)
dims = st.tuples(*[st.integers(-9, 9)] * N_DIMS)
syms = st.tuples(*[st.integers(-9, 9)] * N_SYMS)


def value_of(tree: Tree, dims: Sequence[int], syms: Sequence[int]) -> int:
    if isinstance(tree, int):
        return tree
    if len(tree) == 2:
        return dims[tree[1]] if tree[0] == "d" else syms[tree[1]]
    operator, left, right = tree
    a, b = value_of(left, dims, syms), value_of(right, dims, syms)
    if operator in ("//", "%") and b == 0:
        return 0
    if operator in ("<<", ">>") and not 0 <= b <= 63:
        return -1 if operator == ">>" and a < 0 else 0
    if operator in ("<<", ">>"):
        return a << b if operator == "<<" else a >> b
    results = {"+": a + b, "-": a - b, "*": a * b, "^": a ^ b, "&": a & b}
    if operator in results:
        return results[operator]
    return a // b if operator == "//" else a % b


def build(tree: Tree) -> IndexExpr:
    if isinstance(tree, int):
        return as_index_expr(tree)
    if len(tree) == 2:
        return DimRef(tree[1]) if tree[0] == "d" else Sym(tree[1])
    operator, left, right = tree
    a, b = build(left), build(right)
    match operator:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "//":
            return a // b
        case "%":
            return a % b
    return BITWISE[operator](a, b)
