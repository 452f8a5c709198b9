"""Whether the solutions of a whole run have the steps of a sequence in their order.

One event is often a solution of several GPMs, but in `A; B` an event of B must follow one of A.
Many of a thousand queries have solutions of all GPMs, and none in the order of their sequence.
"""

from __future__ import annotations

import numpy as np

from spaseq.automaton.batch.kernels.ordered_rows import NEVER, are_in_order
from spaseq.automaton.program.window import Counted
from spaseq.plan.query_plan import QueryPlan
from spaseq.stages.partition_places import places_of
from spaseq.stages.sorting import RowSorter

_MOST = 64  # steps that are looked at


def has_steps_in_order(plan: QueryPlan, sorter: RowSorter) -> bool:
    """Whether the rows of some partition have the steps that every match takes, in their order.

    Each of these steps takes a later instant than the one before, and all lie in one window.
    """
    window, steps = plan.sequence.window, plan.required_steps[:_MOST]
    if len(steps) < 2 or isinstance(window, Counted):
        return True
    rows = sorter.keys(plan.sequence.partition)
    found = places_of(rows, plan.sequence.partition)
    if found is None:
        return True
    order = np.lexsort((rows.k, rows.time))
    time, k = rows.time[order], rows.k[order]
    instant = np.zeros(len(order), np.int64)
    np.cumsum((time[1:] != time[:-1]) | (k[1:] != k[:-1]), out=instant[1:])
    _, place = np.unique(found[0][order], return_inverse=True)
    room = int(place.max(initial=-1)) + 1, len(steps)
    starts, reached = np.full((*room, 2), NEVER), np.full(room, -1)
    gpms, of_steps = rows.gpm[order], np.array(steps, np.int32)
    length = window.horizon
    return bool(are_in_order(time, instant, gpms, place, of_steps, length, starts, reached))
