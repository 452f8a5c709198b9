"""Coming rows: which solutions a run can still meet, as far as the rows of a batch tell.

A run waits at an edge for a solution within its window. If the batch reaches beyond the window and
has no such solution, the run would wait in vain.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np

from spaseq.automaton.program.window import Counted, Window
from spaseq.rdf.columns.solution_batch import SolutionBatch


class ComingRows:
    """The times (ms) of the solutions of a batch, by GPM, over all partitions.

    `until` is a time (ms): no other rows come before it. `now` is the time of the current instant.
    """

    __slots__ = ("_find", "_times", "_until", "_window", "now")

    def __init__(self, rows: SolutionBatch, until: int, window: Window) -> None:
        self._window, self._until, self.now = window, until, 0
        gpms = np.unique(rows.gpm).tolist()
        self._times = {g: np.sort(rows.time[rows.gpm == g]).tolist() for g in gpms}
        # Without ties, rows of one time have one instant.
        self._find = bisect_left if rows.k.any() else bisect_right

    @classmethod
    def of(cls, rows: SolutionBatch, watermark: int, window: Window) -> ComingRows | None:
        """For rows after which nothing comes at or before the watermark (ms), if that is of use."""
        if isinstance(window, Counted) or not len(rows):
            return None
        return cls(rows, max(watermark, int(rows.time.max())), window)

    def may_meet(self, gpm: int, origin: int) -> bool:
        """Whether a run may meet a solution of a GPM after the current instant.

        `origin` is the measure of the run's first event.
        """
        assert not isinstance(self._window, Counted)
        close = self._window.close(origin)
        if close >= self._until:
            return True
        times = self._times.get(gpm, ())
        place = self._find(times, self.now)
        return place < len(times) and times[place] <= close
