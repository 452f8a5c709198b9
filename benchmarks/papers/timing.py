"""Runs of the local runtime over a file, in events per second of CPU time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from pathlib import Path

import spaseq

MOST_ANSWERS = 1000
"""Of one instant, as CORE's authors bound it."""


def rate(
    query: str,
    streams: Mapping[str, Path],
    events: int,
    rounds: int,
    kb: Mapping[str, Path] | None = None,
) -> tuple[float, int]:
    """The median rate of a query from text to answers in one thread, and its number of answers."""
    rates, answers = [], 0
    for number in range(rounds + 1):
        began = time.process_time()
        found = spaseq.run(
            query,
            dict(streams),
            kb=dict(kb or {}),
            runtime="local",
            threads=1,
            limit_per_event=MOST_ANSWERS,
        )
        answers = sum(1 for _ in found)
        if number:  # the first run loads kernels and fills the page cache
            rates.append(events / (time.process_time() - began))
    return statistics.median(rates), answers
