"""Calls of atoms: one table from the id in the machine's catalogue to the function that writes it.

In: an `atom.call` whose contract the verifier has checked. Out: the instructions of the atom. An id
that is not in the table is refused before anything is written.
"""

from collections.abc import Callable, Mapping

from tilenest.backends.llvm.emit_frame import Frame
from tilenest.backends.llvm.emit_scalar import apply_function
from tilenest.dialects import AtomCall
from tilenest.ir import COMBINE, element_dtype
from tilenest.machine import LANE_REDUCTIONS, TRANSPOSE_LANES


def emit_atom(frame: Frame, op: AtomCall) -> None:
    ATOM_EMITTERS[op.atom](frame, op)


def emit_reduce_lanes(frame: Frame, op: AtomCall) -> None:
    """Lane l meets lane l + lanes/2, again and again."""
    f, value = frame.text, frame.value(op.arguments[0])
    dtype, function = element_dtype(op.result.type), op.semantic.removeprefix(COMBINE)
    while value.type.lanes > 1:
        lanes = value.type.lanes
        assert lanes % 2 == 0, "lanes are reduced by halving"
        low = f.shuffle(value, None, range(lanes // 2))
        high = f.shuffle(value, None, range(lanes // 2, lanes))
        value = apply_function(frame, function, dtype, (low, high))
    frame.bind(op.results, [value])


def emit_transpose(frame: Frame, op: AtomCall) -> None:
    """Swap the off-diagonal blocks of ever larger squares: log2(lanes) rounds of shuffles."""
    f, rows = frame.text, [frame.value(row) for row in op.arguments]
    lanes = len(rows)
    step = 1
    while step < lanes:
        # Lane numbers from `lanes` on are those of the second operand.
        low = [lane if not lane & step else lanes + lane - step for lane in range(lanes)]
        high = [lane + step if not lane & step else lanes + lane for lane in range(lanes)]
        for i in (i for i in range(lanes) if not i & step):
            first, second = rows[i], rows[i + step]
            rows[i] = f.shuffle(first, second, low)
            rows[i + step] = f.shuffle(first, second, high)
        step *= 2
    frame.bind(op.results, rows)


ATOM_EMITTERS: Mapping[str, Callable[[Frame, AtomCall], None]] = {
    TRANSPOSE_LANES: emit_transpose,
    **dict.fromkeys(LANE_REDUCTIONS.values(), emit_reduce_lanes),
}
"""The atoms of the catalogue that become instructions here."""
