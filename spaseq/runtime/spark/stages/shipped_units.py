"""The plans of a run as workers get them: with every task, but unpickled once in a process."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any

from spaseq.stages.collection_pause import collection_paused, count_as_old
from spaseq.stages.query_units import QueryUnits

MOST_KEPT = 2
"""The units of so many runs stay in a worker, the last ones."""

_kept: dict[str, QueryUnits] = {}


class ShippedUnits(QueryUnits):
    """Units for workers. Their pickle has them as bytes, under a hash of these bytes.

    To unpickle the plans of 1,000 different queries takes half a second, and a task often less.
    """

    @classmethod
    def of_units(cls, units: QueryUnits) -> ShippedUnits:
        """Units without what only the planner reads."""
        own = units.shipped()
        return cls(own.queries, own.families, own.plans, own.limited)

    @cached_property
    def _pickled(self) -> tuple[str, bytes]:
        from pyspark import cloudpickle  # it can pickle functions of the user's by value

        whole = QueryUnits(self.queries, self.families, self.plans, self.limited)
        data: bytes = cloudpickle.dumps(whole)
        return hashlib.sha256(data).hexdigest(), data

    def __reduce__(self) -> tuple[Callable[..., QueryUnits], tuple[Any, ...]]:
        return _unpickled, self._pickled


def _unpickled(name: str, data: bytes) -> QueryUnits:
    """The units that some bytes, whose hash is `name`, are the pickle of."""
    units = _kept.pop(name, None)
    if units is None:
        with collection_paused():
            units = pickle.loads(data)
            count_as_old()
    _kept[name] = units  # the last one is the latest
    while len(_kept) > MOST_KEPT:
        del _kept[next(iter(_kept))]
    return units
