"""What tests of several packages share.

Hypothesis draws the same examples in every run, so that what passed passes again; with
`SPASEQ_FRESH` set to anything it draws others each time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile(
    "spaseq",
    deadline=None,  # the first call of a kernel compiles it
    derandomize="SPASEQ_FRESH" not in os.environ,
)
settings.load_profile("spaseq")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """The process's Spark session; `spaseq.run(..., runtime="spark")` uses the same one."""
    from spaseq.runtime.spark.session.spark_session import session

    running = session()
    yield running
    running.stop()
