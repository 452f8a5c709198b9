"""Observations of SOSA: one document, several, collections, times, formats, and what is bad."""

from __future__ import annotations

import json
from pathlib import Path

import pyoxigraph as ox
import pytest

from tests.rdf.streams import XSD, Event, read, write

MESSAGES = Path(__file__).parents[4] / "shared" / "messages" / "sosa"
SOSA = "http://www.w3.org/ns/sosa/"
PREFIXES = f"""PREFIX sosa: <{SOSA}> PREFIX time: <http://www.w3.org/2006/time#>
PREFIX xsd: <{XSD}> PREFIX : <http://e/>
"""


def at(second: int) -> str:
    return f'"1970-01-01T00:00:{second:02}Z"^^xsd:dateTime'


def events(tmp_path: Path, text: str, name: str = "o.sosa.ttl") -> tuple[list[Event], list[str]]:
    found, bad = read(write(tmp_path / name, PREFIXES + text if name.endswith("ttl") else text))
    return found, [each.reason for each in bad]


def objects(event: Event, predicate: str) -> set[str]:
    return {o for _, p, o in event.triples if p == f"<{SOSA}{predicate}>"}


def test_several_observations_of_a_document(tmp_path: Path) -> None:
    text = f""":b a sosa:Observation ; sosa:resultTime {at(2)} ; sosa:hasSimpleResult 7 ;
      sosa:hasResult [ :value [ :unit :c ] ] ; sosa:madeBySensor :s .
    :a a sosa:Observation ; sosa:resultTime {at(1)} ; sosa:hasResult :r ; sosa:madeBySensor :s .
    :r :value 5 . :s :label "S" ; sosa:madeObservation :a, :b . :other :p 1 ."""
    (a, b), bad = events(tmp_path, text)
    assert (bad, a.graph, a.time, b.graph, b.time) == ([], "http://e/a", 1000, "http://e/b", 2000)
    values = {o for _, p, o in a.triples if p == "<http://e/value>"}
    assert values == {f'"5"^^<{XSD}integer>'}
    assert len(b.triples) == 5 + 1 + 1 + 1  # its own, two blank nodes, and the sensor's label
    for event in (a, b):
        assert '"S"' in {o for _, _, o in event.triples}
        assert not objects(event, "madeObservation")


@pytest.mark.parametrize(
    ("said", "second"),
    [
        (f"sosa:resultTime {at(5)} ; sosa:phenomenonTime {at(6)}", 5),
        (f"sosa:phenomenonTime {at(6)}", 6),
        (f"sosa:phenomenonTime [ time:inXSDDateTimeStamp {at(7)} ]", 7),
        (f"sosa:phenomenonTime [ time:inXSDDateTime {at(8)} ]", 8),
        (
            f"sosa:phenomenonTime [ time:hasBeginning [ time:inXSDDateTime {at(8)} ] ;"
            f" time:hasEnd [ time:inXSDDateTime {at(9)} ] ]",
            9,
        ),
        (
            f"sosa:resultTime {at(5)} ; <http://www.w3.org/ns/prov#generatedAtTime> {at(4)}",
            4,
        ),
    ],
)
def test_time(tmp_path: Path, said: str, second: int) -> None:
    (event,), bad = events(tmp_path, f":o a sosa:Observation ; {said} .")
    assert (event.time, bad) == (second * 1000, [])


def test_collections(tmp_path: Path) -> None:
    text = f""":out a sosa:ObservationCollection ; sosa:usedProcedure :p ;
      sosa:observedProperty :x ;
      sosa:hasMember :in, :o3 .
    :in a sosa:ObservationCollection ; sosa:observedProperty :y ; sosa:resultTime {at(9)} ;
      sosa:hasMember :o1, :o2 .
    :o1 sosa:hasSimpleResult 1 . :o2 sosa:hasSimpleResult 2 ; sosa:resultTime {at(8)} .
    :o3 a sosa:Observation ; sosa:resultTime {at(7)} .
    :o4 a sosa:Observation ; sosa:resultTime {at(6)} ; sosa:isMemberOf :out ."""
    found, bad = events(tmp_path, text)
    assert bad == []
    shown = [
        (e.graph[-2:], e.time, objects(e, "observedProperty"), objects(e, "usedProcedure"))
        for e in found
        if e.graph is not None
    ]
    x, y, p = {"<http://e/x>"}, {"<http://e/y>"}, {"<http://e/p>"}
    assert shown == [
        *(("o4", 6000, x, p), ("o3", 7000, x, p)),
        *(("o2", 8000, y, p), ("o1", 9000, y, p)),
    ]
    assert not any(objects(event, "hasMember") for event in found)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (":a :b :c .", "no sosa:Observation is in it"),
        (":o a sosa:Observation .", "event without a timestamp"),
        (':o a sosa:Observation ; sosa:resultTime "soon" .', "timestamp"),
        (f":o a sosa:Observation ; sosa:resultTime {at(1)} . :p :q", "Unexpected end"),
    ],
)
def test_what_is_bad(tmp_path: Path, text: str, reason: str) -> None:
    found, bad = events(tmp_path, text)
    assert found == [] and len(bad) == 1
    assert reason in bad[0]


def test_lines_of_json_ld(tmp_path: Path) -> None:
    context = {"@vocab": SOSA, "resultTime": {"@type": f"{XSD}dateTime"}}
    lines = [
        {"@id": f"http://e/{n}", "@type": "Observation", "resultTime": f"1970-01-01T00:00:0{n}Z"}
        for n in (1, 2)
    ]
    text = "".join(json.dumps({"@context": context, **line}) + "\n" for line in lines)
    found, bad = events(tmp_path, text + "{}\n" + "{\n", "o.sosa")
    assert [event.time for event in found] == [1000, 2000]
    assert bad[0] == "no sosa:Observation is in it" and len(bad) == 2


@pytest.mark.skipif(not MESSAGES.exists(), reason="there are no shared samples")
def test_the_samples_in_all_formats(tmp_path: Path) -> None:
    text = (MESSAGES / "observation.ttl").read_bytes()
    quads = [*ox.parse(text, ox.RdfFormat.TURTLE)]
    named = [ox.Quad(q.subject, q.predicate, q.object, ox.NamedNode("http://g/")) for q in quads]
    texts = {
        "ttl": text,
        "jsonld": (MESSAGES / "observation.jsonld").read_bytes(),
        "nq": ox.serialize(named, format=ox.RdfFormat.N_QUADS),
        "nt": ox.serialize(quads, format=ox.RdfFormat.N_TRIPLES),
        "trig": ox.serialize(named, format=ox.RdfFormat.TRIG),
        "rdf": ox.serialize(quads, format=ox.RdfFormat.RDF_XML),
    }
    for ending, own in texts.items():
        assert own is not None
        found, bad = read(write(tmp_path / f"o.sosa.{ending}", own))
        assert bad == [], ending
        assert [event.time for event in found] == [1772442930250, 1772442931000], ending
        assert [len(event.triples) for event in found] == [9, 9], ending
    found, _ = read(write(tmp_path / "c.sosa.ttl", (MESSAGES / "collection.ttl").read_bytes()))
    assert [(e.graph, e.time) for e in found] == [
        ("http://example.org/brew/o-2", 1772443198000),
        ("http://example.org/brew/o-1", 1772443200000),
    ]
    assert all(objects(e, "hasFeatureOfInterest") for e in found)
