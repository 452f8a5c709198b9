"""What the feed says of the events behind an answer: words, from the logs of the streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.serve import said_events
from spaseq.serve.said_events import EventWords
from tests.serve.servers import Served, served, wait

XSD = "http://www.w3.org/2001/XMLSchema#"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
KB = f"""<http://e/speed> <{LABEL}> "Tempo"@de, "driven speed"@en .
<http://e/loop7> <http://www.w3.org/2004/02/skos/core#prefLabel> "Loop at the bridge" .
"""
CONTEXT = {
    "loop": {"@id": "http://e/loop", "@type": "@id"},
    "speed": "http://e/speed",
    "at": {"@id": TIME, "@type": f"{XSD}long"},
}


def told(server: Served, name: str = "*") -> list[list[Any]]:
    """What the events of each answer of a query said."""
    asked = {"said": "true", "query": name}
    lines = server.http.get("/answers", params=asked).text.splitlines()
    return [json.loads(line)["said"] for line in lines]


def test_what_named_events_said(tmp_path: Path) -> None:
    (tmp_path / "kb.ttl").write_text(KB)
    query = (
        "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A; B) "
        "DEFINE GPM A ON S { ?o <http://e/p> ?v } DEFINE GPM B ON S { ?q <http://e/speed> ?w } }"
    )

    def fast(number: int) -> str:
        name = f"<http://e/fast{number}>"
        return (
            f'<http://e/loop7> <http://e/speed> "23" {name} .\n'
            f"<http://e/loop7> <http://e/roadType> <http://e/onRamp> {name} .\n"
            f'{name} <{TIME}> "2026-01-01T00:00:{number:02}Z"^^<{XSD}dateTime> {name} .\n'
        )

    with served(tmp_path, stream='[kb]\n"http://e/kb" = "kb.ttl"\n') as server:
        server.http.put("/queries/jam", content=query)
        server.feed(1, 2)
        server.post(fast(5) + fast(59))
        wait(lambda: len(told(server)) == 1)
        (first, second) = told(server)[0]
        assert first == {
            "gpm": "A", "stream": "S", "time": "2026-01-01T00:00:01Z",
            "said": [["x", "p", "1"]], "more": 0,
        }  # fmt: skip
        assert (second["gpm"], second["time"]) == ("B", "2026-01-01T00:00:05Z")
        assert second["said"] == [
            ["Loop at the bridge", "driven speed", "23"],
            ["Loop at the bridge", "road type", "onRamp"],
        ]
        plain = server.http.get("/answers").text
        assert "said" not in json.loads(plain)


@pytest.mark.parametrize("watermark", [0, 5])
def test_events_without_names_are_found_by_their_instants(tmp_path: Path, watermark: int) -> None:
    (tmp_path / "context.jsonld").write_text(json.dumps({"@context": CONTEXT}))
    stream = (
        'dedup = "1 HOURS"\n[streams.J]\niri = "http://e/j"\ncontext = "context.jsonld"\n'
        f'watermark = "{watermark} SECONDS"\n'
    )
    query = (
        "SELECT ?v WITHIN 1 HOURS FROM STREAM J <http://e/j> WHERE { SEQ(A) "
        "DEFINE GPM A ON J { ?o <http://e/speed> ?v FILTER(?v > 50) } }"
    )
    times = [1, 3, 3, 2, 3, 3, 9, 8, 20]
    with served(tmp_path, stream=stream) as server:
        server.http.put("/queries/fast", content=query)
        for number, time in enumerate(times):
            row = {"loop": f"http://e/loop{number}", "speed": 50 + number % 4, "at": time * 1000}
            kind = {"Content-Type": "application/json"}
            assert server.http.post("/streams/J", json=row, headers=kind).json()["accepted"] == 1
        late = {3, 7} if watermark == 0 else set[int]()
        expected = [n for n, t in enumerate(times) if n % 4 and n not in late and t < 20]
        wait(lambda: len(told(server)) == len(expected))
        found = [said for (said,) in told(server)]
        loops = [s["said"][0] for s in found]
        ordered = sorted(expected, key=lambda n: (times[n], n))
        assert loops == [["", "loop", f"loop{n}"] for n in ordered]


def test_events_that_queries_made(tmp_path: Path) -> None:
    make = (
        "REGISTER STREAM <http://e/jams> AS CONSTRUCT { ?x <http://e/slowBy> ?v } "
        "WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A) "
        "DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
    )
    read = (
        "SELECT ?v WITHIN 1 HOURS FROM STREAM J <http://e/jams> WHERE { SEQ(A) "
        "DEFINE GPM A ON J { ?x <http://e/slowBy> ?v } }"
    )
    with served(tmp_path) as server:
        put = server.http.put("/queries/make", content=make)
        assert put.status_code == 201, put.text
        assert server.http.put("/queries/read", content=read).status_code == 201
        server.feed(1, 5)
        wait(lambda: len(told(server, "read")) >= 2)
        (said,) = told(server, "read")[0]
        assert said["stream"] == "http://e/jams" and said["said"] == [["x", "slow by", "1"]]


def test_what_has_left_the_logs_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = (
        "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A) "
        "DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
    )
    monkeypatch.setattr(said_events, "_READ_BYTES", 0)
    with served(tmp_path) as server:
        server.http.put("/queries/jam", content=query)
        server.feed(1, 3)
        wait(lambda: told(server) == [[]])


# --- words ----------------------------------------------------------------------------------------

NAMED = {
    "s": "<http://e/loop7>",
    "b": "_:b",
    "c": "_:c",
    "a": "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>",
}


def words(*triples: str) -> list[tuple[str, str, str]]:
    """What an event with some triples says; words that are not named are IRIs."""

    def term(text: str) -> str:
        return NAMED.get(text, text if text[0] in '"<' else f"<http://e/{text}>")

    given = [(term(s), term(p), term(o)) for s, p, o in (t.split(" ", 2) for t in triples)]
    return EventWords(KnowledgeBase.empty()).statements(given, "http://e/g1", "http://e/at", 100)[0]


def test_words_of_an_event() -> None:
    assert words("s hasRoadType urbanRoad") == [("loop7", "has road type", "urbanRoad")]
    assert words('s at "1"', f's <{LABEL}> "Loop 7"', "s next s") == [("Loop 7", "next", "Loop 7")]
    # a blank node is told where it is the object of a statement, and is called by its type
    observed = words("b a TrafficObservation", "b madeBy s", "b hasResult c", 'c value "23"')
    assert observed == [
        ("traffic observation", "made by", "loop7"),
        ("traffic observation", "has result value", "23"),
    ]
    assert words("g1 a Report", "g1 about s") == [("report", "about", "loop7")]
    assert words("s a RoadLoop") == [("loop7", "is a", "road loop")]
    assert words("b next c", "c next b") == [("", "next next", "something")]  # a circle ends
    point = '"POINT(4.9 52.4)"^^<http://www.opengis.net/ont/geosparql#wktLiteral>'
    assert words(f"s at2 {point}") == [("loop7", "at2", "52.4, 4.9")]
    triple = "<<( <http://e/loop7> <http://e/isSlow> <http://e/today> )>>"
    assert words(f"s says {triple}") == [("loop7", "says", "\u201cloop7 is slow today\u201d")]


def test_labels_in_english_or_the_first_one(tmp_path: Path) -> None:
    (tmp_path / "kb.ttl").write_text(KB + f'<http://e/road> <{LABEL}> "route"@fr .')
    known = EventWords(load_kb([("http://e/kb", tmp_path / "kb.ttl")]))
    things = ("speed", "loop7", "road", "other")
    assert [known.label(f"<http://e/{thing}>") for thing in things] == [
        "driven speed", "Loop at the bridge", "route", None
    ]  # fmt: skip


def test_no_more_statements_than_are_asked_for() -> None:
    given = [("<http://e/x>", f"<http://e/p{n}>", '"1"') for n in range(5)]
    found, more = EventWords(KnowledgeBase.empty()).statements(given, None, "", 3)
    assert (len(found), more) == (3, 2)
