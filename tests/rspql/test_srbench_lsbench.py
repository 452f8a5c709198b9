"""SRBench's and LSBench's questions in our words, over drawn streams, against pyoxigraph.

A window is a graph of a dataset at each close, and the stored data is another one; pyoxigraph
evaluates the same patterns on it. Constants of the benchmarks that nothing drawn would reach are
smaller here.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyoxigraph as ox
import pytest

import spaseq

PREFIXES = """PREFIX : <http://e/>
PREFIX om: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#>
PREFIX w: <http://knoesis.wright.edu/ssw/ont/weather.owl#>
PREFIX geo: <http://www.w3.org/2003/01/geo/wgs84_pos#>
PREFIX gn: <http://www.geonames.org/ontology#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
PREFIX sib: <http://www.ins.cwi.nl/sib/vocabulary/>
PREFIX sioc: <http://rdfs.org/sioc/ns#>
PREFIX foaf: <http://xmlns.com/foaf/0.1/>
"""
KB = "http://e/kb"
Event = tuple[float, str]


@dataclass(frozen=True)
class Part:
    """A window (seconds) on a stream, and the pattern on it."""

    stream: str
    length: float
    pattern: str


@dataclass(frozen=True)
class Question:
    """A question: its windows, all of which slide by the same time (seconds)."""

    parts: tuple[Part, ...]
    slide: float
    change: str = ""  # GONE

    def query(self) -> str:
        names = "AB"[: len(self.parts)]
        streams = "".join(f"FROM STREAM {s} :{s}\n" for s in dict.fromkeys(
            part.stream for part in self.parts))  # fmt: skip
        windows = "".join(
            f"FROM WINDOW W{name} ON {p.stream} RANGE {round(p.length * 1000)} MILLISECONDS "
            f"SLIDE {round(self.slide * 1000)} MILLISECONDS\n"
            for name, p in zip(names, self.parts, strict=True)
        )
        gpms = "".join(
            f"DEFINE GPM {name} ON {self.change} W{name} {{ {p.pattern} }}\n"
            for name, p in zip(names, self.parts, strict=True)
        )
        steps = "(A & B)" if len(names) > 1 else "A"
        within = "WITHIN 0 SECONDS\n" if len(names) > 1 else ""
        return (
            f"{PREFIXES}SELECT *\n{within}{streams}{windows}FROM NAMED :kb\n"
            f"WHERE {{ SEQ({steps}) {gpms} }}"
        )

    def expected(self, events: Mapping[str, Sequence[Event]], kb: str) -> set[object]:
        where = " ".join(
            f"GRAPH :W{name} {{ {p.pattern} }}" for name, p in zip("AB", self.parts, strict=False)
        )
        last = max(time for p in self.parts for time, _ in events[p.stream])
        count = int((last + max(p.length for p in self.parts)) / self.slide) + 2
        found, before, filled = set[object](), set[object](), False
        for number in range(1, count + 1):
            close = number * self.slide
            store, content = _dataset(self.parts, events, kb, close)
            if not content and not filled:
                continue
            rows = _solutions(store, where)
            given = before - rows if self.change == "GONE" else rows
            found |= {(round(close * 1000), row) for row in given}
            before, filled = rows, content
        return found


def _dataset(
    parts: Sequence[Part], events: Mapping[str, Sequence[Event]], kb: str, close: float
) -> tuple[ox.Store, bool]:
    store, content = ox.Store(), False
    store.load(kb.encode(), ox.RdfFormat.TURTLE, to_graph=ox.NamedNode(KB))
    for name, part in zip("AB", parts, strict=False):
        graph = ox.NamedNode(f"http://e/W{name}")
        store.add_graph(graph)
        for time, text in events[part.stream]:
            if close - part.length - 1e-9 <= time < close - 1e-9:
                content = True
                store.load(text.encode(), ox.RdfFormat.N_TRIPLES, to_graph=graph)
    return store, content


def _solutions(store: ox.Store, where: str) -> set[object]:
    found = store.query(f"{PREFIXES}SELECT * WHERE {{ {where} }}")
    assert isinstance(found, ox.QuerySolutions)
    names = sorted(v.value for v in found.variables)
    return {
        frozenset((n, _value(str(row[n]))) for n in names if row[n] is not None) for row in found
    }


def _value(term: str) -> str:
    """A number by its value, as computed ones have no prescribed text."""
    found = re.fullmatch(r'"(.*)"\^\^<.*#(integer|decimal|double|float)>', term)
    return f"{float(found[1]):.9g}" if found else term


# --- SRBench ------------------------------------------------------------------------------------

HOUR = 3600.0
CLASSES = ("Rainfall", "Snowfall", "Temperature", "WindSpeed", "WindDirection", "Visibility",
           "RelativeHumidity")  # fmt: skip
SENSORS = """@prefix : <http://e/> .
@prefix om: <http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#> .
@prefix w: <http://knoesis.wright.edu/ssw/ont/weather.owl#> .
@prefix geo: <http://www.w3.org/2003/01/geo/wgs84_pos#> .
@prefix gn: <http://www.geonames.org/ontology#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
w:RainfallObservation rdfs:subClassOf w:PrecipitationObservation .
w:SnowfallObservation rdfs:subClassOf w:PrecipitationObservation .
:s1 om:processLocation :p1 ; om:hasLocatedNearRel [ om:hasLocation :miami ] .
:s2 om:processLocation :p2 ; om:hasLocatedNearRel [ om:hasLocation :miami ] .
:s3 om:processLocation :p3 ; om:hasLocatedNearRel [ om:hasLocation :village ] .
:p1 geo:lat 1.5 ; geo:long 2.5 ; geo:alt 3 . :p2 geo:lat 1.6 ; geo:long 2.6 ; geo:alt 4 .
:p3 geo:lat 1.7 ; geo:long 2.7 ; geo:alt 5 .
:miami gn:population 400000 ; gn:featureCode :shore ; gn:parentADM1 :florida .
:village gn:population 200 ; gn:parentADM1 :utah .
:airport a :Airport ; gn:parentFeature :miami . :fort a :HeritageSite ; gn:parentFeature :miami .
:katrina :windspeed 40 ; :place :miami ; :damage 100 .
:andrew :windspeed 60 ; :place :miami ; :damage 50 .
"""


def _ob(kind: str, value: str, ob: str = "?ob", sensor: str = "?sensor") -> str:
    return (
        f"{ob} om:procedure {sensor} ; a w:{kind}Observation ; om:result {ob}r . "
        f"{ob}r om:floatValue {value} . "
    )


_NEAR = "GRAPH :kb { ?sensor om:hasLocatedNearRel [ om:hasLocation ?city ] . "
_PLACE = "GRAPH :kb { ?sensor om:processLocation ?p . ?p geo:lat ?lat ; geo:long ?long "
_LOW = (
    f"{{ {_ob('Visibility', '?v')} FILTER(?v < 10) }} UNION "
    f"{{ {_ob('Rainfall', '?v')} FILTER(?v > 60) }} UNION "
    "{ ?ob om:procedure ?sensor ; a w:SnowfallObservation }"
)
_STORM = (
    "{ SELECT ?sensor (AVG(?v) AS ?mean) { "
    + _ob("WindSpeed", "?v")
    + "} GROUP BY ?sensor HAVING (AVG(?v) >= 40) }"
)
_SR = {
    1: "{ SELECT DISTINCT ?sensor ?v ?uom { " + _ob("Rainfall", "?v") + "?obr om:uom ?uom } }",
    2: "?ob om:procedure ?sensor ; a ?c ; om:result ?r . "
       "GRAPH :kb { ?c rdfs:subClassOf* w:PrecipitationObservation } "
       "OPTIONAL { ?r om:floatValue ?v } OPTIONAL { ?r om:booleanValue ?flag }",
    3: f"BIND(EXISTS {{ {_STORM} }} AS ?hurricane)",
    4: "{ SELECT ?sensor (AVG(?wind) AS ?a) (AVG(?temp) AS ?b) { " + _ob("Temperature", "?temp")
       + "FILTER(?temp > 32) " + _ob("WindSpeed", "?wind", "?o2") + "} GROUP BY ?sensor }",
    5: "{ SELECT ?sensor { ?o1 om:procedure ?sensor ; a w:SnowfallObservation . "
       + _ob("Temperature", "?temp") + _ob("WindSpeed", "?wind", "?o2")
       + "} GROUP BY ?sensor HAVING (AVG(?temp) < 60 && MIN(?wind) > 10) }",
    6: _LOW,
    7: "{ SELECT DISTINCT ?sensor { ?ob om:procedure ?sensor } }",
    8: "{ SELECT ?lat ?long (MIN(?v) AS ?low) (MAX(?v) AS ?high) { " + _ob("Temperature", "?v")
       + _PLACE + "} } GROUP BY ?lat ?long }",
    9: "{ SELECT ?lat ?long (IF(AVG(?v) < 1, 0, IF(AVG(?v) < 38, 5, IF(AVG(?v) < 54, 8, 12)))"
       " AS ?force) (AVG(?d) AS ?direction) { " + _ob("WindSpeed", "?v")
       + _ob("WindDirection", "?d", "?o2") + _PLACE + "} } GROUP BY ?lat ?long }",
    10: "{ SELECT DISTINCT ?lat ?long ?alt { ?ob om:procedure ?sensor ; a w:SnowfallObservation "
        + _PLACE + "; geo:alt ?alt } } }",
    11: _ob("Temperature", "?v", "?ob", "?sensor") + _ob("Temperature", "?x", "?o2", "?other")
        + "GRAPH :kb { ?sensor om:hasLocatedNearRel/om:hasLocation ?city . "
        "?other om:hasLocatedNearRel/om:hasLocation ?city } "
        "FILTER(?sensor != ?other && ?v > ?x + 30)",
    12: "{ SELECT ?city (AVG(?v) AS ?temp) (AVG(?h) AS ?humidity) { " + _ob("Temperature", "?v")
        + _ob("RelativeHumidity", "?h", "?o2") + _NEAR + "?city gn:population ?n } "
        "FILTER(?n > 15000) } GROUP BY ?city }",
    13: _ob("WindSpeed", "?v") + _NEAR + "?city gn:featureCode :shore ; gn:parentADM1 :florida } "
        "FILTER(?v >= 24 && ?v <= 54)",
    14: _LOW + " " + _NEAR + "?airport a :Airport ; gn:parentFeature ?city }",
    15: "{ SELECT ?sensor (AVG(?v) AS ?mean) { " + _ob("WindSpeed", "?v") + "} GROUP BY ?sensor } "
        "GRAPH :kb { :katrina :windspeed ?known } FILTER(?mean > ?known)",
    16: _STORM + " " + _NEAR + "?site a :HeritageSite ; gn:parentFeature ?city }",
    17: "{ SELECT ?city (AVG(?d) AS ?damage) { " + _STORM + " " + _NEAR
        + "?h :place ?city ; :damage ?d } } GROUP BY ?city }",
}  # fmt: skip
SRBENCH = {
    number: Question(
        (Part("S", HOUR, pattern),), HOUR if number != 3 else 600, "GONE" if number == 7 else ""
    )
    for number, pattern in _SR.items()
}


def _observations() -> list[Event]:
    draw = random.Random(12)
    found = []
    for n in range(120):
        time = draw.randrange(5 * 3600) if n % 3 else draw.randrange(2 * 3600)
        kind, sensor = draw.choice(CLASSES), draw.choice(("s1", "s2", "s3"))
        om = "http://knoesis.wright.edu/ssw/ont/sensor-observation.owl#"
        w = "http://knoesis.wright.edu/ssw/ont/weather.owl#"
        xsd = "http://www.w3.org/2001/XMLSchema#"
        lines = [
            f"<http://e/o{n}> <{om}procedure> <http://e/{sensor}> .",
            f"<http://e/o{n}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
            f"<{w}{kind}Observation> .",
            f"<http://e/o{n}> <{om}result> <http://e/r{n}> .",
            f'<http://e/r{n}> <{om}floatValue> "{draw.randrange(100)}"^^<{xsd}integer> .',
            f"<http://e/r{n}> <{om}uom> <{w}unit> .",
        ]
        if kind == "Snowfall":
            lines[3] = f'<http://e/r{n}> <{om}booleanValue> "true"^^<{xsd}boolean> .'
        found.append((time, "\n".join(lines)))
    return sorted(found)


@pytest.mark.parametrize("number", SRBENCH)
def test_srbench(number: int, tmp_path: Path) -> None:
    _agrees(SRBENCH[number], {"S": _observations()}, SENSORS, tmp_path)


# --- LSBench ------------------------------------------------------------------------------------

PEOPLE = """@prefix : <http://e/> .
@prefix sioc: <http://rdfs.org/sioc/ns#> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
:u1 sioc:account_of :p1 ; foaf:knows :u2 , :u3 ; sioc:subscriber_of :c1 .
:u2 sioc:account_of :p2 ; foaf:knows :u1 ; sioc:subscriber_of :c2 .
:u3 sioc:account_of :p3 ; foaf:knows :u4 , :u1 .
:u4 sioc:account_of :p4 ; foaf:knows :u2 .
"""
_POST = "?user sioc:creator_of ?post"
_TAGGED = "?post{n} sib:hashtag ?tag . ?user sioc:creator_of ?post{n} . "
_PHOTO = "?photo sib:usertag ?friend1"
LSBENCH = {
    1: Question((Part("Posts", 1, ":u1 ?p ?o"),), 1),
    2: Question((Part("Posts", 1, _POST + " GRAPH :kb { ?user sioc:account_of :p1 }"),), 1),
    3: Question((Part("Posts", 5, "?friend sioc:creator_of ?post GRAPH :kb { "
                      "?user foaf:knows ?friend ; sioc:account_of :p1 }"),), 1),
    4: Question((Part("Posts", 15, _TAGGED.format(n=1) + _TAGGED.format(n=2)
                      + "FILTER(?post1 != ?post2)"),), 5),
    5: Question((Part("Photos", 6, _PHOTO),
                 Part("PhotoLikes", 0.5, "?friend2 sib:like ?photo "
                      "GRAPH :kb { ?friend1 foaf:knows ?friend2 }")), 0.5),
    6: Question((Part("Posts", 6, "?channel sioc:container_of ?post"),
                 Part("Likes", 0.5, "?friend sib:like ?post GRAPH :kb { "
                      "?user foaf:knows ?friend ; sioc:subscriber_of ?channel }")), 0.5),
    7: Question((Part("Photos", 6, "?user sioc:creator_of ?photo"),
                 Part("PhotoLikes", 2, "?other sib:like ?photo GRAPH :kb { "
                      "?user foaf:knows/foaf:knows ?other }")), 2),
    8: Question((Part("Gps", 3, "?a :x ?x . ?b :x ?y GRAPH :kb { ?a foaf:knows ?b } "
                      "FILTER(ABS(?x - ?y) < 15)"),), 3),
    9: Question((Part("Posts", 6, "?friend sioc:creator_of ?post . ?post sib:hashtag :t1 "
                      "FILTER NOT EXISTS { ?post sib:hashtag :t2 } "
                      "GRAPH :kb { :u1 foaf:knows ?friend }"),), 3),
    10: Question((Part("Likes", 6, "{ SELECT ?post (COUNT(?user) AS ?n) { ?user sib:like ?post } "
                       "GROUP BY ?post }"),), 3),
    11: Question((Part("Posts", 6, "{ SELECT ?tag (COUNT(?post) AS ?n) { ?post sib:hashtag ?tag } "
                       "GROUP BY ?tag }"),), 3),
    12: Question((Part("Likes", 6, "{ SELECT ?post (COUNT(?user) AS ?n) { ?user sib:like ?post } "
                       "GROUP BY ?post ORDER BY DESC(?n) ?post LIMIT 1 }"),), 3),
}  # fmt: skip


def _social() -> dict[str, list[Event]]:
    draw = random.Random(5)
    sib, sioc = "http://www.ins.cwi.nl/sib/vocabulary/", "http://rdfs.org/sioc/ns#"
    found: dict[str, list[Event]] = {s: [] for s in ("Posts", "Photos", "Likes", "PhotoLikes")}
    found["Gps"] = []
    for n in range(60):
        user, friend = (f"<http://e/u{draw.randint(1, 4)}>" for _ in "ab")
        post, photo = f"<http://e/post{n}>", f"<http://e/photo{n}>"
        tag, channel = f"<http://e/t{draw.randint(1, 2)}>", f"<http://e/c{draw.randint(1, 2)}>"
        old = draw.randint(max(0, n - 8), n)
        for stream, lines in {
            "Posts": [f"{user} <{sioc}creator_of> {post}", f"{post} <{sib}hashtag> {tag}",
                      f"{channel} <{sioc}container_of> {post}"],
            "Photos": [f"{photo} <{sib}usertag> {friend}", f"{user} <{sioc}creator_of> {photo}"],
            "Likes": [f"{user} <{sib}like> <http://e/post{old}>"],
            "PhotoLikes": [f"{friend} <{sib}like> <http://e/photo{old}>"],
            "Gps": [f'{user} <http://e/x> "{draw.randrange(100)}"'
                    "^^<http://www.w3.org/2001/XMLSchema#integer>"],
        }.items():  # fmt: skip
            time = n / 2 + draw.randrange(5) / 10
            found[stream].append((time, "".join(f"{line} .\n" for line in lines)))
    return {stream: sorted(own) for stream, own in found.items()}


@pytest.mark.parametrize("number", LSBENCH)
def test_lsbench(number: int, tmp_path: Path) -> None:
    _agrees(LSBENCH[number], _social(), PEOPLE, tmp_path)


def _agrees(
    question: Question, events: Mapping[str, Sequence[Event]], kb: str, directory: Path
) -> None:
    file = directory / "kb.ttl"
    file.write_text(kb)
    used = {part.stream for part in question.parts}
    streams = {
        s: [spaseq.Event(text, round(time * 1000)) for time, text in events[s]] for s in used
    }
    matches = spaseq.run(question.query(), streams, {KB: file}, runtime="local")
    found = {
        (m.answer.end[0], frozenset((v, _value(t.n3())) for v, t in m.bindings.items()))
        for m in matches
    }
    expected = question.expected(events, kb)
    assert len(expected) > 1
    assert found == expected, question.query()
