"""The splits of a bounded run: every part of its input that one task of stage 1 reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, chdir, nullcontext

from spaseq.records import record
from spaseq.sources.base import Source, Split


def paths_from(directory: str | None) -> AbstractContextManager[object]:
    """Make relative paths start from `directory`, if it exists on this machine.

    Spark keeps worker processes for later tasks, and names the files that it ships relative to
    where an executor started: a worker goes back there afterwards.
    """
    return nullcontext() if directory is None or not os.path.isdir(directory) else chdir(directory)


@record
class InputSplit:
    """The part of a stream that one task reads.

    `number` counts the splits of a run, in the order of its streams, and `stream` is the stream's
    number. `split` is None for a source that is read whole.
    """

    number: int
    stream: int
    split: Split | None = None

    @property
    def time_scanned(self) -> bool:
        """Whether events of equal time are numbered as in the whole stream; see `Split`."""
        return self.split is None or self.split.time_scanned


def bounded_splits(
    sources: Sequence[Source], split_bytes: int | None = None, time_scan: bool = True
) -> list[InputSplit]:
    """All splits of a run's streams; see `Source.splits` for the other arguments."""
    numbered: list[InputSplit] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, source in enumerate(sources):
            splits = source.splits(pool, split_bytes=split_bytes, time_scan=time_scan)
            for split in (None,) if splits is None else splits:
                numbered.append(InputSplit(len(numbered), number, split))
    return numbered
