"""The files of a file source log: one for each new batch, and a pack for many old ones.

A window of a day may keep a hundred thousand batches. A pack is written before the files that it
replaces are removed, so each batch is in one of the two whenever the process is killed.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from spaseq import thresholds
from spaseq.errors import RunError
from spaseq.runtime.arrivals.arrived_batch import ArrivedBatch
from spaseq.storage.checksums import (
    damaged,
    read_json,
    with_checksum_line,
    write_durably,
    write_json,
)


class BatchFiles:
    """The batches in a directory, which one process writes and others may read meanwhile.

    A thread may write and read batches while another one removes and packs earlier ones.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._packs: tuple[range, ...] | None = None  # in order; None: they are not listed
        # Two packs, since the batches of an old and of a new one are compared.
        self._values: Callable[[range], list[Any]] = lru_cache(2)(self._values_of)
        self._read: tuple[int, ArrivedBatch] | None = None  # the batch read last from its own file
        self._unpacked: int | None = None  # the first batch with a file; None: not sought

    def has(self, number: int) -> bool:
        """Whether a batch has a file."""
        return self._path(number).exists()

    def write(self, number: int, batch: ArrivedBatch) -> None:
        """Store a new batch."""
        write_json(self._path(number), batch.as_json())

    def batch(self, number: int) -> ArrivedBatch:
        """A batch.

        Raises:
            RunError: there is no such batch, or its file is damaged.
        """
        known = self._read
        if known is not None and known[0] == number:
            return known[1]
        pack = self._pack_of(number)
        if pack is None:
            try:
                batch = read_json(self._path(number), ArrivedBatch.of_json)
            except RunError:
                self._packs = None  # the writer may just have packed it
                pack = None if self.has(number) else self._pack_of(number)
                if pack is None:
                    raise
            else:
                self._read = number, batch
                return batch
        return self._packed(pack, number)

    def first(self) -> int | None:
        """The number of the first batch; None if there is none."""
        return min([*self._single(), *(pack.start for pack in self._listed())], default=None)

    def knowledge(self) -> set[str]:
        """The names of the knowledge bases of all batches."""
        names, singles = set[str](), [*self._single()]
        self._packs = None  # listed after the others: what is packed meanwhile is in one of them
        for pack in self._listed():
            names.update(read_json(self._pack_path(pack), lambda value: value["knowledge"]))
        for number in singles:
            try:
                names.add(self.batch(number).knowledge)
            except RunError:
                if self.has(number):  # else the writer has just removed it
                    raise
        return names

    # --- for the process that writes --------------------------------------------------------------

    def remove(self, end: int) -> None:
        """Remove the batches before one, but for those in a pack with later ones."""
        self._unpacked = self._first_unpacked()
        for pack in self._listed():
            if pack.stop <= end:
                self._pack_path(pack).unlink(missing_ok=True)
        self._packs = tuple(pack for pack in self._listed() if pack.stop > end)
        for number in range(self._unpacked, end):
            self._path(number).unlink(missing_ok=True)
        self._unpacked = max(self._unpacked, end)

    def pack(self, end: int) -> None:
        """Put batches before one into a pack, once they are enough."""
        self._unpacked, size = self._first_unpacked(), thresholds.current.packed_batches
        if end - self._unpacked < size:
            return
        pack = range(self._unpacked, self._unpacked + size)
        batches = [self.batch(number) for number in pack]
        names = sorted({batch.knowledge for batch in batches})
        value = {"knowledge": names, "batches": [batch.as_json() for batch in batches]}
        write_durably(self._pack_path(pack), with_checksum_line(json.dumps(value)).encode())
        self._packs = *self._listed(), pack
        for number in pack:
            self._path(number).unlink()
        self._unpacked = pack.stop

    def _first_unpacked(self) -> int:
        """The first batch that is in no pack; removes files that a killed process left."""
        if self._unpacked is None:
            self._packs = None
            packed = max((pack.stop for pack in self._listed()), default=0)
            singles = [*self._single()]
            for number in singles:
                if number < packed:
                    self._path(number).unlink(missing_ok=True)
            self._unpacked = packed or min(singles, default=1)
        return self._unpacked

    # --- reading ----------------------------------------------------------------------------------

    def _single(self) -> Iterator[int]:
        """The batches that have a file."""
        names = (path.stem for path in self._directory.glob("[0-9]*.json"))
        return (int(name) for name in names if name.isdigit())

    def _listed(self) -> tuple[range, ...]:
        """The packs, in order."""
        packs = self._packs
        if packs is None:
            there = self._directory.glob("[0-9]*.packed.json")
            ends = (map(int, path.name.partition(".")[0].split("-")) for path in there)
            ranges = (range(first, last + 1) for first, last in ends)
            packs = self._packs = tuple(sorted(ranges, key=lambda pack: pack.start))
        return packs

    def _pack_of(self, number: int) -> range | None:
        packs = self._listed()
        at = bisect_right(packs, number, key=lambda pack: pack.start) - 1
        return packs[at] if at >= 0 and number in packs[at] else None

    def _packed(self, pack: range, number: int) -> ArrivedBatch:
        try:
            return ArrivedBatch.of_json(self._values(pack)[number - pack.start])
        except (ValueError, TypeError, LookupError) as error:
            raise damaged(self._pack_path(pack), error) from error

    def _values_of(self, pack: range) -> list[Any]:
        """The batches of a pack as JSON values."""
        return read_json(self._pack_path(pack), lambda value: list(value["batches"]))

    def _path(self, number: int) -> Path:
        return self._directory / f"{number}.json"

    def _pack_path(self, pack: range) -> Path:
        return self._directory / f"{pack.start}-{pack.stop - 1}.packed.json"
