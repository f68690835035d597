"""Shared set-up of all tests: the Hypothesis profiles.

`ci` (the default) tries the same few examples on every run, so a red test stays red. `long`
searches for new ones: `HYPOTHESIS_PROFILE=long make test-all`. Timing never fails an example: the
first one compiles.
"""

import os

from hypothesis import HealthCheck, settings

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
