"""Solutions of events of topics, held in a bucket's state until their events are numbered.

The first partition of a topic numbers its events itself. A further partition numbers the events of
a time after the events of all earlier partitions. Their count is known when the stream's watermark
has passed the time: the mark then names a file with the counts (`RangeEnds.load_ties`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spaseq.errors import RunError
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.columns.solution_batch import SolutionBatch, SolutionCodec
from spaseq.runtime.arrivals.tie_numbering import after
from spaseq.runtime.arrivals.topics.topic_batch import RangeEnds
from spaseq.storage.safe_pickles import dump_plain, load_plain

HELD = 2
"""The kind of the state's entries with held packs; `bucket_state` has the other kinds."""

_DIRECTORY = (HELD, 0)


class HeldPack(NamedTuple):
    """A pack in the state.

    Attributes:
        number: the number of its entry in the state, from 1.
        stream: of the group.
        partition: of the stream's topic.
        reader: its unit of queries.
        first, last: the times (ms) of its first and last event.
        size: bytes.
    """

    number: int
    stream: int
    partition: int
    reader: int
    first: int
    last: int
    size: int


class NewPack(NamedTuple):
    """A pack of a new batch; see `HeldPack`."""

    stream: int
    partition: int
    reader: int
    payload: bytes


@dataclass(slots=True)
class HeldSolutions:
    """The held packs of a bucket.

    Attributes:
        chunks: Spark's map state; see `BucketState`.
        plans: of the units of queries.
        ties: the directory with the files of ties.
        size: the bytes of all held packs.
    """

    chunks: Any
    plans: Mapping[int, QueryPlan]
    ties: Path
    size: int = 0

    def turn(
        self, new: Iterable[NewPack], marks: Sequence[int], ties: Mapping[int, str]
    ) -> list[tuple[int, bytes]]:
        """Hold the packs of a batch, and return the solutions that its watermarks have passed.

        Args:
            new: the packs.
            marks: the watermarks (ms) of the group's streams after the batch.
            ties: by stream, the name of the file that numbers the events before the watermark.

        Returns:
            (unit of queries, pack), with the events' final numbers.
        """
        held, next_number = self._held()
        added = [*new]
        if not held and not added:
            return []
        numbers = {stream: RangeEnds(self.ties).load_ties(name) for stream, name in ties.items()}
        kept, passed = list[HeldPack](), list[tuple[int, bytes]]()
        for each in held:
            if each.first >= marks[each.stream]:
                kept.append(each)
                continue
            data = self._read(each.number)
            solutions = self._codec(each.reader).decode(data, check=True)
            early = solutions.time < marks[each.stream]
            ready = solutions.take(np.flatnonzero(early))
            earlier = numbers.get(each.stream, {}).get(each.partition)
            final = after(ready, earlier, self.plans[each.reader].inputs.streams)
            passed.append((each.reader, self._codec(each.reader).encode(final)))
            if early.all():
                self.chunks.removeKey((HELD, each.number))
            else:
                rest = solutions.take(np.flatnonzero(~early))
                kept.append(self._write(each.number, each[1:4], rest))
        for pack_ in added:
            solutions = self._codec(pack_.reader).decode(pack_.payload)
            kept.append(self._write(next_number, pack_[:3], solutions))
            next_number += 1
        self.size = sum(each.size for each in kept)
        directory = ([tuple(each) for each in kept], next_number)
        self.chunks.updateValue(_DIRECTORY, (dump_plain(directory),))
        return passed

    def _held(self) -> tuple[list[HeldPack], int]:
        """The held packs, and the number of the next one."""
        chunk = self.chunks.getValue(_DIRECTORY)
        if chunk is None:
            return [], 1
        packs, number = load_plain(bytes(chunk[0]))
        return [HeldPack(*each) for each in packs], int(number)

    def _read(self, number: int) -> bytes:
        chunk = self.chunks.getValue((HELD, number))
        if chunk is None:
            raise RunError("the state of a bucket lacks a part with solutions of a topic")
        return bytes(chunk[0])

    def _write(self, number: int, whose: tuple[int, ...], solutions: SolutionBatch) -> HeldPack:
        data = self._codec(whose[2]).encode(solutions)
        self.chunks.updateValue((HELD, number), (data,))
        first, last = int(solutions.time.min()), int(solutions.time.max())
        stream, partition, reader = whose
        return HeldPack(number, stream, partition, reader, first, last, len(data))

    def _codec(self, reader: int) -> SolutionCodec:
        return SolutionCodec(self.plans[reader].patterns.columns)
