"""The program that times rearranged programs compiles each without the passes, and with them."""

import numpy as np

from tilenest import passes
from tools.rearrangement_times import REARRANGING, THREADS, sum_in_a_loop, times_of, without


def test_a_program_is_timed_both_ways() -> None:
    every = passes.SCHEDULE_PASSES
    source = np.ones((64, 1024), np.float32)
    with without(REARRANGING):
        assert len(passes.SCHEDULE_PASSES) == len(every) - len(REARRANGING)
        apart = times_of(sum_in_a_loop, source, 1)
    assert every == passes.SCHEDULE_PASSES
    assert len(apart) == len(times_of(sum_in_a_loop, source, 1)) == len(THREADS)
    assert min(apart) > 0
