"""The requests, one by one, over HTTP."""

from __future__ import annotations

import gzip
import json
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from spaseq.errors import InputError
from spaseq.logs.segment_log import LogNotWritten
from spaseq.serve import http_server, requests
from spaseq.serve.assembly import parts_of
from spaseq.serve.configuration import read_configuration
from tests.kb.sparql_server import serving, status
from tests.serve.servers import NQUADS, Served, event, served, subscribed, wait

XSD_LONG = "http://www.w3.org/2001/XMLSchema#long"

QUERY = (
    "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A) "
    "DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as found:
        yield found


# --- queries --------------------------------------------------------------------------------------


def test_a_stream_that_nobody_gives_is_a_warning(server: Served) -> None:
    """It may be a mistake; a later query may register it, too."""
    http, reader = server.http, QUERY.replace("http://e/s>", "http://e/sums>")

    def warnings(answer: httpx.Response) -> list[tuple[str, str | None]]:
        return [(each["code"], each["suggestion"]) for each in answer.json()["diagnostics"]]

    told = [("no-stream", "http://e/s")]
    assert warnings(http.put("/queries/reader", content=reader)) == told
    assert warnings(http.get("/queries/reader")) == told
    maker = QUERY.replace(
        "SELECT ?v", "REGISTER STREAM <http://e/sums> AS CONSTRUCT { ?x <p:> ?v }"
    )
    assert warnings(http.put("/queries/maker", content=maker)) == []
    assert warnings(http.get("/queries/reader")) == []


def test_a_query_comes_changes_and_goes(server: Served) -> None:
    http = server.http
    assert http.get("/queries").json() == []
    added = http.put("/queries/jam", content=QUERY)
    assert (added.status_code, added.json()["changed"]) == (201, True)
    same = http.put("/queries/jam", content=QUERY.replace(" ", "  "))
    assert (same.status_code, same.json()["changed"]) == (200, False)
    other = http.put("/queries/jam", content=QUERY.replace("1 HOURS", "2 HOURS"))
    assert (other.status_code, other.json()["changed"]) == (200, True)
    (listed,) = http.get("/queries").json()
    assert listed.keys() == {
        "name", "state", "since", "streams", "answers", "live", "reason"
    }  # fmt: skip
    assert (server.queries / "jam.rq").read_text() == QUERY.replace("1 HOURS", "2 HOURS")
    gone = http.delete("/queries/jam")
    assert (gone.status_code, gone.content) == (204, b"")
    assert http.get("/queries").json() == []
    assert not (server.queries / "jam.rq").exists()
    assert http.delete("/queries/jam").status_code == 404


def test_a_query_with_mistakes_is_refused_with_all_of_them(server: Served) -> None:
    found = server.http.put("/queries/jam", content="SELECT ?v WITHIN 1 HUORS")
    assert found.status_code == 400
    body = found.json()
    assert body["error"]
    assert {"severity", "code", "message", "line", "column", "suggestion"} <= {
        *body["diagnostics"][0]
    }
    assert server.http.get("/queries/jam").status_code == 404
    assert not list(server.queries.iterdir())


@pytest.mark.parametrize("name", [".jam", "-jam", "a b", "ä", "a" * 101, "..%2fjam"])
def test_a_name_that_is_none(server: Served, name: str) -> None:
    found = server.http.put(f"/queries/{name}", content=QUERY)
    assert found.status_code in (400, 404)
    assert {"error", "hint"} <= found.json().keys()
    assert not list(server.queries.iterdir())


def test_from_is_a_date_time_or_milliseconds(server: Served) -> None:
    for text in ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00%2B01:00", "1767225600000"):
        assert server.http.put(f"/queries/q?from={text}", content=QUERY).status_code == 201
        assert server.http.get("/queries").json()[0]["since"] == "2026-01-01T00:00:00Z"
        server.http.delete("/queries/q")
    assert server.http.put("/queries/q?from=soon", content=QUERY).status_code == 400


def test_a_query_may_begin_in_the_past(server: Served) -> None:
    server.feed(0, 10)
    server.http.put("/queries/late", content=QUERY)
    assert (
        server.http.put("/queries/jam?from=2026-01-01T00:00:04Z", content=QUERY).status_code == 201
    )
    server.feed(10, 12)
    wait(lambda: values(server) == [str(n) for n in range(4, 11)])
    wait(lambda: values(server, "late") == ["10"])
    assert [each["state"] for each in server.http.get("/queries").json()] == ["running"] * 2


def test_a_query_has_its_text_plan_automaton_and_drawing(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    found = server.http.get("/queries/jam").json()
    assert found["text"] == QUERY
    assert found["plan"]["window"]["ms"] == 3_600_000
    assert [state["label"] for state in found["automaton"]["states"]] == ["", "A"]
    assert found["automaton"]["edges"][0].keys() >= {"from", "to", "count"}
    svg = server.http.get("/queries/jam/automaton.svg")
    assert svg.headers["content-type"].startswith("image/svg+xml")
    assert svg.text.startswith("<svg")
    assert server.http.get("/queries/other/automaton.svg").status_code == 404


def test_restart_is_for_queries_that_failed(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    assert server.http.post("/queries/jam/restart").status_code == 409
    assert server.http.post("/queries/other/restart").status_code == 404


MAKER = (
    "REGISTER STREAM <http://e/{made}> AS CONSTRUCT {{ ?x <http://e/q> ?v }} WITHIN 1 HOURS "
    "FROM STREAM S <http://e/{read}> WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?x ?p ?v }} }}"
)


def test_of_two_makers_of_a_stream_and_of_a_circle_one_is_refused(server: Served) -> None:
    http = server.http
    reader = QUERY.replace("http://e/s", "http://e/m").replace("http://e/p", "http://e/q")
    assert http.put("/queries/reader", content=reader).status_code == 201  # before its maker
    maker = MAKER.format(made="m", read="s")
    assert http.put("/queries/maker", content=maker).status_code == 201
    second = http.put("/queries/second", content=maker)
    assert second.status_code == 409
    assert second.json().keys() == {"error", "hint"}
    assert not (server.queries / "second.rq").exists()
    circle = MAKER.format(made="n", read="m")
    assert http.put("/queries/one", content=circle).status_code == 201
    circle = MAKER.format(made="m", read="n")
    assert http.put("/queries/maker", content=circle).status_code == 409
    assert http.get("/queries/maker").json()["text"] == maker  # it goes on
    server.feed(0, 4)
    wait(lambda: values(server, "reader") == ["0", "1", "2"])
    http.delete("/queries/maker")
    assert http.get("/queries/reader").json()["state"] == "running"


def test_why_says_where_the_way_to_answers_ends(server: Served) -> None:
    text = QUERY.replace("?x <http://e/p> ?v", '?x <http://e/p> ?v FILTER(?v = "none")')
    server.http.put("/queries/jam", content=text)
    server.feed(0, 3)
    found = server.http.get("/queries/jam/why").json()
    assert found["answers"] == 0
    assert found["streams"][0]["events"] == 3
    assert [cause["kind"] for cause in found["causes"]] == ["filter-false"]
    shown = server.http.get("/queries/jam/why", headers={"Accept": "text/plain"})
    assert shown.headers["content-type"].startswith("text/plain")
    assert "3 events" in shown.text
    found = server.http.get("/queries/jam/why", params={"event": "http://e/g1"}).json()
    assert found["answers"] == 0
    assert server.http.get("/queries/other/why").status_code == 404


@pytest.mark.parametrize("since", ["", "?from=2026-01-01T00:00:02Z"])
def test_why_counts_what_the_query_has_answered(server: Served, since: str) -> None:
    """Events of before the query, and windows that are still open, do not count."""
    silent = (
        "SELECT ?v WITHIN 3 SECONDS FROM STREAM S <http://e/s> WHERE { SEQ(A; B!) "
        "DEFINE GPM A ON S { ?x <http://e/p> ?v } DEFINE GPM B ON S { ?x <http://e/q> ?v } }"
    )
    server.feed(0, 4)
    server.http.put(f"/queries/silent{since}", content=silent)
    server.feed(4, 9)
    expected = ["2", "3", "4"] if since else ["4"]
    wait(lambda: values(server, "silent") == expected)
    found = server.http.get("/queries/silent/why").json()
    assert found["answers"] == len(expected) == server.http.get("/queries/silent").json()["answers"]
    assert found["streams"][0]["events"] == (7 if since else 5)
    server.http.put("/queries/new", content=silent.replace("3 SECONDS", "1 MINUTES"))
    server.feed(9, 10)
    found = server.http.get("/queries/new/why").json()
    causes = [(cause["kind"], cause["count"]) for cause in found["causes"]]
    assert (found["answers"], causes) == (0, [("not-final-yet", 1)])


def test_a_text_is_checked_without_running(server: Served) -> None:
    assert server.http.post("/check", content=QUERY).json() == {"diagnostics": []}
    found = server.http.post("/check", content=QUERY.replace("ON S {", "ON T {")).json()
    assert any(each["severity"] == "error" for each in found["diagnostics"])
    assert server.http.get("/queries").json() == []


def test_files_that_come_change_and_go(server: Served) -> None:
    path = server.queries / "jam.rq"
    path.write_text(QUERY)
    wait(lambda: [q["name"] for q in server.http.get("/queries").json()] == ["jam"])
    path.write_text("no query")
    (server.queries / "other.rq").write_text(QUERY)
    wait(lambda: len(server.http.get("/queries").json()) == 2)
    assert server.http.get("/queries/jam").json()["text"] == QUERY  # the one that runs goes on
    path.unlink()
    wait(lambda: [q["name"] for q in server.http.get("/queries").json()] == ["other"])


# --- answers --------------------------------------------------------------------------------------


def values(server: Served, query: str = "jam", **given: Any) -> list[str]:
    """The values of the answers that a request gets."""
    found = server.http.get(f"/queries/{query}/answers", params=given)
    assert found.status_code == 200
    return [value_of(line) for line in found.text.splitlines()]


def value_of(line: str) -> str:
    return str(json.loads(line)["bindings"]["v"]["value"])


def ids(server: Served) -> list[str]:
    found = server.http.get("/queries/jam/answers?limit=100000").text.splitlines()
    return [json.loads(line)["id"] for line in found]


def test_answers_are_lines_oldest_first(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    server.feed(0, 2501)
    wait(lambda: len(ids(server)) == 2500)
    found = ids(server)
    assert len(set(found)) == 2500
    assert values(server) == [str(n) for n in range(1000)]
    assert values(server, after=found[2497]) == ["2498", "2499"]
    assert values(server, after=found[-1]) == []
    assert values(server, limit=2400) == [str(n) for n in range(2400)]
    assert values(server, after=found[5], limit=2) == ["6", "7"]
    assert server.http.get("/queries/jam/answers?after=x").status_code == 410
    assert server.http.get(f"/queries/jam/answers?after={'0' * 32}").status_code == 410
    assert server.http.get("/queries/jam/answers?limit=0").status_code == 400
    assert server.http.get("/queries/other/answers").status_code == 404
    assert server.http.get("/queries").json()[0]["answers"] == 2500


def test_a_subscriber_gets_answers_from_now_on_until_the_query_goes(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    server.feed(0, 2)
    wait(lambda: values(server) == ["0"])
    with subscribed(server.url, "jam") as events:
        server.feed(2, 4)
        found = [next(events) for _ in range(2)]
        assert [value_of(each["data"]) for each in found] == ["1", "2"]
        assert [json.loads(each["data"])["id"] for each in found] == [e["id"] for e in found]
        server.http.delete("/queries/jam")
        assert next(events)["event"] == "end"
        assert next(events, None) is None
    assert values(server) == ["0", "1", "2"]  # they stay readable
    with subscribed(server.url, "jam", Last_Event_ID=ids(server)[0]) as events:
        assert [value_of(next(events)["data"]) for _ in range(2)] == ["1", "2"]
        assert next(events)["event"] == "end"


def test_a_subscriber_goes_on_after_the_last_event(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    server.feed(0, 5001)
    wait(lambda: len(ids(server)) == 5000)
    with subscribed(server.url, "jam", Last_Event_ID=ids(server)[9]) as events:
        found = [value_of(next(events)["data"]) for _ in range(4990)]
        assert found == [str(n) for n in range(10, 5000)]
        server.feed(5001, 5002)
        assert value_of(next(events)["data"]) == "5000"
    gone = {"Accept": "text/event-stream", "Last-Event-ID": "x"}
    assert server.http.get("/queries/jam/answers", headers=gone).status_code == 410


def test_a_slow_subscriber_loses_nothing_and_holds_up_nobody(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    with subscribed(server.url, "jam") as slow, subscribed(server.url, "jam") as fast:
        for first in range(0, 10_000, 500):
            server.feed(first, first + 500)
            for n in range(max(first, 1), first + 500):
                assert value_of(next(fast)["data"]) == str(n - 1)
        found = [value_of(next(slow)["data"]) for _ in range(9_999)]
    assert found == [str(n) for n in range(9_999)]


@pytest.mark.thorough
def test_a_thousand_idle_subscribers(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    http_server.more_connections()
    request = (
        "GET /queries/jam/answers HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
    )
    idle = []
    try:
        for _ in range(1000):
            one = server.connect()
            one.sendall(request.encode())
            idle.append(one)
        for one in idle:
            assert b"200 OK" in one.recv(4096)
        start = time.monotonic()
        assert server.http.get("/live").status_code == 200
        server.feed(0, 2)
        for one in idle:
            text = b""
            while b"\ndata: " not in text:
                text += one.recv(4096)
        assert time.monotonic() - start < 20
    finally:
        for one in idle:
            one.close()


@pytest.mark.thorough
def test_endpoints_that_are_allowed_are_asked(tmp_path: Path) -> None:
    with serving('<http://e/x> <http://e/v> "7" .') as endpoint:
        asking = f"SERVICE <{endpoint.url}> {{ ?x <http://e/v> ?v }} ?x <http://e/p> ?p }} }}"
        query = QUERY.replace("?x <http://e/p> ?v } }", asking)
        host = httpx.URL(endpoint.url).netloc.decode()
        with served(tmp_path) as server:
            refused = server.http.put("/queries/q", content=query)
            assert refused.status_code == 409
            assert f'service_allow = ["{host}"]' in refused.json()["error"]
        allowed = f'service_allow = ["{host}"]\nkb_required = true\nservice_timeout = "5 SECONDS"'
        with served(tmp_path, allowed) as server:
            assert server.http.put("/queries/q", content=query).status_code == 201
            server.feed(0, 3)
            wait(lambda: values(server, "q") == ["7", "7"])
            endpoint.always = status(410)
            server.post(event(9, "other").replace("http://e/x", "http://e/y"))
            wait(lambda: server.http.get("/queries").json()[0]["state"] == "failed")
            assert "410" in server.http.get("/queries").json()[0]["reason"]


def test_what_an_answer_used_of_the_knowledge_base(tmp_path: Path) -> None:
    kb, table = tmp_path / "kb.nt", '\n[kb]\n"http://e/kb" = "kb.nt"\n'
    kb.write_text('<http://e/x> <http://e/is> "wet" .\n<http://e/y> <http://e/is> "dry" .\n')
    graph = "GRAPH <http://e/kb> { ?x <http://e/is> ?how } ?x <http://e/p> ?v } }"
    query = QUERY.replace("WHERE", "FROM NAMED <http://e/kb> WHERE")
    query = query.replace("?x <http://e/p> ?v } }", graph)
    with served(tmp_path, stream=table) as server:
        assert server.http.put("/queries/q", content=query).status_code == 201
        server.feed(1, 3)
        wait(lambda: values(server, "q") == ["1"])
        (name,) = (json.loads(line)["id"] for line in _lines(server, "q"))
        reply = server.http.get(f"/queries/q/answers/{name}/knowledge").json()
        assert (reply["id"], reply["changed"]) == (name, False)
        (event_,) = reply["events"]
        assert (event_["gpm"], event_["event"], event_["exact"]) == ("A", "http://e/g1", True)
        (found,) = event_["graphs"]
        (triple,) = found["triples"]
        assert found["graph"] == "http://e/kb"
        assert triple == {
            "subject": {"type": "uri", "value": "http://e/x"},
            "predicate": {"type": "uri", "value": "http://e/is"},
            "object": {"type": "literal", "value": "wet"},
        }
        gone = server.http.get(f"/queries/q/answers/{'0' * 32}/knowledge")
        assert gone.status_code == 410
        assert server.http.get(f"/queries/r/answers/{name}/knowledge").status_code == 404
    kb.write_text('<http://e/x> <http://e/is> "warm" .\n')
    with served(tmp_path, stream=table) as server:
        # Each event used what was there at its own time, which is before the edit.
        server.feed(4, 6)
        wait(lambda: len(_lines(server, "q")) == 3)
        for name in (json.loads(line)["id"] for line in _lines(server, "q")):
            reply = server.http.get(f"/queries/q/answers/{name}/knowledge").json()
            (triple,) = reply["events"][0]["graphs"][0]["triples"]
            assert (reply["changed"], triple["object"]["value"]) == (False, "wet")
            assert triple["until"] > "2026-01-01T00:00:06Z"
        server.http.put("/queries/q", content=query.replace("1 HOURS", "2 HOURS"))
        refused = server.http.get(f"/queries/q/answers/{name}/knowledge")
        assert refused.status_code == 409
        assert "has changed since" in refused.json()["error"]


def _lines(server: Served, query: str) -> list[str]:
    return server.http.get(f"/queries/{query}/answers").text.splitlines()


# --- streams --------------------------------------------------------------------------------------


def test_events_are_accepted_as_a_whole(server: Served) -> None:
    text = event(1) + event(2)
    found = server.post(text)
    assert (found.status_code, found.json()) == (200, {"accepted": 2, "bad": [], "late": 0})
    assert [m.payload for m in server.run.records("S")] == [text.encode()]
    wait(lambda: server.http.get("/streams").json()[0]["accepted"] == 2)
    (stream,) = server.http.get("/streams").json()
    assert stream.keys() == {
        "name", "iri", "accepted", "bad", "late", "duplicates", "watermark", "source", "lag"
    }  # fmt: skip
    assert stream["watermark"] == "2026-01-01T00:00:02Z"
    assert server.http.post("/streams/T", content=text, headers=NQUADS).status_code == 404


def test_times_of_another_predicate(tmp_path: Path) -> None:
    own, usual = "http://purl.org/dc/terms/created", "http://www.w3.org/ns/prov#generatedAtTime"
    with served(tmp_path, stream=f'time_predicate = "{own}"\n') as server:
        text = event(1) + event(2).replace(usual, own)
        assert server.post(text).json()["accepted"] == 1


def test_duplicates_are_counted_over_restarts(tmp_path: Path) -> None:
    for restarted in range(2):
        with served(tmp_path, stream='dedup = "1 HOURS"') as server:
            server.post(event(1) + event(2 + restarted))
            server.post(event(2 + restarted))
            counts = {"accepted": 2 + restarted, "duplicates": 1 + 2 * restarted}
            wait(lambda: server.http.get("/streams").json()[0].items() >= counts.items())  # noqa: B023
            dropped = f'spaseq_stream_duplicates_total{{stream="S"}} {counts["duplicates"]}'
            assert dropped in server.http.get("/metrics").text


def test_an_event_that_lost_a_quad_is_bad_and_the_others_count(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    named = '<http://e/x> <http://e/p> "\\q" <http://e/g1> .\n'
    nameless = '<http://e/x> <http://e/p> "oops .\n'
    text = named + event(1) + event(2) + event(3) + nameless + event(4)
    reply = server.post(text).json()
    assert reply["accepted"] == 1
    lines = {bad["line"]: bad["reason"] for bad in reply["bad"]}
    lost = {n: re.findall("http://e/g.", reason) for n, reason in lines.items() if "lost" in reason}
    assert lines.keys() - lost.keys() == {1, 8}
    assert [*lost.values()] == [["http://e/g1"], ["http://e/g3"], ["http://e/g4"]]
    alone = server.post(nameless).json()
    assert (alone["accepted"], [bad["line"] for bad in alone["bad"]]) == (0, [1])
    wait(lambda: server.http.get("/streams").json()[0]["bad"] == 6)
    assert server.http.get("/streams").json()[0]["accepted"] == 1


def test_a_body_of_nothing_but_mistakes_is_reported_in_part(server: Served) -> None:
    reply = server.post("nothing\n" * 5000 + event(1) + event(2)).json()
    assert reply["accepted"] == 1
    assert [bad["line"] for bad in reply["bad"]] == [*range(1, 1001), None]
    assert "4,001 more" in reply["bad"][-1]["reason"]
    (message,) = server.run.records("S")
    assert message.payload.count(b"nothing") == 1000  # they do not keep the run busy


def test_formats_by_their_content_type(server: Served) -> None:
    prov = "http://www.w3.org/ns/prov#generatedAtTime"
    trig = (
        "<http://e/g> { <http://e/x> <http://e/p> 1 } <http://e/g> <"
        + prov
        + '> "2026-01-01T00:00:00Z"'
        "^^<http://www.w3.org/2001/XMLSchema#dateTime> ."
    )
    jsonld = {
        "@id": "http://e/g",
        prov: {"@value": 5, "@type": "http://www.w3.org/2001/XMLSchema#long"},
        "@graph": [{"@id": "http://e/x", "http://e/p": 1}],
    }
    for media, text in (
        ("application/trig", trig),
        ("application/trig", "\ufeff" + trig),
        ("application/ld+json", json.dumps(jsonld)),
        ("application/x-ld+ndjson", json.dumps(jsonld) + "\n" + json.dumps(jsonld) + "\n"),
        ("text/plain; charset=utf-8", event(1)),
    ):
        found = server.http.post("/streams/S", content=text, headers={"Content-Type": media})
        assert found.json()["accepted"] == 1 + (media == "application/x-ld+ndjson"), media
        assert found.json()["bad"] == [], media
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    found = server.http.post("/streams/S", content=event(1), headers=form)
    assert found.status_code == 415
    assert "n-quads" in found.json()["hint"]


def test_rows_are_posted_to_streams_with_a_lift_or_a_context(tmp_path: Path) -> None:
    (tmp_path / "lift.rq").write_text(
        "PREFIX prov: <http://www.w3.org/ns/prov#> CONSTRUCT { GRAPH ?g { ?g <http://e/p> ?v ; "
        "prov:generatedAtTime ?at } } WHERE { BIND(IRI(CONCAT('http://e/', STR(?id))) AS ?g) }"
    )
    terms = {
        "id": "@id",
        "v": "http://e/p",
        "at": {"@id": "http://www.w3.org/ns/prov#generatedAtTime", "@type": XSD_LONG},
    }
    (tmp_path / "context.jsonld").write_text(json.dumps({"@context": terms}))
    more = '[streams.L]\niri = "http://e/l"\nlift = "lift.rq"\n'
    more += '[streams.J]\niri = "http://e/j"\ncontext = "context.jsonld"\n'
    rows = [json.dumps({"id": f"http://e/{n}", "v": str(n), "at": n}) for n in range(3)]
    lines = "\n".join([rows[0], "oops", rows[1], "", rows[2]])
    with served(tmp_path, more) as server:
        for name in ("L", "J"):
            server.http.put(f"/queries/{name}", content=QUERY.replace("/s>", f"/{name.lower()}>"))
            one = {"Content-Type": "application/json"}
            many = {"Content-Type": "application/x-ndjson"}
            reply = server.http.post(f"/streams/{name}", content=rows[0], headers=one).json()
            assert reply == {"accepted": 1, "bad": [], "late": 0}, name
            reply = server.http.post(f"/streams/{name}", content=lines, headers=many).json()
            assert (reply["accepted"], [bad["line"] for bad in reply["bad"]]) == (3, [2]), name
            wait(lambda name=name: values(server, name)[-1:] == ["1"])
            array = f"[{rows[0]},\n {rows[1]},\n{rows[2]}]"
            for text, media, good, bad in (
                (array, one, 3, []),
                (array, many, 3, []),
                (array[:-1], one, 3, [3]),
                ("[]", one, 0, [None]),
                (lines, one, 3, [2]),
                (lines, {"Content-Type": "application/x-ndjson; charset=utf-8"}, 3, [2]),
            ):
                reply = server.http.post(f"/streams/{name}", content=text, headers=media).json()
                found = reply["accepted"], [one["line"] for one in reply["bad"]]
                assert found == (good, bad), (name, text)


def test_a_row_that_is_posted_may_be_several_events(tmp_path: Path) -> None:
    """Those of one row come by time, so the second GRAPH, which is earlier, is not late."""
    (tmp_path / "lift.rq").write_text(
        "PREFIX prov: <http://www.w3.org/ns/prov#> CONSTRUCT { "
        "GRAPH ?g { ?g <http://e/p> ?v ; prov:generatedAtTime ?at } "
        "GRAPH ?h { ?h <http://e/p> ?w ; prov:generatedAtTime ?then } } WHERE { "
        "BIND(IRI(CONCAT('http://e/g', STR(?id))) AS ?g) "
        "BIND(IRI(CONCAT('http://e/h', STR(?id))) AS ?h) }"
    )
    rows = [
        {"id": n, "v": f"{n}v", "at": 10 * n + 5, "w": f"{n}w", "then": 10 * n} for n in range(3)
    ]
    rows.append({"id": 3, "v": "3v", "at": 35, "w": "3w"})  # without a time: the row is bad
    with served(tmp_path, '[streams.L]\niri = "http://e/l"\nlift = "lift.rq"\n') as server:
        server.http.put("/queries/L", content=QUERY.replace("/s>", "/l>"))
        lines = "\n".join(map(json.dumps, rows))
        media = {"Content-Type": "application/x-ndjson"}
        reply = server.http.post("/streams/L", content=lines, headers=media).json()
        assert ([bad["line"] for bad in reply["bad"]], reply["late"]) == ([4], 0)
        wait(lambda: values(server, "L")[-1:] == ["2w"])
        assert values(server, "L") == ["0w", "0v", "1w", "1v", "2w"]


def test_bad_rows_are_listed_by_line(tmp_path: Path) -> None:
    """Rows that are no JSON are found before those that the lift refuses."""
    (tmp_path / "lift.rq").write_text(
        "PREFIX prov: <http://www.w3.org/ns/prov#> CONSTRUCT { GRAPH ?g { ?g <http://e/p> ?v ; "
        "prov:generatedAtTime ?at } } WHERE { BIND(IRI(CONCAT('http://e/', STR(?id))) AS ?g) }"
    )
    lines = ['{"id": 1, "v": 1}', "oops", '{"id": 2, "v": 2}', '{"id": 3, "v": 3, "at": 3}', "no"]
    with served(tmp_path, '[streams.L]\niri = "http://e/l"\nlift = "lift.rq"\n') as server:
        media = {"Content-Type": "application/x-ndjson"}
        reply = server.http.post("/streams/L", content="\n".join(lines), headers=media).json()
        assert (reply["accepted"], [bad["line"] for bad in reply["bad"]]) == (1, [1, 2, 3, 5])


def test_json_may_name_the_contexts_of_the_configuration(tmp_path: Path) -> None:
    moment = {"@id": "http://www.w3.org/ns/prov#generatedAtTime", "@type": XSD_LONG}
    shared = {"id": "@id", "v": "http://e/p", "at": moment}
    (tmp_path / "shared.jsonld").write_text(json.dumps({"@context": shared}))
    (tmp_path / "own.jsonld").write_text(json.dumps({"@context": "http://e/shared"}))
    named = 'context_map = { "http://e/shared" = "shared.jsonld" }\n'
    more = f'[streams.J]\niri = "http://e/j"\ncontext = "own.jsonld"\n{named}'
    rows = [json.dumps({"id": f"http://e/{n}", "v": str(n), "at": n}) for n in (1, 2)]
    with served(tmp_path, more) as server:
        server.http.put("/queries/J", content=QUERY.replace("/s>", "/j>"))
        many = {"Content-Type": "application/x-ndjson"}
        reply = server.http.post("/streams/J", content="\n".join(rows), headers=many).json()
        assert reply == {"accepted": 2, "bad": [], "late": 0}
        wait(lambda: values(server, "J")[-1:] == ["1"])
    (tmp_path / "shared.jsonld").unlink()
    lost = r"\[streams\.J\] cannot read the context .*shared\.jsonld: No such file"
    with pytest.raises(InputError, match=lost), served(tmp_path, more):
        pass


def test_a_key_makes_a_request_safe_to_repeat(server: Served) -> None:
    text = event(0) + event(1) + "<oops>\n" + event(2)  # 1 and 2 are bad
    first = server.post(text, Idempotency_Key="k1")
    assert first.json()["accepted"] == 1
    again = server.post(text, Idempotency_Key="k1")
    assert (again.status_code, again.json()) == (200, first.json())
    assert len(server.run.records("S")) == 1
    assert server.post(event(2), Idempotency_Key="k1").status_code == 422
    other = server.post(event(2), Idempotency_Key="k2")
    assert other.json() == {"accepted": 1, "bad": [], "late": 0}
    assert server.post(event(2), Idempotency_Key="").status_code == 400


def test_replies_outlive_a_restart_for_a_while(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        first = server.post(event(1), Idempotency_Key="k").json()
    with served(tmp_path) as server:
        assert server.post(event(1), Idempotency_Key="k").json() == first
        assert server.post(event(2), Idempotency_Key="k").status_code == 422
        assert len(server.run.records("S")) == 1
    time.sleep(1)
    with served(tmp_path, 'retain = "1 SECONDS"') as server:
        assert server.post(event(2), Idempotency_Key="k").json()["accepted"] == 1
        assert server.post(event(3), Idempotency_Key="l").json()["accepted"] == 1
        time.sleep(1.1)
        assert server.post(event(4), Idempotency_Key="m").json()["accepted"] == 1
        assert server.run.marks("S").keys() == {"reply:m"}


def test_requests_with_one_key_at_one_time_count_once(server: Served) -> None:
    replies = []

    def post() -> None:
        headers = {**NQUADS, "Idempotency-Key": "k"}
        found = httpx.post(f"{server.url}/streams/S", content=event(1), headers=headers)
        replies.append(found.json())

    threads = [threading.Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == [{"accepted": 1, "bad": [], "late": 0}] * 8
    assert len(server.run.records("S")) == 1


def test_a_full_disk_refuses_events(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise LogNotWritten("cannot write: No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(server.run, "accept", full)
        found = server.post(event(1), Idempotency_Key="k")
        assert found.status_code == 503
        assert {"error", "hint"} <= found.json().keys()
    assert server.post(event(1), Idempotency_Key="k").json()["accepted"] == 1


def test_a_data_directory_that_is_moved_away_refuses_everything(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data, elsewhere = tmp_path / "state", tmp_path / "elsewhere"
    with served(tmp_path) as server:
        assert server.post(event(0)).json()["accepted"] == 1
        data.rename(elsewhere)
        data.mkdir()
        wait(lambda: server.http.get("/health").status_code == 503)  # though nobody posts
        assert server.http.get("/health").json()["problems"] == [
            f"data directory: {data} was deleted or moved: put it back, or start again"
        ]
        assert f"{data} was deleted or moved" in caplog.text
        refused = [server.post(event(n), Idempotency_Key=f"{n}") for n in range(1, 4)]
        refused += [server.http.put("/queries/all", content=QUERY)]
        beat = {"time": "2026-01-01T01:00:00Z"}
        refused += [server.http.post("/streams/S/heartbeat", json=beat)]
        assert [reply.status_code for reply in refused] == [503] * 5
        assert all("No such file" in reply.json()["error"] for reply in refused)
        data.rmdir()
        elsewhere.rename(data)
        assert server.post(event(1), Idempotency_Key="1").json()["accepted"] == 1
        wait(lambda: server.http.get("/health").status_code == 200)
        assert len(server.run.records("S")) == 2


def test_a_body_that_is_too_large(server: Served) -> None:
    for content in (b"x" * 100_001, iter([b"x" * 50_000] * 3)):
        found = httpx.post(f"{server.url}/streams/S", content=content, headers=NQUADS)
        assert found.status_code == 413
    assert server.run.records("S") == []


def test_a_body_that_comes_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "BODY_S", 0.5)
    with served(tmp_path) as server, server.connect() as one:
        one.sendall(
            b"POST /streams/S HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
            b"Content-Type: application/n-quads\r\n\r\n<"
        )
        start = time.monotonic()
        assert one.recv(4096).startswith(b"HTTP/1.1 408")
        assert time.monotonic() - start < 10
        assert server.http.get("/live").status_code == 200


def test_a_head_that_comes_slowly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_S", 0.5)
    with served(tmp_path) as server, server.connect() as one:
        one.sendall(b"GET /live HTTP/1.1\r\nHo")
        assert one.recv(4096) == b""  # it is closed
        with server.connect() as other:
            for _ in range(2):
                other.sendall(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
                reply = b""
                while not reply.endswith(b'{"status":"live"}'):
                    reply += other.recv(4096)
                time.sleep(1)  # it may stay silent between two requests
            other.sendall(b"GET /live HTTP/1.1\r\nHo")
            assert other.recv(4096) == b""


# --- who may ask ----------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "a b", "10.0.0.1"])
def test_other_hosts_are_not_known(server: Served, host: str) -> None:
    assert server.http.get("/queries", headers={"Host": host}).status_code in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8787", "LOCALHOST:80"])
def test_names_of_this_machine_are_known(server: Served, host: str) -> None:
    assert server.http.get("/queries", headers={"Host": host}).status_code == 200


def test_pages_of_others_are_refused(server: Served) -> None:
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1", "file://"):
        found = server.http.post("/streams/S", content="", headers={"Origin": origin, **NQUADS})
        assert found.status_code == 403, origin
    assert server.http.get("/live", headers={"Origin": server.url}).status_code == 200


def test_without_a_token_nobody_is_served_from_afar(server: Served) -> None:
    for header in ({"X-Forwarded-For": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"}):
        assert server.http.get("/queries", headers=header).status_code == 403
    spoofed = {"X-Forwarded-For": "127.0.0.1, 192.0.2.1"}
    assert server.http.get("/queries", headers=spoofed).status_code == 403


def test_a_token_is_demanded(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    more = 'token_file = "token"\nhosts = ["alerts.example"]\nbehind_proxy = true'
    with served(tmp_path, more) as server:
        http = server.http
        for path in ("/queries", "/health", "/metrics", "/streams", "/nothing", "/page"):
            found = http.get(path)
            assert found.status_code == 401, path
            assert found.headers["WWW-Authenticate"] == "Bearer"
        assert http.get("/live").status_code == 200
        assert http.get("/").status_code != 401
        assert http.get("/page/page.js").status_code != 401
        assert http.put("/queries/q", content=QUERY).status_code == 401
        bearer = {"Authorization": "Bearer secret"}
        assert http.get("/queries", headers=bearer).status_code == 200
        wrong = {"Authorization": "Bearer secreT"}
        assert http.get("/queries", headers=wrong).status_code == 401
        named = {"Host": "alerts.example", "Origin": "https://alerts.example", **bearer}
        assert http.get("/queries", headers=named).status_code == 200
        assert http.post("/login", data={"token": "wrong"}).status_code == 401
        found = http.post("/login", data={"token": "secret"})
        assert found.status_code == 303
        cookie = found.headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Secure"} <= set(cookie.split("; "))
        assert "secret" not in cookie
        shown = {"Cookie": cookie.partition(";")[0]}
        assert httpx.get(f"{server.url}/queries", headers=shown).status_code == 200


# --- the rest -------------------------------------------------------------------------------------


def test_health_says_what_is_wrong(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert server.http.get("/health").status_code == 200
    monkeypatch.setattr(server.run, "problems", lambda: ["the disk is full"])
    found = server.http.get("/health")
    assert found.status_code == 503
    problems = ["the disk is full"]
    assert found.json() == {"status": "degraded", "problems": problems, "waiting": []}
    assert server.http.get("/live").status_code == 200


def test_metrics_are_prometheus_text(server: Served) -> None:
    server.http.put("/queries/jam", content=QUERY)
    found = server.http.get("/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'spaseq_query_answers_total{query="jam"} 0\n' in found.text
    names = [line.split()[2] for line in found.text.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("POST", "/queries", 405), ("GET", "/page/../app.py", 404)],
)
def test_other_requests_are_errors_in_json(
    server: Served, method: str, path: str, status: int
) -> None:
    found = server.http.request(method, path)
    assert found.status_code == status
    assert found.json().keys() == {"error", "hint"}


def test_the_end_closes_streams_at_once(tmp_path: Path) -> None:
    got: list[dict[str, str]] = []
    with served(tmp_path) as server:
        server.http.put("/queries/jam", content=QUERY)
        one = threading.Thread(target=_subscribe, args=(server.url, got))
        one.start()
        time.sleep(0.5)
        start = time.monotonic()
    one.join(20)
    assert time.monotonic() - start < 10
    assert got == []  # and no event: end


def _subscribe(url: str, got: list[dict[str, str]]) -> None:
    with subscribed(url, "jam") as events:
        got.extend(events)


def test_lines_of_a_file_have_the_ids_of_the_answers(tmp_path: Path) -> None:
    sink = '[sinks.file]\nto = "out.jsonl"\n'
    with served(tmp_path, stream=sink) as server:
        server.http.put("/queries/jam", content=QUERY)
        server.feed(0, 4)
        wait(lambda: len(values(server)) == 3)
        wait(lambda: (tmp_path / "out.jsonl").read_text().count("\n") == 3)
        assert (tmp_path / "out.jsonl").read_text() == server.http.get("/queries/jam/answers").text


def test_a_server_without_streams_starts_again(tmp_path: Path) -> None:
    (tmp_path / "spaseq.toml").write_text('[server]\ndata = "state"\n')
    for _ in range(2):
        parts = parts_of(read_configuration(tmp_path / "spaseq.toml", {}), tmp_path)
        parts.run.start()
        assert parts.run.streams() == []
        parts.run.stop()


# --- packed bodies and parameters -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("packing", "pack"),
    [("gzip", gzip.compress), ("X-GZIP", gzip.compress), ("deflate", zlib.compress)],
)
def test_a_packed_body_is_unpacked(
    server: Served, packing: str, pack: Callable[[bytes], bytes]
) -> None:
    answer = server.post(pack(event(0).encode()), Content_Encoding=packing)
    assert answer.json() == {"accepted": 1, "bad": [], "late": 0}
    headers = {"Content-Encoding": packing}
    put = server.http.put("/queries/q", content=pack(QUERY.encode()), headers=headers)
    assert put.status_code == 201


def test_a_gzip_may_have_several_members(server: Served) -> None:
    members = b"".join(gzip.compress(event(n).encode()) for n in range(3))
    assert server.post(members, Content_Encoding="gzip").json()["accepted"] == 3


@pytest.mark.parametrize(
    ("packing", "body", "status", "error"),
    [
        ("br", b"x", 415, "Content-Encoding br is not known"),
        ("gzip, gzip", b"x", 415, "Content-Encoding gzip, gzip is not known"),
        ("gzip", b"x", 400, "the body cannot be unpacked"),
        ("gzip", gzip.compress(event(0).encode())[:-9], 400, "it ends early"),
        ("gzip", gzip.compress(bytes(10**7)), 413, "more than 100,000 bytes"),
    ],
    ids=["other", "twice", "none", "torn", "bomb"],
)
def test_a_body_that_cannot_be_unpacked_is_refused(
    server: Served, packing: str, body: bytes, status: int, error: str
) -> None:
    answer = server.post(body, Content_Encoding=packing)
    assert answer.status_code == status
    assert error in answer.json()["error"]
    assert server.http.get("/streams").json()[0]["accepted"] == 0


@pytest.mark.parametrize("charset", ["utf-16", '"UTF-16LE"', "utf-8", "us-ascii", "iso-8859-1"])
def test_a_body_is_read_in_the_character_set_that_it_names(server: Served, charset: str) -> None:
    media = f"application/n-quads; charset={charset}"
    body = event(0).encode(charset.strip('"'))
    answer = server.post(body, Content_Type=media)
    assert answer.json() == {"accepted": 1, "bad": [], "late": 0}
    headers = {"Content-Type": f"text/plain;charset={charset}"}
    body = QUERY.encode(charset.strip('"'))
    assert server.http.put("/queries/q", content=body, headers=headers).status_code == 201


@pytest.mark.parametrize(
    ("charset", "body", "status", "error"),
    [
        ("klingon", b"x", 415, "charset klingon is not known"),
        ("base64", b"x", 415, "charset base64 is not known"),
        ("utf-16", b"x", 400, "the body is no utf-16"),
    ],
)
def test_a_body_in_another_character_set_is_refused(
    server: Served, charset: str, body: bytes, status: int, error: str
) -> None:
    answer = server.post(body, Content_Type=f"application/n-quads; charset={charset}")
    assert answer.status_code == status
    assert error in answer.json()["error"]


def test_an_unknown_parameter_is_refused(server: Served) -> None:
    """A trial whose parameter is misspelt must not put the query."""
    http = server.http
    answer = http.put("/queries/q?dry_run=true", content=QUERY)
    assert answer.status_code == 400
    assert answer.json() == {
        "error": "there is no parameter dry_run here", "hint": "did you mean dry-run?"
    }  # fmt: skip
    assert http.get("/queries").json() == []
    assert http.get("/answers?severty=high").json()["hint"] == "did you mean severity?"
    assert http.delete("/queries/q?now").json()["hint"] == "known: none"
    assert http.get("/live?t=1").status_code == 200


def test_a_sender_of_events_may_add_parameters(server: Served) -> None:
    answer = server.http.post("/streams/S?topic=order&id=7", content=event(0), headers=NQUADS)
    assert (answer.status_code, answer.json()["accepted"]) == (200, 1)


def test_a_misspelt_stream_is_suggested(server: Served) -> None:
    answer = server.http.post("/streams/s", content=event(0), headers=NQUADS)
    assert (answer.status_code, answer.json()["hint"]) == (404, "did you mean S?")


def test_a_byte_order_mark_before_a_query_is_left_out(server: Served) -> None:
    assert server.http.put("/queries/q", content="\ufeff" + QUERY).status_code == 201
    assert server.http.get("/queries/q").json()["text"] == QUERY


def test_the_restart_of_a_paused_query_is_refused_with_the_reason(server: Served) -> None:
    server.http.put("/queries/q", content=QUERY)
    server.http.patch("/queries/q", json={"enabled": False})
    answer = server.http.post("/queries/q/restart")
    assert (answer.status_code, answer.json()["error"]) == (409, "query q is paused")


def test_bad_events_of_a_format_without_lines_are_named(server: Served) -> None:
    trig = f"""@prefix e: <http://e/> . @prefix prov: <http://www.w3.org/ns/prov#> .
        e:g1 {{ e:x e:p 1 }} e:g2 {{ e:x e:p 2 }} e:g2 prov:generatedAtTime "soon" .
        e:g3 {{ e:x e:p 3 }} e:g3 prov:generatedAtTime "7"^^<{XSD_LONG}> ."""
    headers = {"Content-Type": "application/trig"}
    answer = server.http.post("/streams/S", content=trig, headers=headers).json()
    assert answer["accepted"] == 1
    assert [bad["reason"] for bad in answer["bad"]] == [
        "event without a timestamp: <http://e/g1>",
        'event without a readable timestamp: "soon": <http://e/g2>',
    ]
