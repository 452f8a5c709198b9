"""A knowledge base in a file that Spark's workers open."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import ServiceOptions
from spaseq.records import record


@record
class StoredKnowledge:
    """A knowledge base as a file, and its endpoints.

    Attributes:
        path: the file; its name among Spark's files, if it is shipped.
        name: tells the content: equal names, equal content.
        shipped: whether Spark brings the file to the worker.
        endpoints: (graph IRI, address) of graphs that SPARQL endpoints hold.
        services: how endpoints are asked.
    """

    path: str
    name: str
    shipped: bool = False
    endpoints: tuple[tuple[str, str], ...] = ()
    services: ServiceOptions = ServiceOptions()

    def named(self, name: str) -> StoredKnowledge:
        """Another version, which lies in the same place; without a name, this one."""
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
