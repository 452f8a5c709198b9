"""Solutions that have the required steps of a sequence in their order.

One event is often a solution of several GPMs, but in `A; B` an event of B must follow one of A.
Many of a thousand queries have solutions of all GPMs near each other, and few or none in the order
of their sequence.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spaseq.automaton.batch.kernels.ordered_rows import NEVER, note_starts
from spaseq.automaton.program.required_gpms import unordered_gpms
from spaseq.compiled.arrays import Bools, Indices, Int32s, Int64s
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch

_MOST = 16
"""A sequence with more required steps is not looked at."""


class OrderedSteps:
    """The steps that every match takes, each at a later instant, in one window.

    After `;` a solution can forestall a later one of its step. Then it has the same steps before
    and after it as the later one. So a solution that changes a match is itself in order, unless its
    GPM also stands elsewhere in the sequence: negated, optional, or in a bracket.
    """

    def __init__(self, plan: QueryPlan) -> None:
        steps = plan.required_steps
        self._steps = np.array(steps if len(steps) <= _MOST else (), np.int32)
        program, others = plan.sequence.program, unordered_gpms(plan.sequence.chain)
        is_free = not (program.further or program.untils)
        names = [gpm.name for gpm in plan.patterns.gpms]
        ordered = {int(gpm) for gpm in self._steps if is_free and names[gpm] not in others}
        self._is_ordered = np.array([gpm in ordered for gpm in range(len(names))] + [False])

    def __bool__(self) -> bool:
        """Whether there is an order."""
        return len(self._steps) > 1

    def out_of_order(
        self, rows: SolutionBatch, chosen: Indices, place: Int64s, length: Int64s
    ) -> Bools:
        """Which of some rows [c] can be in no match, if all rows near them are among these.

        Args:
            rows: n rows.
            chosen: [c] numbers of rows.
            place: [n] the partition of each row.
            length: [n] the length (ms) of the window in that partition.
        """
        order = np.lexsort((rows.k[chosen], rows.time[chosen]))
        own = chosen[order]
        time, gpm, length = rows.time[own], rows.gpm[own], length[own]
        _, places = np.unique(place[own], return_inverse=True)
        instant = _instants(time, rows.k[own])
        start = self._starts(time, instant, gpm, places, self._steps, length)
        backwards = (-time, -instant, gpm, places, self._steps, length)
        end = -self._starts(*map(_reversed, backwards))[::-1, ::-1]
        fits = (start > NEVER) & (end < -NEVER) & (end - start <= length[:, None])
        if not fits.any():
            return np.ones(len(chosen), np.bool_)
        found = np.empty(len(chosen), np.bool_)
        found[order] = self._is_ordered[gpm] & ~fits.any(axis=1)
        return found

    def _starts(
        self,
        time: Int64s,
        instant: Int64s,
        gpm: Int32s,
        place: Int64s,
        steps: Int32s,
        length: Int64s,
    ) -> Int64s:
        room = int(place.max(initial=-1)) + 1, len(steps)
        starts, reached = np.full((*room, 2), NEVER), np.full(room, NEVER)
        found = np.full((len(time), len(steps)), NEVER)
        note_starts(time, instant, gpm, place, steps, length, starts, reached, found)
        return found


def _reversed(column: Any) -> Any:
    return np.ascontiguousarray(column[::-1])


def _instants(time: Int64s, k: Int32s) -> Int64s:
    """The number of the instant of each row; rows [n] are in order of time, then k."""
    number = np.zeros(len(time), np.int64)
    np.cumsum((time[1:] != time[:-1]) | (k[1:] != k[:-1]), out=number[1:])
    return number
