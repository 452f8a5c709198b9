"""The outputs of a live run's answers: a file that gets each answer once, or a broker."""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TextIO, TypeAlias

from spaseq.alert_templates.template import (
    AlertTemplate,
    TemplateFailed,
    TemplateProcess,
    TemplateSlow,
)
from spaseq.connectors import is_sink, sink_at
from spaseq.connectors.base import NotTaken, Parcel
from spaseq.errors import RunError, SpaseqError, UsageError
from spaseq.lang.scan import head_comments
from spaseq.runtime.live.answer_records import LoggedAnswer, json_with_id
from spaseq.sinks import SINKS, begins_now, open_sink
from spaseq.sinks.base import open_lines, standard_lines
from spaseq.sinks.jsonl import JsonLines
from spaseq.storage.checksums import cut_to, is_regular, size_of

STDOUT = "-"

Numbered: TypeAlias = tuple[int, LoggedAnswer]
"""An answer with its index in the answer log."""


class Taken(NamedTuple):
    """The result of sending answers to an output.

    Attributes:
        state: the output's state after them, for the next run; a JSON value.
        refusals: the answers that it refuses for good, with the reason.
    """

    state: Mapping[str, Any]
    refusals: Sequence[tuple[str, LoggedAnswer]] = ()


class Outlet(ABC):
    """An output of a live run."""

    name: str
    """Identifies the output among others; without passwords."""

    together: int = 10_000
    """Maximum number of answers for `send`."""

    @abstractmethod
    def begin(self, state: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Open the output, without a request over a network.

        Args:
            state: the state that an earlier run noted last; None if this output is new.

        Returns:
            The state before the first answer.

        Raises:
            SpaseqError: it cannot be written.
        """

    def resume(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        """Prepare for `send`: before the first one, and after each failed one.

        Args:
            state: the state that was noted last.

        Returns:
            The state now.

        Raises:
            SpaseqError: as `send`.
        """
        return state

    @abstractmethod
    def send(self, answers: Sequence[Numbered]) -> Taken:
        """Send answers; except for refused ones, they are stored for good when this returns.

        Raises:
            NotTaken: the output may take them later.
            RunError: it does not take them.
        """

    @abstractmethod
    def close(self) -> None:
        """Release the output."""


class FileOutlet(Outlet):
    """A file, or `-` for standard output.

    Text that a killed run wrote after its last note of the file's size is cut, and written again.
    So a file has each answer once. A terminal or a pipe cannot be cut. If a file is shorter than
    noted, its user has moved or emptied it; then it is appended to.
    """

    def __init__(
        self,
        path: str,
        form: str,
        columns: Sequence[str],
        overwrites: bool,
        has_ids: bool = False,
    ) -> None:
        """`overwrites` says whether a new output removes the content of the file.

        `has_ids` says whether JSON lines begin with the answers' ids.
        """
        if SINKS[form].ends:
            endless = ", ".join(name for name, sink in SINKS.items() if not sink.ends)
            raise UsageError(f"--format {form} has an end, and live answers have not: {endless}")
        self.name = path if path == STDOUT else os.path.abspath(path)
        self._path, self._form, self._columns = path, form, columns
        self._overwrites, self._has_ids = overwrites, has_ids and form == JsonLines.form
        self._context: Any = None

    def begin(self, state: Mapping[str, Any] | None) -> Mapping[str, Any]:
        begins = True
        if self._path == STDOUT:
            self._context = standard_lines()
            self._file: TextIO = self._context.__enter__()
        else:
            self._file = open_lines(self._path, os.O_APPEND)
            if state is not None and is_regular(self._file):
                cut_to(self._file, min(int(state["size"]), size_of(self._file)))
            elif self._overwrites and is_regular(self._file):
                self._file.truncate(0)
            begins = begins_now(self._path, self._form, self._columns)
        self._sink = open_sink(self._form, self._file, self._columns)
        if begins:
            self._sink.open()
        self._is_whole = True
        return {"size": self._synced()}

    def resume(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._is_whole:
            return state
        with suppress(SpaseqError):  # it tries once more to write the failed text
            self.close()
        return self.begin(state)

    def send(self, answers: Sequence[Numbered]) -> Taken:
        refusals = []
        self._is_whole = False
        for _, logged in answers:
            try:
                if self._has_ids:
                    self._file.write(f"{json_with_id(logged)}\n")
                else:
                    self._sink.write(logged.query, logged.answer)
            except UsageError as error:  # the format cannot hold it
                refusals.append((str(error), logged))
        size = self._synced()
        self._is_whole = True
        return Taken({"size": size}, refusals)

    def _synced(self) -> int:
        """The size of the file, once all of it is on disk; 0 for standard output."""
        self._file.flush()
        if self._path == STDOUT or not is_regular(self._file):
            return 0
        try:
            os.fsync(self._file.fileno())
        except OSError as error:
            raise RunError(f"cannot write {self.name}: {error.strerror}") from error
        return size_of(self._file)

    def close(self) -> None:
        if self._context is not None:
            self._context.__exit__(None, None, None)
        else:
            self._file.close()


class BrokerOutlet(Outlet):
    """A broker, a database, a webhook or a mailbox, which gets answers as JSON with their ids.

    With a template it gets the template's text.
    """

    def __init__(self, url: str, made_by: AnswerTemplate | None = None, **options: Any) -> None:
        self._sink = sink_at(url, options)
        self._template = made_by
        self.name, self.together = str(self._sink.address), self._sink.together

    def begin(self, state: Mapping[str, Any] | None) -> Mapping[str, Any]:
        if state is None:
            state = {"identity": f"spaseq-{secrets.token_hex(8)}", "note": {}}
        self._identity = str(state["identity"])
        return state

    def resume(self, state: Mapping[str, Any]) -> Mapping[str, Any]:
        self._sink.resume(self._identity, state["note"])
        return self._state()

    def send(self, answers: Sequence[Numbered]) -> Taken:
        of_index, refused = dict(answers), list[tuple[str, LoggedAnswer]]()
        parcels = []
        for index, answer in answers:
            try:
                parcels.append(Parcel(answer.id, self._text(answer), answer.query, index))
            except TemplateFailed as error:
                refused.append((str(error), answer))
        refusals = self._sink.send(parcels) if parcels else []
        refused += [(refusal.reason, of_index[refusal.parcel.index]) for refusal in refusals]
        return Taken(self._state(), refused)

    def _text(self, answer: LoggedAnswer) -> str:
        if self._template is None:
            return json_with_id(answer)
        try:
            return self._template.text(answer)
        except TemplateSlow as error:
            raise NotTaken(str(error)) from error

    def _state(self) -> Mapping[str, Any]:
        return {"identity": self._identity, "note": dict(self._sink.note)}

    def close(self) -> None:
        self._sink.close()
        if self._template is not None:
            self._template.close()


class AnswerTemplate:
    """The text of answers by a template; `text_of` gives the text of a query, by its title."""

    def __init__(self, template: AlertTemplate, text_of: Callable[[str], str]) -> None:
        self._process, self._text_of = TemplateProcess(template), text_of

    def text(self, answer: LoggedAnswer) -> str:
        """The text of an answer; TemplateSlow or TemplateFailed if the template fails."""
        query = {**head_comments(self._text_of(answer.title)), "name": answer.title}
        return self._process.render(json_with_id(answer), query)

    def close(self) -> None:
        """End its process."""
        self._process.close()


def outlet_of(
    to: str, form: str, columns: Sequence[str], overwrites: bool, has_ids: bool = False
) -> Outlet:
    """The output at a path, or at a URL without a template or options.

    Raises:
        UsageError: the format does not suit it.
    """
    if not is_sink(to):
        return FileOutlet(to, form, columns, overwrites, has_ids)
    if form != "jsonl":
        raise UsageError(f"--format {form} is for files; a broker gets JSON")
    return BrokerOutlet(to)
