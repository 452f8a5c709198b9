"""Followed runs on a standalone cluster, with processes killed at random times (see `soak`)."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.runtime.soak import Plan, soak
from tests.runtime.spark.session.cluster import standalone_cluster

pytestmark = pytest.mark.spark

SEED = int(os.environ.get("SPASEQ_SOAK_SEED", "1"))


@pytest.mark.thorough
def test_two_minutes_with_one_kill_of_each_kind(tmp_path: Path) -> None:
    plan = Plan.drawn(Random(SEED), seconds=110, per_second=6, each=1)
    with standalone_cluster(tmp_path) as cluster:
        soak(tmp_path, cluster, SEED, plan)


@pytest.mark.slow
def test_a_quarter_of_an_hour_with_several_kills_of_each_kind(tmp_path: Path) -> None:
    plan = Plan.drawn(Random(SEED), seconds=900, per_second=6, each=4)
    with standalone_cluster(tmp_path) as cluster:
        soak(tmp_path, cluster, SEED, plan)
