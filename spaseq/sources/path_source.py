"""What all sources of files have in common: paths, sizes, and how they are read."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from typing import Self

from spaseq.rdf.inputs.files import resolve_paths
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.records import record
from spaseq.sources.base import Source

_UNPACKED = 20
"""How many times as large a packed file may be when it is unpacked; few are more."""


@record
class PathSource(Source):
    """The files that `options.paths` stand for."""

    options: StreamOptions

    @property
    def iri(self) -> str:
        return self.options.iri

    def describe(self) -> str:
        return ", ".join(self.options.paths)

    def check(self) -> None:
        resolve_paths(self.options)

    def size(self) -> int | None:
        try:
            sizes = [(os.stat(f.path), f.path) for f in resolve_paths(self.options)]
        except OSError:  # reading says what is wrong
            return None
        if not all(stat.S_ISREG(found.st_mode) for found, _ in sizes):
            return None
        return sum(s.st_size * (_UNPACKED if path.endswith(".gz") else 1) for s, path in sizes)

    def keeping(self, predicates: tuple[str, ...] | None) -> Self:
        return replace(self, options=replace(self.options, predicates=predicates))

    def in_batches(self, larger: int) -> Self:
        return replace(self, options=replace(self.options, larger=larger))
