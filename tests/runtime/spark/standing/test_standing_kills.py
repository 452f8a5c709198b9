"""A standing run on Spark: a query sees the events from the point where it came, killed or not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spaseq.runtime.spark.standing.standing_engine import SparkEngines
from tests.runtime.live.test_standing_run import AT_ONCE, killed_at_random, save_every
from tests.thresholds import Force

pytestmark = [pytest.mark.spark, pytest.mark.thorough]


@pytest.mark.parametrize("fewest", [2, 8])
def test_kills_change_nothing_on_spark(
    spark: Any, tmp_path: Path, fewest: int, monkeypatch: pytest.MonkeyPatch, force: Force
) -> None:
    force(f"family_queries={fewest}")
    save_every(2.0, monkeypatch)
    killed_at_random(tmp_path, fewest, 120, replace(AT_ONCE, engine=SparkEngines()))
