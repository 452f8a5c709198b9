#!/usr/bin/env python3
"""Documents, and messages of brokers, services and feeds, against the bare parse of the same text.

    python benchmarks/message_formats.py [--events 100000] [--runs 3] [--kinds ngsild cloudevents]

Each kind is a file of so many readings of 1,000 things. The table shows thousand events per second
of CPU time: for a run whose query each event concerns and few match, and for the parse of the same
text alone, by `json` or by pyoxigraph. The best of the runs counts. The answers must equal those of
a plain loop over the readings.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyoxigraph as ox

import spaseq
from spaseq.rdf.terms.times import format_time

KEYS = 1000
RISE = 95
"""A level above it, and then another one of the same thing, is an answer."""

WHOLE = {"Turtle": ox.RdfFormat.TURTLE, "TriG": ox.RdfFormat.TRIG}
"""Formats that are parsed as a whole."""

Reading = tuple[str, int, int]
"""A thing, the time (ms), the level."""

PREFIXES = """PREFIX : <http://e/>
PREFIX dct: <http://purl.org/dc/terms/>
PREFIX ldes: <https://w3id.org/ldes#>
PREFIX n: <https://uri.etsi.org/ngsi-ld/>
PREFIX prov: <http://www.w3.org/ns/prov#>
PREFIX sosa: <http://www.w3.org/ns/sosa/>
PREFIX tree: <https://w3id.org/tree#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
"""

LIFT = (
    PREFIXES
    + """CONSTRUCT { GRAPH ?e { ?t :level ?after_level } ?e prov:generatedAtTime ?source_ts_ms }
