"""A judge for the passes: one program, interpreted as captured and after every step.

In: a kernel, specs and arrays. Out: the scheduled module and the plan; the test has failed if any
step changed a bit of any argument, or more than rounding where a policy lets folds be regrouped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilenest.capture import ALONE, ArraySpec, capture
from tilenest.decisions import Decision
from tilenest.dialects import MapReducePost
from tilenest.interp import interpret
from tilenest.ir import DTYPES, DType, Function, Module, Operation, Rewriter
from tilenest.machine import AVX512, Machine, cpu_target
from tilenest.passes import SCHEDULE_PASSES
from tilenest.verify import verify_module

Array = np.ndarray[Any, Any]
_DTYPE_OF = {dtype.name.rstrip("_"): dtype for dtype in DTYPES}


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What came out, and the arguments as the last step left them."""

    module: Module
    decisions: tuple[Decision, ...]
    arguments: tuple[Array, ...]

    @property
    def function(self) -> Function:
        return next(iter(self.module.functions))

    def all(self, kind: type[Operation]) -> list[Any]:
        return [op for op in self.module.walk() if isinstance(op, kind)]

    @property
    def work(self) -> list[MapReducePost]:
        return self.all(MapReducePost)


def specs_of(arrays: Sequence[Array]) -> list[ArraySpec]:
    first = {id(array): place for place, array in reversed(list(enumerate(arrays)))}
    counts = Counter(id(array) for array in arrays)
    return [
        ArraySpec(
            dtype_of(array),
            array.shape,
            group=first[id(array)] if counts[id(array)] > 1 else ALONE,
        )
        for array in arrays
    ]


def dtype_of(array: Array) -> DType:
    return _DTYPE_OF[array.dtype.name]


def run_stepwise(
    kernel: Any,
    arrays: Sequence[Array],
    configuration: Mapping[str, object] | None = None,
    machine: Machine = AVX512,
) -> Scheduled:
    """Schedule a kernel step by step, comparing what it does to the arrays after each.

    An array given twice is one argument that coincides with another.
    """
    module = capture(kernel, specs_of(arrays), configuration or {}).module
    expected = run(module, arrays)
    decisions: list[Decision] = []
    rewriter = Rewriter()
    for name, step in SCHEDULE_PASSES:
        decisions += step(module, cpu_target(machine), rewriter)
        verify_module(module)
        rewriter.analyses.check()
        for wanted, found in zip(expected, run(module, arrays), strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=f"after {name}")
    return Scheduled(module, tuple(decisions), tuple(run(module, arrays)))


def run(module: Module, arrays: Sequence[Array]) -> list[Array]:
    """The arrays after one run on copies."""
    copies = {id(array): array.copy() for array in arrays}
    interpret(module, [copies[id(array)] for array in arrays])
    return [copies[id(array)] for array in arrays]
