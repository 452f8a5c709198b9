"""Webhooks: `http[s]://[user:password@]host[:port]/path[?batch=N]`, which get answers by POST.

Each request has one answer as JSON, or as a template made it, and its id as `Idempotency-Key`. With
`batch`, a request has a JSON array of up to N answers. One request is on its way at a time, so
answers come in order. The parameter `batch` is not sent; others are.
"""

from __future__ import annotations

import hashlib
import http.client
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from spaseq.back_off import may_pass
from spaseq.connectors.address import Address
from spaseq.connectors.base import MessageSink, NotTaken, Parcel, Refusal
from spaseq.connectors.reconnecting import basic_login, http_connection
from spaseq.errors import UsageError
from spaseq.message_text import one_line

_READ = 2**16  # bytes of a response; a longer one ends the connection


class WebhookSink(MessageSink):
    """An address that takes answers by POST."""

    options = frozenset(("content_type", "headers", "method"))

    def __init__(self, address: Address, given: Mapping[str, Any] = MappingProxyType({})) -> None:
        super().__init__(address, given)
        text = address.parameters.get("batch", "1")
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(f"{address}: batch is a number of answers, 1 or more")
        self.together, self._is_array = int(text), "batch" in address.parameters
        rest = "&".join(p for p in address.query.split("&") if p and not p.startswith("batch="))
        self._target = f"/{address.raw_path}" + (f"?{rest}" if rest else "")
        self._headers = {"Content-Type": "application/json", "User-Agent": "spaseq"}
        if "content_type" in given:
            self._headers["Content-Type"] = one_line(given["content_type"])
        self._headers |= basic_login(address)
        self._headers |= {name: one_line(text) for name, text in given.get("headers", {}).items()}
        self._method = str(given.get("method", "POST"))
        self._connection: http.client.HTTPConnection | None = None

    def send(self, parcels: Sequence[Parcel]) -> list[Refusal]:
        status, reason = self._post(parcels)
        if 200 <= status < 300:
            return []
        said = f"{self.address}: the answer was {status} {reason}".rstrip()
        if may_pass(status):
            raise NotTaken(said)
        if 300 <= status < 400:
            said += "; give the address that it redirects to"
        return [Refusal(parcel, said) for parcel in parcels]

    def _post(self, parcels: Sequence[Parcel]) -> tuple[int, str]:
        """Status and reason of a request; a kept connection that the server closed is replaced."""
        texts = [parcel.text for parcel in parcels]
        body = (f"[{','.join(texts)}]" if self._is_array else texts[0]).encode()
        headers = {**self._headers, "Idempotency-Key": _key(parcels)}
        for attempt in (1, 2):
            is_kept = self._connection is not None
            try:
                return self._request(body, headers)
            except (http.client.RemoteDisconnected, ConnectionError) as error:
                self.close()
                if not is_kept or attempt == 2:
                    raise self._away(error) from error
            except (OSError, http.client.HTTPException) as error:
                self.close()
                raise self._away(error) from error
        raise AssertionError("the second attempt has returned or raised")

    def _request(self, body: bytes, headers: dict[str, str]) -> tuple[int, str]:
        if self._connection is None:
            self._connection = http_connection(self.address.scheme, self.address.host)
        self._connection.request(self._method, self._target, body, headers)
        with self._connection.getresponse() as response:
            response.read(_READ)
            if not response.isclosed():
                self.close()
            return response.status, response.reason[:100]

    def _away(self, error: Exception) -> NotTaken:
        reason = str(error) or type(error).__name__
        return NotTaken(
            f"{self.address}: no answer from {self.address.host} ({reason}): check the host and "
            "the port, and that the server runs"
        )

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _key(parcels: Sequence[Parcel]) -> str:
    if len(parcels) == 1:
        return parcels[0].id
    return hashlib.sha256(" ".join(parcel.id for parcel in parcels).encode()).hexdigest()[:32]
