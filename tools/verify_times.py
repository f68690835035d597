"""Times the verifier on a matrix product in each form, and says which rules take the time.

Run `python -m tools.verify_times [EXTENT]` at the root of the repository. In: the extent of the
square matrices, by default 1024. Out: for the module after capture, after every pass and in machine
form, its number of operations and the milliseconds of the first verification and of the median one;
then the costliest rules of the three forms. Exits with 1 when the median of one of the forms takes
more than 10 ms.
"""

import gc
import sys
import time
from collections.abc import Iterator
from statistics import median
from typing import Any

import numpy as np

import tilenest as tn
from tilenest.driver import host
from tilenest.ir import Module, Rewriter, Rule, Subject, clone_module
from tilenest.machine import cpu_target
from tilenest.passes import SCHEDULE_PASSES, lower_machine, simplify_machine
from tilenest.verify import RULE_STEPS, verify_module

REPEATS = 15
MOST = 0.010
SHOWN = 6


@tn.kernel
def gemm(A: Any, B: Any, C: Any, *, bm: int = 96, bn: int = 256, bk: int = 256) -> None:
    """The product that the front page shows."""
    M, K = A.shape
    N = B.shape[1]
    m, n, k = tn.axis("m", bm), tn.axis("n", bn), tn.axis("k", bk)
    for block in tn.parallel(tn.cdiv(M, bm), tn.cdiv(N, bn)):
        i, j = block.index()
        acc: Any = tn.zeros((m, n), tn.float32)
        for step in block.pipeline(tn.cdiv(K, bk), window=2):
            a = A[(i * bm, step.index() * bk), (m, k)]
            b = B[(step.index() * bk, j * bn), (k, n)]
            acc = tn.mma(a, b, acc)
        C((i * bm, j * bn), (m, n)).store(acc)


def stages(extent: int) -> Iterator[tuple[str, Module, bool]]:
    """Every stage of the product by its name, and whether a form is complete there."""
    square = np.zeros((extent, extent), np.float32)
    module = clone_module(gemm.capture(square, square.copy(), square.copy()))
    yield "candidate", clone_module(module), True
    rewriter = Rewriter()
    for name, step in SCHEDULE_PASSES:
        step(module, cpu_target(host().machine), rewriter)
        is_last = step is SCHEDULE_PASSES[-1][1]
        yield f"scheduled: {name}" if is_last else name, clone_module(module), is_last
    machine = lower_machine(module)
    yield "lower to loops", clone_module(machine), False
    simplify_machine(machine)
    yield "machine", machine, True


def seconds_of(module: Module) -> list[float]:
    """What each of some verifications takes of a processor, the first one first."""
    found = []
    gc.collect()
    for _ in range(REPEATS):
        start = time.process_time()
        verify_module(module)
        found.append(time.process_time() - start)
    return found


def costliest(module: Module) -> list[tuple[float, Rule]]:
    """The rules that take the longest, by the median of some runs."""
    subject = Subject(module)
    found = []
    for rule in (rule for rules in RULE_STEPS for rule in rules):
        times = []
        for _ in range(REPEATS):
            start = time.process_time()
            list(rule.check(subject))
            times.append(time.process_time() - start)
        found.append((median(times), rule))
    return sorted(found, key=lambda pair: -pair[0])[:SHOWN]


def main(extent: int) -> int:
    print(f"{'stage':32} {'operations':>10} {'first':>8} {'median':>8}  milliseconds")
    forms = []
    slow = 0
    for name, module, is_form in stages(extent):
        seconds = seconds_of(module)
        count = sum(1 for _ in module.walk())
        print(f"{name:32} {count:10} {1e3 * seconds[0]:8.2f} {1e3 * median(seconds):8.2f}")
        if is_form:
            forms.append((name, module))
            slow += median(seconds) > MOST
    for name, module in forms:
        print(f"\nrules of {name}")
        for spent, rule in costliest(module):
            print(f"  {rule.id:6} {1e3 * spent:6.2f} ms  {rule.title}")
    return int(slow > 0)


if __name__ == "__main__":
    sys.exit(main(*[int(extent) for extent in sys.argv[1:2] or ["1024"]]))
