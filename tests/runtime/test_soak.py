"""Followed runs on a standalone cluster, with processes killed at random times (see `soak`)."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random

import pytest

from tests.runtime.soak import STARTS, Plan, Storm, soak, storm
from tests.runtime.spark.session.cluster import standalone_cluster

pytestmark = pytest.mark.spark

KILLS = int(os.environ.get("SPASEQ_KILLS", "1000"))
SECONDS = float(os.environ.get("SPASEQ_KILLS_SECONDS", "inf"))
SEED = int(os.environ.get("SPASEQ_SOAK_SEED", "1"))


@pytest.mark.slow
def test_one_kill_of_each_kind(tmp_path: Path) -> None:
    plan = Plan.drawn(Random(SEED), seconds=20, per_second=6, each=1)
    with standalone_cluster(tmp_path) as cluster:
        soak(tmp_path, cluster, SEED, plan)


@pytest.mark.slow
def test_a_quarter_of_an_hour_with_several_kills_of_each_kind(tmp_path: Path) -> None:
    plan = Plan.drawn(Random(SEED), seconds=900, per_second=6, each=4)
    with standalone_cluster(tmp_path) as cluster:
        soak(tmp_path, cluster, SEED, plan)


@pytest.mark.slow
def test_a_thousand_kills(tmp_path: Path) -> None:
    """`SPASEQ_KILLS` is their number; 600 took 37 minutes on two busy cores.

    After `SPASEQ_KILLS_SECONDS` the storm ends, even with fewer kills.
    """
    _weather(tmp_path, Storm(KILLS, patience=1000, seconds=SECONDS))


@pytest.mark.slow
def test_kills_that_make_spark_give_up(tmp_path: Path) -> None:
    """Spark gives up after four failures of a task, and is started anew."""
    _weather(tmp_path, Storm(KILLS // 20))


def _weather(directory: Path, plan: Storm) -> None:
    begun = time.monotonic()
    with standalone_cluster(directory) as cluster:
        killed = storm(directory, cluster, SEED, plan)
    starts = killed.pop(STARTS)
    print(
        f"{killed.total()} kills of followed runs in {time.monotonic() - begun:.0f} s: "
        f"{dict(killed)}; {starts} starts of the driver"
    )
