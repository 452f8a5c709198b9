"""Files as a source: one file, the files of a directory, or those that match a glob."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.inputs.files import resolve_paths
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.readers import read_stream
from spaseq.records import record
from spaseq.sources.base import Source, Split

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from spaseq.rdf.columns.event_batch import EventBatch
    from spaseq.sources.growing import GrowingFiles

_UNPACKED = 20
"""How many times as large a packed file may be when it is unpacked; few are more."""


@record
class FileSource(Source):
    """The files that `options.paths` stand for, one after the other, each from start to end.

    Files of a directory or glob come in order of name. Names that end in `.gz` are unpacked.
    Workers of a Spark run open the paths themselves.
    """

    options: StreamOptions

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return cls(replace(options, paths=given)) if isinstance(given, tuple) else None

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

    def keeping(self, predicates: tuple[str, ...] | None) -> Source:
        return replace(self, options=replace(self.options, predicates=predicates))

    def in_batches(self, larger: int) -> Source:
        return replace(self, options=replace(self.options, larger=larger))

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        if split is None:
            return read_stream(self.options, on_bad)
        from spaseq.sources.file_splits import FileSplit, read_split

        assert isinstance(split, FileSplit)
        return read_split(split, self.options, on_bad)

    def splits(
        self, pool: Executor, *, split_bytes: int | None = None, time_scan: bool = True
    ) -> Iterable[Split] | None:
        """N-Quads and N-Triples are divided; a small stream, or one with another format, is not."""
        from spaseq.sources.file_splits import split_files  # numba, which opening may do without

        return split_files(self.options, pool, split_bytes, time_scan)

    def followed(self) -> GrowingFiles:
        from spaseq.sources.growing import GrowingFiles

        return GrowingFiles.at(self.options)
