"""The sizes at which the engine chooses another way to the same answers, or drops state.

No answer depends on them, which tests show: they run with each at its least, never reached, and at
random. Code reads them where it decides, as `thresholds.current.few_matches`, so that a test can
replace the record. A process that starts with `SPASEQ_THRESHOLDS` has others from its begin, and so
have Spark's workers, which inherit it: `NAME=VALUE`, separated by spaces.
"""

from __future__ import annotations

import os
from dataclasses import replace

from spaseq.thresholds.record import Thresholds

VARIABLE = "SPASEQ_THRESHOLDS"
"""The environment variable that forces thresholds."""

current = Thresholds()


def use(chosen: Thresholds) -> Thresholds:
    """Use other thresholds in this process from now on; returns those before."""
    global current
    before, current = current, chosen
    return before


for word in os.environ.get(VARIABLE, "").split():
    name, _, value = word.partition("=")
    use(replace(current, **{name: int(value)}))
