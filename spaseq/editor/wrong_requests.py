"""Replies to requests that cannot be read. pygls only logs them, and the editor waits."""

from __future__ import annotations

from typing import Any

from pygls.exceptions import (
    JsonRpcException,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
)
from pygls.protocol import LanguageServerProtocol


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
