"""Answers of several queries that come together, held until each query's turn.

A part of them is in memory, the rest in a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, ClassVar

from spaseq import thresholds
from spaseq.algebra.answers import Answer
from spaseq.scratch import ScratchDirectory
from spaseq.storage.safe_pickles import SafePickler, SafeUnpickler


class _Unpickler(SafeUnpickler):
    classes: ClassVar = frozenset(
        {("spaseq.algebra.answers", "Answer"), ("spaseq.algebra.answers", "TraceItem")}
    )


class HeldAnswers:
    """Takes answers of queries, and gives those of one query in the order in which they came."""

    def __init__(self) -> None:
        self._size = 0
        self._waiting: dict[int, list[Sequence[Answer]]] = {}
        self._places: dict[int, list[int]] = {}
        self._directory: ScratchDirectory | None = None
        self._file: IO[bytes] | None = None

    def add(self, query: int, answers: Sequence[Answer]) -> None:
        """Take answers of a query, which come after its earlier ones."""
        self._waiting.setdefault(query, []).append(answers)
        self._size += len(answers)
        if self._size >= thresholds.current.held_answers:
            self._write()

    def take(self, query: int) -> Iterator[Sequence[Answer]]:
        """The answers of a query, which leave."""
        for place in self._places.pop(query, ()):
            assert self._file is not None
            self._file.seek(place)
            yield _Unpickler(self._file).load()
        for answers in self._waiting.pop(query, []):
            self._size -= len(answers)
            yield answers

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
        if self._directory is not None:
            self._directory.cleanup()

    def _write(self) -> None:
        if self._file is None:
            self._directory = ScratchDirectory("answers")
            self._file = (Path(self._directory.name) / "answers").open("w+b")
        self._file.seek(0, 2)
        for query, pieces in self._waiting.items():
            self._places.setdefault(query, []).append(self._file.tell())
            SafePickler(self._file).dump([*chain.from_iterable(pieces)])
        self._waiting, self._size = {}, 0
