"""The protocol's lines and columns, replies to unreadable requests, and settings.

The server reads settings from its command line and from the client.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
)
from pygls.protocol import LanguageServerProtocol

from spaseq.editor.vocabulary import MOST_STREAM_TRIPLES, MOST_TRIPLES
from spaseq.kb.service_address import is_url
from spaseq.options import REGIMES

_LINE_END = re.compile(r"\r\n|\r|\n")

_LISTS = {"kb": "kbs", "stream": "streams", "ontology": "ontologies"}


@dataclass(frozen=True)
class Positions:
    """The places of a text; `encoding` is "utf-8", "utf-16" or "utf-32".

    >>> Positions("\\U0001f600 ?x").place(2), Positions("\\U0001f600 ?x").offset(0, 3)
    ((0, 3), 2)
    """

    text: str
    encoding: str = "utf-16"

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(end.end() for end in _LINE_END.finditer(self.text))]

    def place(self, offset: int) -> tuple[int, int]:
        """(line, column) of a character offset, both counted from 0."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset) - 1
        return line, self._units(self.text[self._starts[line] : offset])

    def offset(self, line: int, column: int) -> int:
        """The character offset of a place; a place beyond a line is the end of that line."""
        if line < 0:
            return 0
        if line >= len(self._starts):
            return len(self.text)
        start = self._starts[line]
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)
        row = self.text[start:end].rstrip("\r\n")
        if self.encoding == "utf-32" or row.isascii():
            return start + max(0, min(column, len(row)))
        used = 0
        for number, character in enumerate(row):
            used += self._units(character)
            if used > column:
                return start + number
        return start + len(row)

    def _units(self, text: str) -> int:
        if self.encoding == "utf-32" or text.isascii():
            return len(text)
        if self.encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(character > "\uffff" for character in text)


class AnsweredAlready(JsonRpcInvalidRequest):
    """A message that is wrong and has got its reply."""


class AnsweringProtocol(LanguageServerProtocol):
    """The protocol of the server: whatever has an id gets a reply, and so does a broken text."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message as an object of the protocol; it is called for each JSON object, inner first.

        Raises:
            AnsweredAlready: it is a request with wrong parameters; its error is sent.
        """
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            if "method" not in data or "id" not in data:
                raise  # a notification or a response, which get no reply
            self._refuse(data["id"], f"wrong parameters of {data['method']}", JsonRpcInvalidParams)
            raise AnsweredAlready from error

    def handle_message(self, message: Any) -> None:
        """Handle a message.

        Raises:
            AnsweredAlready: it is no message of JSON-RPC 2.0, or a request after the shutdown.
        """
        version = getattr(message, "jsonrpc", None)
        if version != self.VERSION:
            inner = message.get("id") if isinstance(message, dict) else getattr(message, "id", None)
            self._refuse(inner, "no message of JSON-RPC 2.0", JsonRpcInvalidRequest)
            raise AnsweredAlready
        if self._shutdown and hasattr(message, "id") and hasattr(message, "method"):
            self._refuse(message.id, "the server is shut down", JsonRpcInvalidRequest)
            raise AnsweredAlready
        super().handle_message(message)

    def refuse_text(self) -> None:
        """Reply to a text that is no JSON."""
        self._refuse(None, "no JSON", JsonRpcParseError)

    def _refuse(self, number: object, message: str, kind: type[JsonRpcException]) -> None:
        known = number if isinstance(number, int | str) else None
        error = kind(f"{kind.MESSAGE}: {message}").to_response_error()
        self._send_data({"jsonrpc": self.VERSION, "id": known, "error": error})


@dataclass(frozen=True, slots=True)
class EditorSettings:
    """Knowledge bases, streams and ontologies, as texts of options, and the entailment regime."""

    kbs: tuple[str, ...] = ()
    streams: tuple[str, ...] = ()
    ontologies: tuple[str, ...] = ()
    entailment: str | None = None

    def and_also(self, other: EditorSettings) -> EditorSettings:
        """Both settings together; the other regime counts if there is one."""
        return EditorSettings(
            self.kbs + other.kbs,
            self.streams + other.streams,
            self.ontologies + other.ontologies,
            other.entailment or self.entailment,
        )

    def sources(self) -> dict[str, int]:
        """Each path that is read, with the number of triples that are read of it."""
        sources = dict.fromkeys(self.ontologies, MOST_TRIPLES)
        for text in self.kbs:
            path = path_in(text)
            if not is_url(path):
                sources[path] = MOST_TRIPLES
        for text in self.streams:
            sources.setdefault(path_in(text), MOST_STREAM_TRIPLES)
        return sources


def path_in(text: str) -> str:
    """The path or address in `NAME=PATH`, `<IRI>=PATH` or `PATH`.

    >>> path_in("<http://example/kb>=kb.ttl"), path_in("S1=events.nq"), path_in("kb.ttl")
    ('kb.ttl', 'events.nq', 'kb.ttl')
    """
    if os.path.exists(text) or "=" not in text:
        return text
    if text.startswith("<") and ">=" in text:
        return text.split(">=", 1)[1]
    name, path = text.split("=", 1)
    return text if is_url(text) and not is_url(path) and "?" in name else path


def settings_of(value: object, folder: str | None) -> tuple[EditorSettings, list[str]]:
    """The settings in a client's JSON, and its errors.

    A relative path is relative to `folder`, the folder of the workspace.

    >>> settings_of({"kb": "a.ttl", "speed": 3}, "/w")[1]
    ["unknown setting 'speed': there are kb, stream, ontology, entailment"]
    """
    problems: list[str] = []
    if value is None:
        return EditorSettings(), problems
    if not isinstance(value, Mapping):
        return EditorSettings(), ["the settings of spaseq are no object"]
    lists: dict[str, tuple[str, ...]] = {}
    entailment = None
    for name, given in value.items():
        if given is None or given == "":
            continue
        if name in _LISTS:
            texts = [given] if isinstance(given, str) else given
            if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
                lists[_LISTS[name]] = tuple(_in_folder(text, folder) for text in texts)
            else:
                problems.append(f"the setting {name} is a text or a list of texts")
        elif name == "entailment":
            if given in REGIMES:
                entailment = str(given)
            else:
                problems.append(f"unknown entailment {given!r}: there is {', '.join(REGIMES)}")
        else:
            names = ", ".join([*_LISTS, "entailment"])
            problems.append(f"unknown setting {name!r}: there are {names}")
    return EditorSettings(**lists, entailment=entailment), problems


def _in_folder(text: str, folder: str | None) -> str:
    path = path_in(text)
    if folder is None or is_url(path) or os.path.isabs(path):
        return text
    return text[: len(text) - len(path)] + os.path.join(folder, path)
