"""Answers that a thread writes while the next ones are made."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from queue import Full, Queue
from threading import Thread
from typing import Self

from spaseq.algebra.answers import Answer
from spaseq.sinks.base import Sink

_WAITING = 2
"""The most batches that wait. More would need memory where writing is slow."""

_JOIN_SECONDS = 5.0


class WriteBehind:
    """Writes answers in another thread, in order.

    Most of that work does not hold Python's lock, so the run goes on meanwhile. The next call, or
    the end, raises what the sink has raised. If the run fails, the answers so far are written. If
    it is interrupted, they are written, too, unless nobody reads them for some seconds.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink, self._error = sink, list[BaseException]()
        self._waiting = Queue["tuple[str, Sequence[Answer]] | None"](_WAITING)
        self._thread = Thread(target=self._work, name="spaseq-answers", daemon=True)

    def write_all(self, query: str, answers: Sequence[Answer]) -> None:
        """Write answers of the query with this name; raises what `Sink.write_all` raises."""
        self._raise()
        self._waiting.put((query, answers))

    def _raise(self) -> None:
        if self._error:
            raise self._error.pop()

    def _work(self) -> None:
        has_failed = False
        while (given := self._waiting.get()) is not None:
            if has_failed:
                continue
            try:
                self._sink.write_all(*given)
            except BaseException as error:
                has_failed = True
                self._error.append(error)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, at: object) -> None:
        if kind is None or issubclass(kind, Exception):
            self._waiting.put(None)
            self._thread.join()
            if kind is None:
                self._raise()
            return
        with suppress(Full):
            self._waiting.put(None, timeout=_JOIN_SECONDS)
            self._thread.join(_JOIN_SECONDS)