WHERE { BIND (IRI(CONCAT("http://e/lsn/", STR(?source_lsn))) AS ?e) BIND (IRI(?after_id) AS ?t) }
"""
)


def readings(count: int) -> Iterator[Reading]:
    """Levels of things, ten milliseconds apart."""
    dice = Random(1)
    for number in range(count):
        yield f"urn:thing:{dice.randrange(KEYS)}", 10 * number, dice.randrange(100)


@dataclass(frozen=True)
class Kind:
    """A format.

    Attributes:
        ending: of its files.
        written: a reading, by its number, as a line or a part of a document.
        pattern: what a query says of a thing and its level.
        parser: what parses the text: json or JSON-LD line by line, or Turtle or TriG as a whole.
        head: the begin of the document.
        stream: what `spaseq.run` is given for a file.
    """

    ending: str
    written: Callable[[int, Reading], str]
    pattern: str
    parser: str = "json"
    head: str = ""
    stream: Callable[[Path], Any] = str

    def query(self) -> str:
        """The query that finds two high levels."""
        graphs = [self.pattern.format(level=f"?{name}") for name in ("x", "y")]
        return (
            f"{PREFIXES}SELECT ?thing WITHIN 1 SECONDS FROM STREAM S <http://e/s> WHERE {{ "
            f"SEQ(A; B) DEFINE GPM A ON S {{ {graphs[0]} FILTER(?x > {RISE}) }}\n"
            f"DEFINE GPM B ON S {{ {graphs[1]} FILTER(?y > {RISE}) }} }}"
        )

    def parsed(self, lines: Sequence[str], text: bytes) -> None:
        """The bare parse of its text."""
        form = WHOLE.get(self.parser)
        if form is not None:
            sum(1 for _ in ox.parse(text, form, base_iri="http://e/"))
        for line in lines if form is None else ():
            if self.parser == "json":
                json.loads(line)
            else:
                sum(1 for _ in ox.parse(line, ox.RdfFormat.JSON_LD))


def graph(number: int, reading: Reading) -> str:
    """A named graph of two triples in TriG, and its time."""
    thing, at, level = reading
    time = f':g{number} prov:generatedAtTime "{format_time(at)}"^^xsd:dateTime .'
    return f":g{number} {{ <{thing}> :level {level} ; :number {number % 10} . }} {time}"


def object_of_graph(number: int, reading: Reading) -> str:
    """The same as JSON-LD."""
    thing, at, level = reading
    iri = {"@type": "http://www.w3.org/2001/XMLSchema#dateTime"}
    time = {"@id": "http://www.w3.org/ns/prov#generatedAtTime", **iri}
    node = {"@id": thing, "level": level, "number": number % 10}
    context = {"@vocab": "http://e/", "at": time}
    return json.dumps(
        {"@context": context, "@id": f"http://e/g{number}", "at": format_time(at), "@graph": [node]}
    )


def notification(number: int, reading: Reading) -> str:
    """An NGSI-LD notification with one entity."""
    thing, at, level = reading
    seen = {"type": "Property", "value": level, "observedAt": format_time(at)}
    entity = {"id": thing, "type": "Thing", "level": seen}
    context = {"Thing": "http://e/Thing", "level": "http://e/level"}
    head = {"id": f"urn:n:{number}", "type": "Notification", "notifiedAt": format_time(at + 5)}
    return json.dumps({**head, "data": [entity], "@context": context})


def cloud_event(number: int, reading: Reading) -> str:
    """A CloudEvent whose data is JSON-LD."""
    thing, at, level = reading
    data = {"@context": {"@vocab": "http://e/"}, "@id": thing, "level": level}
    head = {"specversion": "1.0", "id": str(number), "source": "urn:s", "type": "level"}
    return json.dumps({**head, "time": format_time(at), "data": data})


def observation(number: int, reading: Reading) -> str:
    """An observation of SOSA in Turtle."""
    thing, at, level = reading
    time = f'"{format_time(at)}"^^xsd:dateTime'
    result = f"sosa:resultTime {time} ; sosa:hasSimpleResult {level}"
    return f":o{number} a sosa:Observation ; sosa:hasFeatureOfInterest <{thing}> ; {result} ."


def member(number: int, reading: Reading) -> str:
    """A member of a linked data event stream in Turtle."""
    thing, at, level = reading
    time = f'dct:created "{format_time(at)}"^^xsd:dateTime'
    version = f":m{number} dct:isVersionOf <{thing}> ; {time} ; :level {level} ."
    return f":feed tree:member :m{number} . {version}"


def change(number: int, reading: Reading) -> str:
    """A change record of Debezium."""
    thing, at, level = reading
    row = {"id": thing, "level": level}
    source = {"connector": "postgresql", "ts_ms": at, "lsn": number, "table": "levels"}
    return json.dumps({"before": None, "after": row, "source": source, "op": "u", "ts_ms": at + 7})


FEED = f"{PREFIXES}:feed tree:view <> ; ldes:timestampPath dct:created .\n"
KINDS = {
    "trig": Kind("trig", graph, "?thing :level {level}", "TriG", PREFIXES),
    "ndjsonld": Kind("ndjsonld", object_of_graph, "?thing :level {level}", "JSON-LD"),
    "ngsild": Kind("ngsild", notification, "?thing :level [ n:hasValue {level} ]", "JSON-LD"),
    "cloudevents": Kind("cloudevents", cloud_event, "?thing :level {level}"),
    "sosa": Kind(
        "sosa.ttl",
        observation,
        "[] sosa:hasFeatureOfInterest ?thing ; sosa:hasSimpleResult {level}",
        "Turtle",
        PREFIXES,
    ),
    "ldes": Kind(
        "ttl",
        member,
        "[] dct:isVersionOf ?thing ; :level {level}",
        "Turtle",
        FEED,
        lambda path: f"ldes+file:{path}",
    ),
    "debezium": Kind(
        "jsonl",
        change,
        "?thing :level {level}",
        stream=lambda path: spaseq.Lifted(path, LIFT),
    ),
}


def expected(given: Sequence[Reading]) -> list[str]:
    """The answers of a plain loop: a high level, and the next one of the thing within a second."""
    last: dict[str, int] = {}
    found = []
    for thing, at, level in given:
        if level > RISE:
            if at - last.get(thing, -10_000) <= 1000:
                found.append(thing)
            last[thing] = at
    return sorted(found)


def cpu(work: Callable[[], object]) -> float:
    """The CPU seconds that some work takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def row(kind: Kind, events: int, runs: int, directory: Path) -> tuple[float, float]:
    """Thousand events per second of a run, and of the bare parse."""
    given = [*readings(events)]
    lines = [kind.written(number, reading) for number, reading in enumerate(given)]
    path = directory / f"s.{kind.ending}"
    text = kind.head + "\n".join(lines)
    path.write_text(text)
    answers: list[Any] = []

    def run() -> None:
        found = spaseq.run(kind.query(), {"S": kind.stream(path)}, runtime="local")
        answers[:] = [str(answer.bindings["thing"]).strip("<>") for answer in found]

    best = [
        min(cpu(work) for _ in range(runs + 1))
        for work in (run, lambda: kind.parsed(lines, text.encode()))
    ]
    assert sorted(answers) == expected(given), (len(answers), len(expected(given)))
    return events / best[0] / 1000, events / best[1] / 1000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    asked = parser.parse_args()
    print(f"{'thousand events/s':20}{'run':>8}{'parse':>8}{'ratio':>8}  parsed as")
    for name in asked.kinds:
        with TemporaryDirectory() as directory:
            ours, bare = row(KINDS[name], asked.events, asked.runs, Path(directory))
        print(
            f"{name:20}{ours:8.1f}{bare:8.1f}{ours / bare:8.2f}  {KINDS[name].parser}", flush=True
        )


if __name__ == "__main__":
    main()
