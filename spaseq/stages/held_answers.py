"""Answers of several queries that arrive interleaved, held until each query's turn.

Part of the answers stays in memory, the rest goes to a file. Columns of answers stay columns there,
in order of their queries, so that neighbours share the blocks that are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np

from spaseq import thresholds
from spaseq.algebra.answer_batch import PIECE, AnswerBatch, AnswerNames, SharedAnswers, SharedPart
from spaseq.algebra.answer_blocks import Answers, answers_of, blocks
from spaseq.algebra.answers import Answer
from spaseq.scratch import ScratchDirectory


@dataclass(slots=True)
class _HeldPiece:
    """Answers of one query in the file: `begin` to `end` of a block."""

    lane: int
    place: int
    begin: int
    end: int


@dataclass(slots=True)
class _Lane:
    """Answers that are written together: batches of one kind of columns, or single answers."""

    values: list[Answer] = field(default_factory=list)
    parts: list[tuple[AnswerBatch, int, int]] = field(default_factory=list)
    size: int = 0

    def add(self, answers: Sequence[Answer]) -> tuple[int, int]:
        """Add answers; return their positions in the lane."""
        match answers:
            case SharedPart():
                self.parts.append((answers.whole.batch, answers.begin, answers.end))
            case AnswerBatch():
                self.parts.append((answers, 0, len(answers)))
            case _:
                self.values += answers
        begin, self.size = self.size, self.size + len(answers)
        return begin, self.size

    def whole(self) -> Answers:
        """All answers of the lane."""
        if not self.parts:
            return self.values
        batches = {id(batch): batch for batch, _, _ in self.parts}
        ends = np.cumsum([len(batch) for batch in batches.values()]).tolist()
        first = dict(zip(batches, [0, *ends], strict=False))
        order = [np.arange(begin, end) + first[id(batch)] for batch, begin, end in self.parts]
        return AnswerBatch.concat([*batches.values()]).take(np.concatenate(order))


class HeldAnswers:
    """Takes answers of queries; returns the answers of one query in order of arrival."""

    def __init__(self) -> None:
        self._size = 0
        self._waiting: dict[int, list[Sequence[Answer]]] = {}
        self._pieces: dict[int, list[_HeldPiece]] = {}
        self._lanes = 0
        self._read: dict[int, tuple[int, SharedAnswers | list[Answer]]] = {}
        self._directory: ScratchDirectory | None = None
        self._file: IO[bytes] | None = None

    def add(self, query: int, answers: Sequence[Answer]) -> None:
        """Take answers of a query, which come after its earlier ones."""
        self._waiting.setdefault(query, []).append(answers)
        self._size += len(answers)
        if self._size >= thresholds.current.held_answers:
            self._write()

    def take(self, query: int) -> Iterator[Sequence[Answer]]:
        """Remove and return the answers of a query."""
        for piece in self._pieces.pop(query, ()):
            answers = self._block(piece)
            if isinstance(answers, SharedAnswers):
                yield SharedPart(answers, piece.begin, piece.end)
            else:
                yield answers[piece.begin : piece.end]
        for waiting in self._waiting.pop(query, []):
            self._size -= len(waiting)
            yield waiting

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()
        if self._directory is not None:
            self._directory.cleanup()

    def _block(self, piece: _HeldPiece) -> SharedAnswers | list[Answer]:
        """The answers of a block; each lane caches the block that was read last."""
        number, answers = self._read.get(piece.lane, (-1, []))
        if number != piece.place:
            assert self._file is not None
            self._file.seek(piece.place)
            size = int.from_bytes(self._file.read(8), "little")
            read = answers_of(self._file.read(size))
            answers = SharedAnswers(read) if isinstance(read, AnswerBatch) else read
            self._read[piece.lane] = piece.place, answers
        return answers

    def _write(self) -> None:
        """Write all waiting answers."""
        lanes = dict[AnswerNames | None, _Lane]()
        spans = list[tuple[int, AnswerNames | None, int, int]]()
        for query, pieces in sorted(self._waiting.items()):
            for answers in pieces:
                names = _names_of(answers)
                spans.append((query, names, *lanes.setdefault(names, _Lane()).add(answers)))
        written = {names: self._written(lane.whole()) for names, lane in lanes.items()}
        for query, names, begin, end in spans:
            lane, places = written[names]
            of_query = self._pieces.setdefault(query, [])
            for n in range(begin // PIECE, -(-end // PIECE)):
                first, last = max(begin - n * PIECE, 0), min(end - n * PIECE, PIECE)
                before = of_query[-1] if of_query else None
                if before and (before.lane, before.place, before.end) == (lane, places[n], first):
                    before.end = last
                else:
                    of_query.append(_HeldPiece(lane, places[n], first, last))
        self._waiting, self._size = {}, 0

    def _written(self, answers: Answers) -> tuple[int, list[int]]:
        """(number of the lane, start of each block) of the answers now in the file."""
        if self._file is None:
            self._directory = ScratchDirectory("answers")
            self._file = (Path(self._directory.name) / "answers").open("w+b")
        self._file.seek(0, 2)
        places = []
        for _, block in blocks(answers):
            places.append(self._file.tell())
            self._file.write(len(block).to_bytes(8, "little"))
            self._file.write(block)
        self._lanes += 1
        return self._lanes, places


def _names_of(answers: Sequence[Answer]) -> AnswerNames | None:
    match answers:
        case SharedPart():
            return answers.whole.batch.names
        case AnswerBatch():
            return answers.names
    return None
