"""The splits of a bounded run (the parts of its input for the tasks of stage 1), and batch sizes.

Batches of a followed run: their size while a backlog is read, and those that repeat earlier ones.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, chdir, nullcontext
from typing import NamedTuple

from spaseq.records import record
from spaseq.sources.base import Source, Split, SplitNumbering

LEAST_BYTES = 16 * 2**20
"""A backlog begins with a batch of this size: what queries make of a byte is not known before."""

AIM_SECONDS = 4.0
"""Target duration of a batch. An empty one takes some tenths of a second already, and answers come
only at the end of a batch.
"""

_MOST_CHANGE = 4.0  # factor between two batches


def paths_from(directory: str | None) -> AbstractContextManager[object]:
    """Make relative paths start from `directory`, if it exists on this machine.

    Spark keeps worker processes for later tasks, and names shipped files relative to the directory
    in which an executor started: a worker returns there afterwards.
    """
    return nullcontext() if directory is None or not os.path.isdir(directory) else chdir(directory)


@record
class InputSplit:
    """The part of a stream that one task reads.

    Attributes:
        number: counts the splits of a run, in the order of its streams.
        stream: the stream's number.
        split: None for a source that is read whole, or an input without splits.
        numbering: of its events of equal time.
        follows, precedes: whether there may be splits of the stream before and after it.
    """

    number: int
    stream: int
    split: Split | None = None
    numbering: SplitNumbering = SplitNumbering.WHOLE
    follows: bool = False
    precedes: bool = False


def bounded_splits(
    sources: Sequence[Source], split_bytes: int | None = None, time_scan: bool = True
) -> list[InputSplit]:
    """All splits of a run's streams; see `Source.splits` for the other arguments."""
    numbered: list[InputSplit] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for number, source in enumerate(sources):
            splits = source.splits(pool, split_bytes=split_bytes, time_scan=time_scan)
            every = [None] if splits is None else [*splits]
            for place, split in enumerate(every):
                numbering = SplitNumbering.WHOLE
                if split is not None and len(every) > 1:
                    numbering = split.numbering
                ends = place > 0, place < len(every) - 1
                numbered.append(InputSplit(len(numbered), number, split, numbering, *ends))
    return numbered


class BatchSizer:
    """Size of the next batch of a backlog, in bytes of each stream.

    Args:
        most: maximum bytes of a batch.
        now: seconds, from a monotonic clock.
    """

    def __init__(self, most: int, now: Callable[[], float] = time.monotonic) -> None:
        self._most, self._now = most, now
        self._begun: tuple[float, float] | None = None  # when the last batch began, and its limit
        self.bytes = min(most, LEAST_BYTES)

    def begin(self, size: float | None) -> None:
        """Record that the last batch has ended and the next one begins.

        Args:
            size: the next batch's limit in bytes; None if it leaves no backlog, so that its
                duration says nothing.
        """
        now = self._now()
        if self._begun is not None:
            since, before = self._begun
            change = AIM_SECONDS / max(now - since, AIM_SECONDS / _MOST_CHANGE)
            wanted = before * max(change, 1 / _MOST_CHANGE)
            self.bytes = min(max(int(wanted), LEAST_BYTES), self._most)
        self._begun = None if size is None else (now, size)


class Repetition(NamedTuple):
    """The batches of the file source log that rebuild the state of an earlier run.

    Attributes:
        begin: they come after this batch.
        end: the last of them. The earlier run has given all answers up to it.
    """

    begin: int = 0
    end: int = 0
