"""Shared set-up of all tests: verification, the object cache, the Hypothesis profiles.

Every compilation is verified after each pass, here and in processes that tests start. Code is kept
in a folder of the session's own, so no test runs what another version of a pass has made. `ci` (the
default profile) tries the same few examples on every run, so a red test stays red. `long` searches
for new ones: `HYPOTHESIS_PROFILE=long make test-all`. Timing never fails an example: the first one
compiles.
"""

import os
import tempfile

from hypothesis import HealthCheck, settings

_cache = tempfile.TemporaryDirectory(prefix="tilenest-tests-")
os.environ.setdefault("TILENEST_CACHE_DIR", _cache.name)
os.environ.setdefault("TILENEST_VERIFY", "1")

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long",
    deadline=None,
    max_examples=1000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
