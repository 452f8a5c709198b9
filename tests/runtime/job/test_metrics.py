"""Counts in the text format of Prometheus."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from spaseq.errors import UsageError
from spaseq.runtime.job.job import Stats
from spaseq.runtime.job.metrics import metrics_served, prometheus_text

STATS = Stats(
    events=12,
    matches=3,
    live_runs={'q"1': 7},
    watermarks={"http://a": 9500, "http://b": 4000, "http://c": None},
)


def test_each_count_is_a_line_with_its_labels() -> None:
    lines = prometheus_text(STATS).splitlines()
    assert "spaseq_events_total 12" in lines
    assert "# TYPE spaseq_answers_total counter" in lines
    assert 'spaseq_partial_matches{query="q\\"1"} 7' in lines
    assert 'spaseq_watermark_lag_seconds{stream="http://b"} 5.5' in lines
    assert not any("http://c" in line for line in lines)


def test_a_query_that_takes_most_of_the_work_is_named() -> None:
    stats = Stats()
    stats.count_answers("quick", 2)
    stats.count_answers("slow", 0)
    stats.add_work("sequence", "slow", 0.6)
    stats.add_work("graph patterns", "quick", 0.2)
    assert stats.slowest is None  # it is little work
    stats.add_work("graph patterns", "slow", 0.8)
    assert stats.slowest == ("slow", pytest.approx(7 / 8))
    lines = prometheus_text(stats).splitlines()
    assert 'spaseq_query_answers_total{query="quick"} 2' in lines
    assert 'spaseq_query_seconds_total{query="quick"} 0.2' in lines
    assert next(line for line in lines if "slow_query{" in line).startswith(
        'spaseq_slow_query{query="slow"} 0.87'
    )
    assert stats.stages == {"sequence": 0.6, "graph patterns": pytest.approx(1.0)}
    stats.add_work("sequence", "quick", 2.0)
    stats.add_work("sequence", "third", 1.0)
    assert stats.slowest is None  # none takes most


def test_the_counts_are_those_of_the_moment() -> None:
    stats = Stats()
    with metrics_served(stats, 0) as port:
        place = f"http://127.0.0.1:{port}"
        for events in (0, 5):
            stats.events = events
            with urllib.request.urlopen(f"{place}/metrics") as answer:
                assert f"spaseq_events_total {events}\n" in answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{place}/other")
        with pytest.raises(UsageError, match="--metrics-port"), metrics_served(stats, port):
            pass
