"""Where a live run's answers go: a file that gets each answer once, or a broker."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from spaseq.connectors import is_sink, sink_at
from spaseq.connectors.base import Parcel, Refusal
from spaseq.errors import UsageError
from spaseq.runtime.live.answer_records import LoggedAnswer
from spaseq.sinks import SINKS, open_sink
from spaseq.sinks.answer_json import answer_json
from spaseq.sinks.appending import begins_now
from spaseq.sinks.line_file import open_lines, standard_lines
from spaseq.storage.output_sizes import cut_to, is_regular, size_of

STDOUT = "-"


class Outlet(ABC):
    """An output of a live run."""

    name: str
    """What tells it from other outputs."""

    together: int = 10_000
    """How many answers `send` gets at most."""

    refused: int = 0
    """How many answers it has refused for good."""

    @abstractmethod
    def begin(self, sent: Mapping[str, Any] | None) -> None:
        """Prepare for answers.

        Args:
            sent: what `send` returned last in an earlier run; None if this output is new.

        Raises:
            SpaseqError: it cannot be written.
        """

    @abstractmethod
    def send(self, answers: Sequence[LoggedAnswer]) -> Mapping[str, Any]:
        """Send answers, which are there for good when this returns.

        Returns:
            What the next run must know to go on behind them.

        Raises:
            NotTaken: the output may take them later.
            RunError: it does not take them.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of it."""


class FileOutlet(Outlet):
    """A file, or `-` for standard output.

    What a killed run wrote after its last note of the file's size is cut, and written again. So a
    file has each answer once. A terminal or a pipe cannot be cut.
    """

    def __init__(self, path: str, form: str, columns: Sequence[str], fresh: bool) -> None:
        """`fresh` says that the run is new, so what the file has is overwritten."""
        if SINKS[form].ends:
            endless = ", ".join(name for name, sink in SINKS.items() if not sink.ends)
            raise UsageError(f"--format {form} has an end, which --follow has not; use {endless}")
        self.name = path if path == STDOUT else os.path.abspath(path)
        self._path, self._form, self._columns, self._fresh = path, form, columns, fresh

    def begin(self, sent: Mapping[str, Any] | None) -> None:
        if self._path == STDOUT:
            self._context: Any = standard_lines()
            self._file: TextIO = self._context.__enter__()
            begins = True
        else:
            self._context = None
            self._file = open_lines(self._path, os.O_APPEND)
            if self._fresh:
                self._file.truncate(0)
            elif sent is not None and is_regular(self._file):
                cut_to(self._file, int(sent["size"]))
            begins = begins_now(self._path, self._form, self._columns)
        self._sink = open_sink(self._form, self._file, self._columns)
        if begins:
            self._sink.open()

    def send(self, answers: Sequence[LoggedAnswer]) -> Mapping[str, Any]:
        for query, _, answer in answers:
            self._sink.write(query, answer)
        self._file.flush()
        if self._path == STDOUT or not is_regular(self._file):
            return {"size": 0}
        os.fsync(self._file.fileno())
        return {"size": size_of(self._file)}

    def close(self) -> None:
        if self._context is not None:
            self._context.__exit__(None, None, None)
        else:
            self._file.close()


class BrokerOutlet(Outlet):
    """A broker or a webhook, which gets each answer at least once, with its id.

    What it refuses for good goes to a file, as JSON lines with the answer and the reason.
    """

    def __init__(self, url: str, failed: Path) -> None:
        self._sink, self._failed = sink_at(url), failed
        self.name, self.together = str(self._sink.address), self._sink.together

    def begin(self, sent: Mapping[str, Any] | None) -> None:
        pass

    def send(self, answers: Sequence[LoggedAnswer]) -> Mapping[str, Any]:
        refusals = self._sink.send([Parcel(a.id, _with_id(a)) for a in answers])
        if refusals:
            self.refused += len(refusals)
            self._keep(refusals)
        return {}

    def _keep(self, refusals: Sequence[Refusal]) -> None:
        self._failed.parent.mkdir(exist_ok=True)
        with open_lines(str(self._failed), os.O_APPEND) as file:
            for refusal in refusals:
                reason = json.dumps(refusal.reason, ensure_ascii=False)
                file.write(f'{{"reason": {reason}, "answer": {refusal.parcel.text}}}\n')
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        self._sink.close()


def _with_id(logged: LoggedAnswer) -> str:
    """The answer as a line of JSON that begins with its id."""
    return f'{{"id": "{logged.id}", {answer_json(logged.query, logged.answer)[1:]}'


def outlet_of(out: str, form: str, columns: Sequence[str], fresh: bool, failed: Path) -> Outlet:
    """The output that `--out` names; `failed` gets what it refuses.

    Raises:
        UsageError: the format does not go with it.
    """
    if not is_sink(out):
        return FileOutlet(out, form, columns, fresh)
    if form != "jsonl":
        raise UsageError(f"--format {form} is for files; a broker gets JSON")
    return BrokerOutlet(out, failed)
