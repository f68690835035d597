"""The measuring core: paired samples, checked outputs, medians and quartiles.

In come contestants: callables that each write their own output for the same inputs. Out come frozen
results. Two contestants are sampled in turn within one process, so what slows the machine slows
both; the ratio is the median of the ratios of such pairs. Nothing is timed before its output was
compared with a float64 reference.
"""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[[], object]

SAMPLE_SECONDS = 200e-6
COMPARISON_SECONDS = 0.8
FEWEST_PAIRS = 7
MOST_PAIRS = 41


@dataclass(frozen=True, slots=True)
class Contestant:
    """Something to time; `run` fills `output`, or returns a fresh result instead."""

    name: str
    run: Run
    output: Array


@dataclass(frozen=True, slots=True)
class Refused:
    """A contestant that is not timed, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Quartiles:
    """The middle of a set of samples."""

    low: float
    median: float
    high: float

    @staticmethod
    def of(values: Sequence[float]) -> "Quartiles":
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return Quartiles(low, median, high)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Ours against one peer: microseconds of each, and the peer's time over ours."""

    peer: str
    ours_us: float
    peer_us: float
    ratio: Quartiles
    pairs: int


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A limit of the machine: `amount` of work (flop or bytes) that `run` does at full speed."""

    name: str
    unit: str
    run: Run
    amount: float


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `amount` is the flop or the bytes of one call."""

    kernel: str
    shape: str
    threads: int
    amount: float
    unit: str
    comparisons: tuple[Comparison, ...]
    refused: tuple[Refused, ...]

    @property
    def best(self) -> Comparison | None:
        """The comparison with the fastest peer."""
        return min(self.comparisons, key=lambda one: one.peer_us, default=None)

    @property
    def rate(self) -> float | None:
        """Our GFLOP/s or GB/s, as measured beside the best peer."""
        return self.amount / self.best.ours_us / 1e3 if self.best else None


def error_of(output: Array, reference: Array) -> float:
    """The largest error, in units of the reference's largest magnitude (1 at least); NaN is inf."""
    if output.size == 0:
        return 0.0
    error = np.abs(output.astype(np.float64) - reference)
    largest = float(np.max(error / max(1.0, float(np.max(np.abs(reference))))))
    return largest if largest == largest else float("inf")


def check(contestant: Contestant, reference: Array, bound: float) -> Refused | None:
    """Run once on a poisoned output; a wrong result is a reason not to be timed."""
    contestant.output.fill(np.nan if contestant.output.dtype.kind == "f" else -1)
    result = contestant.run()
    error = error_of(contestant.output if result is None else np.asarray(result), reference)
    if error <= bound:
        return None
    return Refused(contestant.name, f"wrong result: error {error:.2e}, bound {bound:.2e}")


def time_batch(run: Run, calls: int) -> float:
    """Seconds a call, over one batch."""
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def calibrate(run: Run) -> int:
    """Calls in a batch that lasts a sample's time at least."""
    run()
    calls = 1
    while (seconds := time_batch(run, calls) * calls) < SAMPLE_SECONDS:
        calls = max(calls + 1, int(calls * 1.2 * SAMPLE_SECONDS / max(seconds, 1e-9)))
    return calls


def take_sample(run: Run, calls: int, pause: float) -> float:
    """Seconds a call, after a pause and one call that brings caches and threads back."""
    if pause:
        time.sleep(pause)
    run()
    return time_batch(run, calls)


def compare(ours: Contestant, peer: Contestant, pause: float = 0.0) -> Comparison:
    """Sample the two in turn, the first one alternating."""
    our_calls, peer_calls = calibrate(ours.run), calibrate(peer.run)
    start = time.perf_counter()
    pairs: list[tuple[float, float]] = []
    while len(pairs) < FEWEST_PAIRS or (
        len(pairs) < MOST_PAIRS and time.perf_counter() - start < COMPARISON_SECONDS
    ):
        if len(pairs) % 2:
            peer_time = take_sample(peer.run, peer_calls, pause)
            our_time = take_sample(ours.run, our_calls, pause)
        else:
            our_time = take_sample(ours.run, our_calls, pause)
            peer_time = take_sample(peer.run, peer_calls, pause)
        pairs.append((our_time, peer_time))
    return Comparison(
        peer=peer.name,
        ours_us=statistics.median(our_time for our_time, _ in pairs) * 1e6,
        peer_us=statistics.median(peer_time for _, peer_time in pairs) * 1e6,
        ratio=Quartiles.of([peer_time / our_time for our_time, peer_time in pairs]),
        pairs=len(pairs),
    )


def measure_ceiling(ceiling: Ceiling, samples: int = 15) -> float:
    """The best rate of a few samples, in 1e9 a second: a limit is what was reached once."""
    calls = calibrate(ceiling.run)
    seconds = min(time_batch(ceiling.run, calls) for _ in range(samples))
    return ceiling.amount / seconds / 1e9


def write_json(
    path: Path, rows: Sequence[Row], ceilings: dict[str, float], costs: dict[str, float]
) -> None:
    """Everything that was measured, machine-readable."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"ceilings": ceilings, "costs": costs, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
