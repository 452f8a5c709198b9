"""Ctrl-C ends a run on Spark once it has completed what it does, and not its batch."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal
from spaseq.runtime.job.interrupts import until_interrupted
from spaseq.runtime.spark.standing.standing_engine import SparkEngines

try:
    with until_interrupted() as asked:
        spark = SparkEngines("local[1]").session()
        os.kill(os.getpid(), signal.SIGINT)
        assert asked.wait(20)
        print(spark.sparkContext.parallelize([1, 2], 1).sum())
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.spark(apart=True)
def test_the_first_interrupt_lets_the_batch_end() -> None:
    """A new context of PySpark takes the signal, and cancels all jobs."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.split() == ["3", "interrupted"], done.stderr
