"""When a match is possible: a row of each required GPM in one partition within a window."""

from __future__ import annotations

import random

import numpy as np
import pytest

from spaseq.automaton.batch.kernels.near_rows import NEVER
from spaseq.stages.waiting_rows import LatestRows


def possible(latest: LatestRows, *rows: tuple[int, int, int]) -> int:
    time, gpm, key = zip(*rows, strict=True)
    return latest.possible(np.array(time), np.array(gpm, np.int32), np.array(key))


def test_a_match_needs_each_required_gpm_in_one_partition_and_window() -> None:
    latest = LatestRows([0, 2], 3, 10)
    assert possible(latest, (0, 0, 7), (5, 2, 8)) == NEVER  # two partitions
    assert possible(latest, (6, 1, 7), (7, -1, 7)) == NEVER  # GPM 1 and bare events do not count
    assert possible(latest, (10, 2, 7)) == 10
    assert possible(latest, (21, 0, 7)) == NEVER  # 11 ms later
    assert possible(latest, (22, 2, 7), (90, 2, 7)) == 22


def test_rows_of_one_call_may_come_in_any_order() -> None:
    assert possible(LatestRows([0, 1], 2, 10), (30, 1, 7), (0, 0, 7), (10, 1, 7)) == 10


def test_partition_zero_and_columns_that_cannot_be_written() -> None:
    latest = LatestRows([0, 1], 2, 10)
    time, gpm = np.array([0, 1]), np.array([0, 1], np.int32)
    time.flags.writeable = gpm.flags.writeable = False
    assert latest.possible(time, gpm, np.zeros(2, np.int64)) == 1


@pytest.mark.parametrize("partitions", [3, 12])
def test_possible_times_are_those_found_by_looking_at_all_rows(partitions: int) -> None:
    choices, latest, seen, now = random.Random(partitions), LatestRows([0, 1, 2], 4, 50), [], 0
    found = 0
    for _ in range(200):
        rows = []
        for _ in range(choices.randrange(1, 30)):
            now += choices.randrange(3)
            place = choices.randrange(partitions) + now // 100 * partitions  # others come later
            rows.append((now, choices.randrange(-1, 4), 97 * place))
        expected = NEVER
        for row in rows:
            seen.append(row)
            near = {g for t, g, key in seen[-400:] if key == row[2] and t >= row[0] - 50}
            if row[1] in (0, 1, 2) and near >= {0, 1, 2}:
                expected = row[0]
        found += expected > NEVER
        assert possible(latest, *rows) == expected
    assert found > 0


def test_partitions_that_are_too_old_are_forgotten() -> None:
    latest = LatestRows([0, 1], 2, 10)
    for i in range(10_000):
        possible(latest, (i, 0, i))
    assert len(latest._keys) <= 512
