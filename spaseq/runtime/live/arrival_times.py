"""Times for events that have none, in a stream that takes its times from the clock.

Such an event has the time of its arrival, but at least the greatest time of its stream before it.
So it is never late. Readers mark it with `UNTIMED`, because only the clock of its stream knows that
time.
"""

from __future__ import annotations

import numpy as np

from spaseq.compiled.arrays import Int64s
from spaseq.rdf.terms.times import UNTIMED
from spaseq.runtime.arrivals.horizon import Horizon


def arrival_times(
    times: Int64s, arrival: int, least: int | None, horizon: Horizon, latest: int | None
) -> Int64s:
    """The times (ms, int64[n]) of events that arrived together, in order.

    Args:
        times: as they were read, `UNTIMED` for events without one.
        arrival: when they arrived, ms.
        least: an event without a time has at least this one, ms; None sets no bound.
        horizon: an event with a time behind it is bad, so later ones need not wait for it.
        latest: the greatest time of the stream before, ms.
    """
    untimed = times == UNTIMED
    if not untimed.any():
        return times
    base = arrival if least is None else max(arrival, least)
    known = np.where(untimed, base, times)
    seen = np.where(horizon.admits(latest, known), known, base)
    reached = np.maximum(np.maximum.accumulate(seen), base)
    return np.where(untimed, reached, times)
