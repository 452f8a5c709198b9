"""CloudEvents: data of all kinds, envelopes, names, and what is bad."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.rdf.inputs.contexts import JsonLdContexts
from spaseq.rdf.inputs.formats import with_headers
from tests.rdf.streams import XSD, Event, read, write

CE = "urn:spaseq:cloudevents:"
TURTLE = "<http://e/a> <http://e/b> 7 ."
TRIPLE = ("<http://e/a>", "<http://e/b>", f'"7"^^<{XSD}integer>')


def envelope(number: int = 1, **more: Any) -> dict[str, Any]:
    found = {"specversion": "1.0", "id": f"n{number}", "source": "http://pump/1", "type": "t.high"}
    return {**found, "time": f"1970-01-01T00:00:0{number}Z", **more}


def events(tmp_path: Path, *values: Any, **options: Any) -> tuple[list[Event], list[str]]:
    lines = "".join(json.dumps(value) + "\n" for value in values)
    found, bad = read(write(tmp_path / "p.cloudevents", lines), **options)
    return found, [one.reason for one in bad]


def said(event: Event, name: str) -> set[str]:
    return {o for s, p, o in event.triples if (s, p) == (f"<{event.graph}>", f"<{CE}{name}>")}


@pytest.mark.parametrize(
    "data",
    [
        {"datacontenttype": "text/turtle", "data": TURTLE},
        {"datacontenttype": "text/turtle; charset=utf-8", "data": TURTLE},
        {
            "datacontenttype": "application/n-triples",
            "data_base64": b64encode(" ".join(TRIPLE).encode() + b" .\n").decode(),
        },
        {"data": {"@id": "http://e/a", "http://e/b": 7}},
        {
            "datacontenttype": "application/ld+json",
            "data": {"@context": {"b": "http://e/b"}, "@id": "http://e/a", "b": 7},
        },
        {"data": {"@context": {"b": "http://e/b"}, "@graph": [{"@id": "http://e/a", "b": 7}]}},
        {"data": {"@id": "http://e/g", "@graph": [{"@id": "http://e/a", "http://e/b": 7}]}},
        {
            "datacontenttype": "application/ld+json",
            "data_base64": b64encode(b'{"@id": "http://e/a", "http://e/b": 7}').decode(),
        },
    ],
)
def test_data_that_is_rdf_is_the_events_graph(tmp_path: Path, data: dict[str, Any]) -> None:
    (event,), bad = events(tmp_path, envelope(subject='café "17"', sequence="041", **data))
    assert (event.time, event.graph, bad) == (1000, "http://pump/1#n1", [])
    assert TRIPLE in event.triples
    assert said(event, "type") == {'"t.high"'}
    assert said(event, "source") == {"<http://pump/1>"}
    assert said(event, "subject") == {'"café \\"17\\""'}
    assert said(event, "sequence") == {'"041"'}


def test_data_that_is_no_rdf_is_a_value(tmp_path: Path) -> None:
    plain = envelope(1, datacontenttype="text/plain", data="jam at 21")
    given = envelope(2, data={"station": 17})
    none = envelope(3)
    (text, value, empty), bad = events(tmp_path, plain, given, none)
    assert said(text, "data") == {'"jam at 21"'}
    json_type = "http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON"
    assert said(value, "data") == {f'"{{\\"station\\":17}}"^^<{json_type}>'}
    assert (said(empty, "data"), bad) == (set(), [])


def test_a_context_of_the_stream_reads_plain_json(tmp_path: Path) -> None:
    own = JsonLdContexts(own=json.dumps({"station": "http://e/station"}))
    (event,), bad = events(tmp_path, envelope(data={"station": 17}), contexts=own)
    assert {p for _, p, _ in event.triples} >= {"<http://e/station>"}
    assert (said(event, "data"), bad) == (set(), [])


def test_data_that_is_null_is_a_value(tmp_path: Path) -> None:
    found, bad = events(tmp_path, envelope(1, data=None), envelope(2))
    json_type = "http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON"
    assert [said(event, "data") for event in found] == [{f'"null"^^<{json_type}>'}, set()]
    assert not bad


def test_two_sources_never_share_a_name(tmp_path: Path) -> None:
    named = [("http://x/#a", "b"), ("http://x/", "a&b"), ("http://x/", "a%26b")]
    found, _ = events(tmp_path, *(envelope(1, source=own, id=name) for own, name in named))
    assert len({event.graph for event in found}) == 3


MEMBERS = "id", "source", "time", "datacontenttype", "data", "data_base64", "subject"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from(MEMBERS), VALUES, max_size=3))
@settings(max_examples=100, deadline=None)
def test_no_value_ends_the_stream(members: dict[str, Any]) -> None:
    with TemporaryDirectory() as directory:
        found, bad = events(Path(directory), envelope(1) | members, envelope(9))
    assert any(event.time == 9000 for event in found)
    assert len(found) == 2 or bad


def test_source_and_id_name_an_event(tmp_path: Path) -> None:
    relative = envelope(1, source="/line 4", id="a#b")
    found, _ = events(tmp_path, [relative, envelope(2, source="http://pump/1#x")])
    assert [event.graph for event in found] == [
        "urn:spaseq:cloudevents:source:/line%204#a%23b",
        "http://pump/1#x&n2",
    ]
    for source in ("/line 4", "/line%204"):
        given = {**relative, "source": source}
        (event,), _ = events(tmp_path, given, base="http://plant/hall/")
        assert event.graph == "http://plant/line%204#a%23b"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"id": "1"}, "needs specversion, source, type"),
        (envelope(specversion="0.3"), "only 1.0"),
        (envelope(datacontenttype="text/turtle", data="<http://e/a> nothing"), "cannot be read"),
        (envelope(datacontenttype="text/turtle", data_base64="%"), "cannot be read"),
        (envelope(time="noon"), "readable timestamp"),
        (envelope(id=""), "needs id"),
        (envelope(datacontenttype=5, data=1), "are text"),
        (envelope(data_base64=5), "are text"),
        (envelope(data_base64=None), "are text"),
        (envelope(data=1, data_base64="MQ=="), "exclude each other"),
        (7, "is an object"),
        (envelope(data={"@context": "http://far/context", "a": 1}), "nothing is fetched"),
    ],
)
def test_what_is_bad_costs_only_itself(tmp_path: Path, value: Any, reason: str) -> None:
    found, bad = events(tmp_path, [value, envelope(2)], envelope(3))
    assert [event.time for event in found] == [2000, 3000]
    assert len(bad) == 1 and reason in bad[0]


def test_headers_and_body_are_one_message() -> None:
    headers = {"ce-specversion": "1.0", "ce-id": "7", "ce-source": "/s", "ce-type": "t"}
    headers |= {"ce-subject": "caf%C3%A9", "content-length": "9"}
    media, body = with_headers(headers, "application/json", b'{"a": 1}')
    assert media == "application/cloudevents+json"
    known = {"specversion": "1.0", "id": "7", "source": "/s", "type": "t", "subject": "café"}
    assert json.loads(body) == {**known, "datacontenttype": "application/json", "data": {"a": 1}}
    media, body = with_headers(headers, "text/turtle", b"\xff", encoded=False)
    assert json.loads(body)["subject"] == "caf%C3%A9"
    assert json.loads(body)["data_base64"] == "/w=="


LINK = '<http://c/x>; rel="http://www.w3.org/ns/json-ld#context"; type="application/ld+json"'


@pytest.mark.parametrize(
    ("media", "body", "wanted"),
    [
        ("application/json", b'{"a": 1}', b'{"@context": "http://c/x", "a": 1}'),
        ("application/json; charset=utf-8", b" {}", b'{"@context": "http://c/x"}'),
        ("application/json", b'{"@context": {}}', b'{"@context": {}}'),
        ("application/ld+json", b"{}", b"{}"),
        ("text/turtle", b"{}", b"{}"),
    ],
)
def test_the_context_of_a_link_header(media: str, body: bytes, wanted: bytes) -> None:
    other = '<http://c/y>; rel="next", '
    assert with_headers({"link": other + LINK}, media, body) == (media, wanted)
    assert with_headers({"link": other}, media, body) == (media, body)
