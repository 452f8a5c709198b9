"""What the protocol wants: lines and columns in its units, and replies to requests that cannot be
read.
"""

from __future__ import annotations

import re
from bisect import bisect_right
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

_LINE_END = re.compile(r"\r\n|\r|\n")


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
