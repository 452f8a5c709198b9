"""Files as a source: one file, the files of a directory, or those that match a glob."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from spaseq.rdf.inputs.bad_input import OnBad
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.readers import read_stream
from spaseq.records import record
from spaseq.sources.base import Source, Split
from spaseq.sources.path_source import PathSource

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from spaseq.rdf.columns.event_batch import EventBatch
    from spaseq.sources.growing import GrowingFiles


@record
class FileSource(PathSource):
    """The files that `options.paths` stand for, one after the other, each from start to end.

    Files of a directory or glob come in order of name. Names that end in `.gz` are unpacked.
    Workers of a Spark run open the paths themselves.
    """

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return cls(replace(options, paths=given)) if isinstance(given, tuple) else None

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
