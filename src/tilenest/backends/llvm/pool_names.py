"""The names that the pool's object exports, apart from how the pool is written.

`RUN` hands a range of work to the pool, `SET_THREADS` and `AFTER_FORK` are for Python, `ACQUIRE`
and `RELEASE` lend scratch memory. Loading compiled code needs the names only, so it need not
import the writers of LLVM text.
"""

RUN = "tilenest_pool_run"
SET_THREADS = "tilenest_pool_set_threads"
AFTER_FORK = "tilenest_pool_after_fork"
ACQUIRE = "tilenest_pool_acquire"
RELEASE = "tilenest_pool_release"
