"""The benchmark program: every kernel against its peers on one thread and on two, as one table.

Reads nothing, prints the ceilings, the table and the costs, writes `build/benchmarks/results.json`.
`benchmarks/README.md` says how a number is taken.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import tilenest as tn
from benchmarks.cases import Case, cases
from benchmarks.ceilings import ceilings
from benchmarks.costs import measure_costs
from benchmarks.harness import (
    Comparison,
    Contestant,
    Refused,
    Row,
    check,
    compare,
    measure_ceiling,
    write_json,
)
from benchmarks.peers import contestants, use_threads

RESULTS = Path("build/benchmarks/results.json")
# The first two make OpenBLAS pick other kernels, the others cap the threads of a peer.
DISTURBING = (
    "OPENBLAS_CORETYPE",
    "OPENBLAS_L2_SIZE",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
)
# Thread pools spin for milliseconds after their work; on several threads a contestant waits.
PAUSE_SECONDS = 0.010


def main() -> None:
    restart_undisturbed()
    arguments = parse_arguments()
    console = Console(width=None if sys.stdout.isatty() else 150)
    torch.set_grad_enabled(False)
    limits = {f"{c.name}, {c.unit}": measure_ceiling(c) for c in ceilings()}
    for name, rate in limits.items():
        console.print(f"{name}: {rate:.1f}")
    rows = []
    for threads in arguments.threads:
        tn.set_num_threads(threads)
        use_threads(threads)
        for case in cases(arguments.only):
            rows.append(measure(case, threads))
            console.print(summary(rows[-1]))
    console.print(table(rows))
    costs = measure_costs()
    for name, microseconds in costs.items():
        console.print(f"{name}: {readable(microseconds)}")
    write_json(RESULTS, rows, limits, costs)
    console.print(f"written: {RESULTS}")


def readable(microseconds: float) -> str:
    return f"{microseconds:.1f} us" if microseconds < 1000 else f"{microseconds / 1000:.0f} ms"


def restart_undisturbed() -> None:
    """Run again without the variables that libraries read when they are loaded."""
    if any(name in os.environ for name in DISTURBING):
        kept = {name: value for name, value in os.environ.items() if name not in DISTURBING}
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.run", *sys.argv[1:]], kept)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.run", description=__doc__)
    parser.add_argument("--only", help="one kernel, by its name in the table")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    return parser.parse_args()


def measure(case: Case, threads: int) -> Row:
    """Check everyone, then time ours against each peer that was right."""
    output = np.empty_like(case.like)
    ours = Contestant("tilenest", lambda: case.ours(case.inputs, output), output)
    refused = [fault] if (fault := check(ours, case.reference, case.bound)) else []
    comparisons: list[Comparison] = []
    for peer in contestants(case.kernel, case.inputs, case.like):
        if isinstance(peer, Refused):
            refused.append(peer)
        elif wrong := check(peer, case.reference, case.bound):
            refused.append(wrong)
        elif not fault:
            comparisons.append(compare(ours, peer, PAUSE_SECONDS if threads > 1 else 0.0))
    return Row(
        kernel=case.kernel,
        shape=case.shape,
        threads=threads,
        amount=case.amount,
        unit=case.unit,
        comparisons=tuple(comparisons),
        refused=tuple(refused),
    )


def cells(row: Row) -> list[str]:
    """A row's text, column by column."""
    notes = "; ".join(f"{one.name} {one.reason}" for one in row.refused)
    head = [row.kernel, row.shape, str(row.threads)]
    best = row.best
    if best is None:
        return [*head, "-", "-", "-", "-", "-", notes]
    ratio = best.ratio
    return [
        *head,
        f"{best.ours_us:.1f}",
        best.peer,
        f"{best.peer_us:.1f}",
        f"{ratio.median:.2f} [{ratio.low:.2f}..{ratio.high:.2f}]",
        f"{row.rate:.1f} {row.unit}",
        notes,
    ]


def summary(row: Row) -> str:
    return "  ".join(cells(row))


def table(rows: list[Row]) -> Table:
    result = Table(title="peer's time over ours: above 1 we are faster")
    for name in ("kernel", "shape", "threads"):
        result.add_column(name, no_wrap=True)
    for name in ("ours us", "best peer", "peer us", "ratio [quartiles]", "rate"):
        result.add_column(name, justify="right", no_wrap=True)
    result.add_column("not timed")
    result.add_column("x 1 thread", justify="right", no_wrap=True)
    for row in rows:
        result.add_row(*cells(row), against_one_thread(row, rows))
    return result


def against_one_thread(row: Row, rows: list[Row]) -> str:
    """How many times faster we are than on one thread, from the two rows' medians."""
    alone = {(one.kernel, one.shape): one.best for one in rows if one.threads == 1}
    best = alone.get((row.kernel, row.shape))
    if row.threads == 1 or best is None or row.best is None:
        return ""
    return f"{best.ours_us / row.best.ours_us:.2f}"


if __name__ == "__main__":
    main()
