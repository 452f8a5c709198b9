"""What a sink of answers is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self, TextIO

from spaseq.algebra.answers import Answer


class Sink(ABC):
    """Writes the answers of queries to a text stream, as they come.

    `open` once, then `write` for each answer, then `close` once; as a context manager it opens and,
    if all went well, closes. What `write` was given has reached the text stream when it returns
    (the stream may buffer it): a sink holds no answers back, so the memory it needs does not grow
    with them. `close` completes the document but leaves the text stream open: it belongs to whoever
    made it. A sink whose format has one table only takes the answers of one query.
    """

    def __init__(self, out: TextIO) -> None:
        self.out = out

    def open(self) -> None:  # noqa: B027 - most formats begin with their first answer
        """Write what stands before the first answer."""

    @abstractmethod
    def write(self, query: str, answer: Answer) -> None:
        """Write one answer of the query with this name."""

    def close(self) -> None:  # noqa: B027 - most formats end with their last answer
        """Write what stands after the last answer."""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is None:  # an unfinished document shall not look finished
            self.close()
