"""Subscriptions at NGSI-LD context brokers: a broker then sends notifications to a URL."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

from spaseq.errors import RunError, UsageError
from spaseq.message_text import public_address
from spaseq.records import record

_TIMEOUT_S = 10
_CHANGES = ["entityCreated", "entityUpdated", "attributeCreated", "attributeUpdated"]
_DELETES = ["attributeDeleted", "entityDeleted"]


@record
class Subscription:
    """A subscription: the notifications of a broker, and their target.

    Attributes:
        name: names it at the broker; one of that name is replaced.
        url: the target of notifications.
        types: the types of entities; None of them is needed if `pattern` is given.
        attributes: the watched and sent attributes; all if there are none.
        pattern: a regular expression of entities' ids.
        form: normalized, concise or keyValues.
        context: the IRI of the context of its names.
        deletes: whether deletions cause notifications, too.
        headers: headers of the notifications.
        throttling_s: minimum time between two notifications.
    """

    name: str
    url: str
    types: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    pattern: str | None = None
    form: str = "normalized"
    context: str | None = None
    deletes: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    throttling_s: int | None = None

    @property
    def iri(self) -> str:
        """Its id at the broker."""
        return f"urn:ngsi-ld:Subscription:{quote(self.name, safe='')}"

    def body(self) -> dict[str, Any]:
        """The subscription as the broker takes it.

        Raises:
            UsageError: it names no entities.
        """
        if not self.types:
            raise UsageError("which entities? a subscription names at least one type (--type)")
        endpoint: dict[str, Any] = {"uri": self.url, "accept": "application/ld+json"}
        if self.headers:
            endpoint["receiverInfo"] = [{"key": k, "value": v} for k, v in self.headers]
        pattern = {} if self.pattern is None else {"idPattern": self.pattern}
        sent: dict[str, Any] = {"format": self.form, "endpoint": endpoint}
        if self.form != "keyValues":
            sent["sysAttrs"] = True  # when it was modified or deleted
        subscription: dict[str, Any] = {
            "id": self.iri,
            "type": "Subscription",
            "subscriptionName": self.name,
            "entities": [{"type": each, **pattern} for each in self.types],
            "notification": sent,
        }
        if self.attributes:
            subscription["watchedAttributes"] = sent["attributes"] = [*self.attributes]
        if self.deletes:
            subscription["notificationTrigger"] = [*_CHANGES, *_DELETES]
        if self.throttling_s is not None:
            subscription["throttling"] = self.throttling_s
        if self.context is not None:
            subscription["@context"] = self.context
        return subscription


class ContextBroker:
    """A broker's subscriptions.

    Args:
        url: of the broker, without `/ngsi-ld/v1`.
        headers: sent with each request: a tenant, a token.

    Raises:
        UsageError: it is no address.
    """

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise UsageError(f"{public_address(url)} is no address of a broker, http://host:port")
        self._url = url.rstrip("/").removesuffix("/ngsi-ld/v1") + "/ngsi-ld/v1/subscriptions"
        self._headers = dict(headers or {})

    def subscribe(self, wanted: Subscription) -> bool:
        """Make a subscription, or replace the one of its name; whether there was none.

        Raises:
            RunError: the broker cannot be reached, or refuses it.
        """
        body = wanted.body()
        if self._ask("POST", "", body, (409,)) != 409:
            return True
        self._ask("DELETE", f"/{quote(wanted.iri, safe=':')}")
        self._ask("POST", "", body)
        return False

    def unsubscribe(self, name: str) -> bool:
        """Delete the subscription of a name; whether there was one. RunError as above."""
        iri = Subscription(name, "").iri
        return self._ask("DELETE", f"/{quote(iri, safe=':')}", None, (404,)) != 404

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        expected: tuple[int, ...] = (),
    ) -> int:
        text = None if body is None else json.dumps(body).encode()
        form = "application/ld+json" if body and "@context" in body else "application/json"
        headers = {"Accept": "application/json", **self._headers}
        if text is not None:
            headers["Content-Type"] = form
        request = Request(self._url + path, text, headers, method=method)
        where = public_address(self._url)
        try:
            with urlopen(request, timeout=_TIMEOUT_S) as answer:
                status: int = answer.status
                return status
        except HTTPError as error:
            if error.code in expected:
                return error.code
            said = error.read(1000).decode(errors="replace").strip()
            raise RunError(f"{where} refuses it with {error.code}: {said[:300]}") from None
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise RunError(f"{where} cannot be reached: {reason}") from None
