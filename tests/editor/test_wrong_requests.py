"""Requests that the language server cannot read get an error as their reply."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import IO, Any

import pytest

from tests.editor.queries import ROOT

INVALID_REQUEST, INVALID_PARAMS, PARSE_ERROR = -32600, -32602, -32700
HERE = {"uri": "file:///q.rq"}
DID_OPEN = {"jsonrpc": "2.0", "method": "textDocument/didOpen"}
PLACE = {"line": 0, "character": 0}


class RawClient:
    """An editor that sends any text."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, body: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def request(self, number: object, method: str, **more: Any) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, **more}
        self.send(json.dumps(message).encode())

    def reply(self) -> dict[str, Any]:
        """The next message of the server that is no notification."""
        assert self.process.stdout is not None
        while True:
            message = _message(self.process.stdout)
            if "method" not in message:
                return message


def _message(text: IO[bytes]) -> dict[str, Any]:
    size = 0
    while (line := text.readline().strip()) or not size:
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
        assert line, "the server has ended"
    found = json.loads(text.read(size))
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def client() -> Iterator[RawClient]:
    process = subprocess.Popen(
        [sys.executable, "-m", "spaseq", "lsp"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    client = RawClient(process)
    client.request(0, "initialize", params={"capabilities": {}, "processId": None, "rootUri": None})
    assert "result" in client.reply()
    yield client
    client.request(1, "shutdown")
    assert client.reply()["id"] == 1
    client.request(2, "textDocument/hover", params={"textDocument": HERE, "position": PLACE})
    assert client.reply()["error"]["code"] == INVALID_REQUEST  # nothing is asked after shutdown
    client.send(b'{"jsonrpc": "2.0", "method": "exit"}')
    assert process.wait(60) == 0
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("textDocument/hover", {}),
    ("textDocument/hover", {"params": None}),
    ("textDocument/hover", {"params": []}),
    ("textDocument/hover", {"params": "here"}),
    ("textDocument/hover", {"params": {"textDocument": HERE}}),
    ("textDocument/hover", {"params": {"textDocument": HERE, "position": {"line": "x"}}}),
    ("textDocument/completion", {"params": {"textDocument": 5, "position": PLACE}}),
    ("textDocument/rename", {"params": {"textDocument": HERE, "position": PLACE}}),
    ("textDocument/codeAction", {"params": {"textDocument": HERE, "range": PLACE}}),
    ("textDocument/formatting", {"params": {"textDocument": HERE, "options": 1}}),
]


@pytest.mark.parametrize(("method", "given"), WRONG)
@pytest.mark.parametrize("number", [7, "seven"])
def test_wrong_parameters(
    client: RawClient, method: str, given: dict[str, Any], number: object
) -> None:
    client.request(number, method, **given)
    reply = client.reply()
    assert (reply["id"], reply["error"]["code"]) == (number, INVALID_PARAMS)
    assert method in reply["error"]["message"]


@pytest.mark.parametrize(
    ("body", "code", "number"),
    [
        (b"{", PARSE_ERROR, None),
        (b'"\xff"', PARSE_ERROR, None),
        (b"[" * 20_000, PARSE_ERROR, None),
        (b"5", INVALID_REQUEST, None),
        (b"[]", INVALID_REQUEST, None),
        (b'{"id": 3, "method": "textDocument/hover"}', INVALID_REQUEST, 3),
        (b'{"jsonrpc": "1.0", "id": 4, "method": "x", "params": {}}', INVALID_REQUEST, 4),
    ],
)
def test_texts_that_are_no_messages(
    client: RawClient, body: bytes, code: int, number: object
) -> None:
    client.send(body)
    reply = client.reply()
    assert (reply["id"], reply["error"]["code"]) == (number, code)


def test_the_server_goes_on_after_wrong_requests(client: RawClient) -> None:
    client.send(json.dumps(DID_OPEN | {"params": 5}).encode())  # a notification has no reply
    client.request(8, "textDocument/hover", params={"textDocument": HERE})
    assert client.reply()["id"] == 8
    opened = {"textDocument": HERE | {"languageId": "spaseq", "version": 1, "text": "  "}}
    client.send(json.dumps(DID_OPEN | {"params": opened}).encode())
    client.request(9, "textDocument/hover", params={"textDocument": HERE, "position": PLACE})
    assert client.reply() == {"jsonrpc": "2.0", "id": 9, "result": None}
