"""The guard against loss of speed compares right. Nothing is timed here."""

from __future__ import annotations

import guard
import pytest

REFERENCES = {"selective": 8.0, "matching": 2.0}


@pytest.mark.parametrize(
    ("selective", "matching", "slow"),
    [
        (8.0, 2.0, []),
        (20.0, 5.0, []),
        (5.7, 1.41, []),  # 29 % lost
        (5.5, 2.0, ["selective"]),  # 31 % lost
        (1.0, 1.39, ["selective", "matching"]),
    ],
)
def test_a_loss_of_more_than_30_percent_is_too_slow(
    selective: float, matching: float, slow: list[str]
) -> None:
    ratios = {"selective": selective, "matching": matching}
    assert guard.too_slow(ratios, REFERENCES) == slow
    lines = guard.table(ratios, REFERENCES).splitlines()[1:]
    assert [line.split()[0] for line in lines if line.endswith("too slow")] == slow


def test_a_workload_without_a_reference_is_an_error() -> None:
    with pytest.raises(KeyError):
        guard.too_slow({"another": 1.0}, REFERENCES)


def test_the_least_time_of_each_counts_and_both_take_turns() -> None:
    turns: list[str] = []
    found = guard.least((lambda: turns.append("ours"), lambda: turns.append("theirs")), 3)
    assert turns == ["ours", "theirs"] * 3
    assert len(found) == 2 and min(found) >= 0


def test_each_workload_has_a_committed_reference() -> None:
    from generators.workloads import WORKLOADS

    assert set(guard.json.loads(guard.REFERENCES.read_text())) == set(WORKLOADS)
