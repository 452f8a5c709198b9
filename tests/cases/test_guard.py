"""The guard against loss of speed compares right. Nothing is timed here."""

from __future__ import annotations

import guard
import pytest

REFERENCES = {
    "selective": {"parse": 8.0, "read": 1.0},
    "matching": {"parse": 2.0, "read": 0.5},
}


@pytest.mark.parametrize(
    ("selective", "matching", "slow"),
    [
        ((8.0, 1.0), (2.0, 0.5), []),
        ((20.0, 3.0), (5.0, 1.0), []),
        ((5.7, 0.71), (1.41, 0.36), []),  # 29 % lost
        ((5.5, 0.69), (2.0, 0.5), ["selective"]),  # 31 % lost
        ((2.0, 1.0), (2.0, 0.1), []),  # a machine that is slow in one of the two
        ((1.0, 0.6), (1.39, 0.1), ["selective", "matching"]),
    ],
)
def test_a_loss_of_more_than_30_percent_by_both_is_too_slow(
    selective: tuple[float, float], matching: tuple[float, float], slow: list[str]
) -> None:
    ratios = {
        name: dict(zip(("parse", "read"), both, strict=True))
        for name, both in (("selective", selective), ("matching", matching))
    }
    assert guard.too_slow(ratios, REFERENCES) == slow
    lines = guard.table(ratios, REFERENCES).splitlines()[1:]
    assert [line.split()[0] for line in lines if line.endswith("too slow")] == slow


def test_a_workload_without_a_reference_is_an_error() -> None:
    with pytest.raises(KeyError):
        guard.too_slow({"another": {"parse": 1.0, "read": 1.0}}, REFERENCES)


def test_the_least_time_of_each_counts_and_all_take_turns() -> None:
    turns: list[str] = []
    found = guard.least((lambda: turns.append("ours"), lambda: turns.append("theirs")), 3)
    assert turns == ["ours", "theirs"] * 3
    assert len(found) == 2 and min(found) >= 0


def test_each_workload_has_a_committed_reference() -> None:
    from generators.workloads import WORKLOADS

    committed = guard.json.loads(guard.REFERENCES.read_text())
    assert set(committed) == set(WORKLOADS)
    assert all(set(ratios) == {"parse", "read"} for ratios in committed.values())
