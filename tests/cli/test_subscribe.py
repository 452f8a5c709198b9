"""`spaseq subscribe` against a broker that keeps its subscriptions in a dictionary."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from click.testing import CliRunner, Result

from spaseq.cli.main import cli
from spaseq.errors import SpaseqError

SAMPLE = Path(__file__).parents[3] / "shared/messages/ngsi-ld/subscription.json"


class Broker(ThreadingHTTPServer):
    """A broker; `kept` has its subscriptions, `asked` the headers of requests."""

    def __init__(self) -> None:
        self.kept: dict[str, dict[str, Any]] = {}
        self.asked: list[dict[str, str]] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Broker

    def do_POST(self) -> None:
        self.server.asked.append({k.lower(): v for k, v in self.headers.items()})
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/ngsi-ld/v1/subscriptions" or "refused" in body["entities"][0]["type"]:
            self._reply(400, b'{"title": "no such type"}')
        elif body["id"] in self.server.kept:
            self._reply(409)
        else:
            self.server.kept[body["id"]] = body
            self._reply(201)

    def do_DELETE(self) -> None:
        known = self.server.kept.pop(unquote(self.path.rpartition("/")[2]), None)
        self._reply(404 if known is None else 204)

    def _reply(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def broker() -> Iterator[Broker]:
    server = Broker()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["subscribe", *arguments])


TO = ("--type", "Weir", "--to", "http://me:8787/streams/Weirs")


def test_a_subscription_is_made_replaced_and_deleted(broker: Broker) -> None:
    tenant, token = (
        ("--header", "NGSILD-Tenant: port"),
        ("--send-header", "Authorization: Bearer x"),
    )
    made = run(broker.url, *TO, *tenant, *token, "--attribute", "level")
    assert made.output == "made subscription urn:ngsi-ld:Subscription:spaseq\n"
    (kept,) = broker.kept.values()
    assert kept["notification"]["endpoint"] == {
        "uri": "http://me:8787/streams/Weirs",
        "accept": "application/ld+json",
        "receiverInfo": [{"key": "Authorization", "value": "Bearer x"}],
    }
    assert kept["watchedAttributes"] == kept["notification"]["attributes"] == ["level"]
    assert broker.asked[0]["ngsild-tenant"] == "port"
    assert broker.asked[0]["content-type"] == "application/json"
    context = ("--context", "http://w/context", "--deletes", "--format", "concise")
    assert run(f"{broker.url}/ngsi-ld/v1/", *TO, *context).output.startswith("replaced")
    (kept,) = broker.kept.values()
    assert kept["@context"] == "http://w/context"
    assert broker.asked[-1]["content-type"] == "application/ld+json"
    assert "entityDeleted" in kept["notificationTrigger"]
    assert kept["notification"]["format"] == "concise"
    assert run(broker.url, "--delete").output == "deleted subscription spaseq\n"
    assert run(broker.url, "--delete").output == "there was no subscription spaseq\n"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("broker:1026", *TO), "no address"),
        (("http://127.0.0.1:1", *TO), "cannot be reached"),
        (("{url}", "--type", "refused", *TO[2:]), "refuses it with 400: .*no such type"),
        (("{url}", *TO[:2]), "where to"),
        (("{url}", *TO[2:]), "which entities"),
        (("{url}", *TO, "--header", "tenant"), "NAME:VALUE"),
    ],
)
def test_what_cannot_be(broker: Broker, arguments: tuple[str, ...], reason: str) -> None:
    result = run(*(each.format(url=broker.url) for each in arguments))
    assert isinstance(result.exception, SpaseqError)
    with pytest.raises(SpaseqError, match=reason):
        raise result.exception


@pytest.mark.skipif(not SAMPLE.exists(), reason="there are no shared samples")
def test_the_members_are_those_of_a_known_subscription() -> None:
    known = json.loads(SAMPLE.read_text())
    body = json.loads(run("http://b", *TO, "--attribute", "level", "--dry-run").output)
    assert body.keys() <= known.keys() | {"subscriptionName", "id"}
    assert body["notification"].keys() <= known["notification"].keys()
    assert body["notification"]["endpoint"].keys() <= known["notification"]["endpoint"].keys()
