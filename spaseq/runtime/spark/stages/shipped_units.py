"""The parts of a run for workers: its plans, and its knowledge base in a file.

The plans travel with every task, but are unpickled once in a process. Workers on the driver's
machine read them from a file, so that tasks carry only its path.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from spaseq.kb.knowledge import KnowledgeBase
from spaseq.memory import collection_paused
from spaseq.options import ServiceOptions
from spaseq.plan.families import QueryUnits
from spaseq.records import record
from spaseq.runtime.spark.rows.run_files import disk_errors

MOST_KEPT = 2
"""Number of runs whose units stay in a worker, the last ones."""

_kept: dict[str, QueryUnits] = {}


@record
class ShippedUnits(QueryUnits):
    """Units for workers. `data` is their pickle or the file that has it, and `name` its hash.

    Unpickling the plans of 1,000 different queries takes half a second, and a task often takes
    less.
    """

    name: str = field(kw_only=True)
    data: bytes | Path = field(kw_only=True)

    @classmethod
    def of_units(cls, units: QueryUnits, directory: Path | None = None) -> ShippedUnits:
        """Units without the parts that only the planner reads.

        If a directory is given, which workers can read as long as they run, their pickle is there.
        """
        own = units.shipped()
        with collection_paused():
            data = _pickled(own)
        name = hashlib.sha256(data).hexdigest()
        data_or_path = data if directory is None else _written(directory / f"plans-{name}", data)
        return cls(own.queries, own.families, own.plans, own.limited, name=name, data=data_or_path)

    def __reduce__(self) -> tuple[Callable[..., QueryUnits], tuple[Any, ...]]:
        return _unpickled, (self.name, self.data)


def _pickled(units: QueryUnits) -> bytes:
    if not any(plan.expressions.functions for plan in units.queries):
        return pickle.dumps(units, pickle.HIGHEST_PROTOCOL)
    from pyspark import cloudpickle  # it can pickle extension functions by value

    data: bytes = cloudpickle.dumps(units)
    return data


def _written(path: Path, data: bytes) -> Path:
    with disk_errors(path):
        path.write_bytes(data)
    return path


def _unpickled(name: str, data: bytes | Path) -> QueryUnits:
    """Unpickle units from bytes, or from a file; `name` is their hash."""
    units = _kept.pop(name, None)
    if units is None:
        with collection_paused():
            units = pickle.loads(data if isinstance(data, bytes) else data.read_bytes())
    _kept[name] = units  # the last one is the latest
    while len(_kept) > MOST_KEPT:
        del _kept[next(iter(_kept))]
    return units


@record
class StoredKnowledge:
    """A knowledge base as a file, and its endpoints.

    Attributes:
        path: the file; its name among Spark's files, if it is shipped.
        name: identifies the content: equal names, equal content.
        shipped: whether Spark brings the file to the worker.
        endpoints: (graph IRI, address) of graphs that SPARQL endpoints hold.
        services: the options of endpoints.
    """

    path: str
    name: str
    shipped: bool = False
    endpoints: tuple[tuple[str, str], ...] = ()
    services: ServiceOptions = ServiceOptions()

    def named(self, name: str) -> StoredKnowledge:
        """Another version in the same directory; without a name, this one."""
        if not name:
            return self
        path = name if self.shipped else str(Path(self.path).with_name(name))
        return replace(self, path=path, name=name)

    def open(self) -> KnowledgeBase:
        """The knowledge base. A worker process opens each file once."""
        opened = _opened(self.located().path, self.name)
        known = dict(self.endpoints)
        return replace(opened, endpoints=known, addresses=known, services=self.services)

    def located(self) -> StoredKnowledge:
        """The same with the absolute path that the file has on this worker."""
        if not self.shipped:
            return self
        from pyspark import SparkFiles

        return replace(self, path=os.path.abspath(SparkFiles.get(self.path)), shipped=False)


@lru_cache(maxsize=2)
def _opened(path: str, name: str) -> KnowledgeBase:
    return KnowledgeBase.open(Path(path))
