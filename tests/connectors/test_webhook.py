"""Webhooks as outputs: one answer or an array in a request, statuses, outages."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from spaseq.connectors import sink_at
from spaseq.connectors.base import NotTaken, Parcel
from spaseq.errors import UsageError
from tests.connectors.certificates import Certificates
from tests.connectors.hook import Hook


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.close()


def parcels(count: int) -> list[Parcel]:
    return [Parcel(f"id{n}", f'{{"n": {n}}}', "q", n) for n in range(count)]


def test_an_answer_is_a_request_with_its_id(hook: Hook) -> None:
    sink = sink_at(f"http://me:se%3Acret@127.0.0.1:{hook.port}/a%20b?token=t&x=y")
    assert sink.together == 1
    for parcel in parcels(3):
        assert sink.send([parcel]) == []
    sink.close()
    assert hook.keys == ["id0", "id1", "id2"]
    path, headers, body = hook.requests[0]
    assert path == "/a%20b?token=t&x=y"
    assert headers["Content-Type"] == "application/json"
    assert headers["Authorization"] == "Basic bWU6c2U6Y3JldA=="
    assert json.loads(body) == {"n": 0}
    assert "cret" not in str(sink.address) + repr(sink.address)
    assert "token" not in str(sink.address) + repr(sink.address)


def test_several_answers_are_an_array(hook: Hook) -> None:
    sink = sink_at(f"http://127.0.0.1:{hook.port}/?batch=20")
    assert sink.together == 20
    sink.send(parcels(2))
    sink.send(parcels(1))
    sink.close()
    assert [json.loads(body) for _, _, body in hook.requests] == [[{"n": 0}, {"n": 1}], [{"n": 0}]]
    assert hook.requests[0][0] == "/"
    assert hook.keys[1] == "id0"


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_later_is_no_refusal(hook: Hook, status: int) -> None:
    sink = sink_at(f"http://127.0.0.1:{hook.port}/hook")
    hook.statuses = [status]
    with pytest.raises(NotTaken, match=str(status)):
        sink.send(parcels(1))
    assert sink.send(parcels(1)) == []
    sink.close()


@pytest.mark.parametrize("status", [301, 400, 401, 404, 410, 422])
def test_a_refusal_is_for_good(hook: Hook, status: int) -> None:
    sink = sink_at(f"http://127.0.0.1:{hook.port}/hook")
    hook.statuses = [status]
    (refusal,) = sink.send(parcels(1))
    assert refusal.parcel.id == "id0"
    assert str(status) in refusal.reason
    sink.close()


def test_a_server_that_is_away(hook: Hook) -> None:
    sink = sink_at(f"http://127.0.0.1:{hook.port}/hook")
    sink.send(parcels(1))
    port = hook.port
    hook.close()
    sink.close()
    with pytest.raises(NotTaken, match=f"no answer from 127.0.0.1:{port}"):
        sink.send(parcels(1))
    again = Hook(port)
    sink.send(parcels(1))
    sink.close()
    again.close()
    assert again.keys == ["id0"]


@pytest.mark.parametrize("batch", ["0", "-1", "x", ""])
def test_a_batch_is_a_number(batch: str) -> None:
    with pytest.raises(UsageError, match="batch is a number"):
        sink_at(f"http://127.0.0.1/?batch={batch}")


def test_an_answer_of_10_mb(hook: Hook) -> None:
    sink = sink_at(f"http://127.0.0.1:{hook.port}/")
    text = json.dumps("x" * 10_000_000)
    assert sink.send([Parcel("large", text, "q", 0)]) == []
    sink.close()
    assert hook.requests[0][2] == text.encode()


def test_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.chain, made.key)
    hook = Hook(tls=context)
    sink = sink_at(f"https://localhost:{hook.port}/")
    with pytest.raises(NotTaken, match="certificate verify failed"):
        sink.send(parcels(1))
    monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
    assert sink.send(parcels(1)) == []
    sink.close()
    hook.close()
    assert hook.keys == ["id0"]


def test_what_no_url_can_have_is_percent_encoded(hook: Hook) -> None:
    sink = sink_at(f"http://127.0.0.1:{hook.port}/zażółć a%20b?q=ü&r=a b&batch=2")
    assert sink.send(parcels(1)) == []
    sink.close()
    assert [path for path, _, _ in hook.requests] == [
        "/za%C5%BC%C3%B3%C5%82%C4%87%20a%20b?q=%C3%BC&r=a%20b"
    ]
