"""Failures of Spark become errors that say in one line what went wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from spaseq.errors import RunError
from spaseq.runtime.spark.shared import spark_errors

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("rows", [10, 3_000_000])
def test_a_lost_worker_is_named(spark: Any, rows: int) -> None:
    """Spark may still be writing to the worker: then the cause of the loss is a closed pipe."""

    def die(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    with pytest.raises(RunError, match="Python worker exited unexpectedly"), spark_errors():
        spark.range(rows).mapInPandas(die, "id long").collect()
