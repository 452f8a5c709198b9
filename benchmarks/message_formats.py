#!/usr/bin/env python3
"""Messages of brokers and services, against the bare parse of the same text.

    python benchmarks/message_formats.py [--events 100000] [--runs 3] [--kinds ngsild cloudevents]

Each kind is a file of so many messages. The table shows thousand events per second of CPU time for
reading it (`read`), for a run whose query each event concerns and few match (`run`), and for the
parse of the same text alone: by `json`, and by pyoxigraph where messages are JSON-LD. The best of
the runs counts. The answers must equal those of a plain loop over the messages.
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
from spaseq.rdf.readers import StreamOptions, read_stream
from spaseq.rdf.terms.times import format_time

WIDTHS = 8, 8, 8, 12
KEYS = 1000
RISE = 95
"""A level above it, and then another one of the same thing, is an answer."""

Reading = tuple[str, int, int]
"""A thing, the time (ms), the level."""


def readings(count: int) -> Iterator[Reading]:
    """Levels of things, ten milliseconds apart."""
    dice = Random(1)
    for number in range(count):
        yield f"urn:thing:{dice.randrange(KEYS)}", 10 * number, dice.randrange(100)


@dataclass(frozen=True)
class Kind:
    """A format: how a reading is written, and the query that finds two high levels."""

    ending: str
    message: Callable[[int, Reading], str]
    pattern: str
    is_json_ld: bool = False

    def query(self) -> str:
        """The query."""
        graphs = [self.pattern.format(level=f"?{name}") for name in ("x", "y")]
        return (
            "PREFIX : <http://e/> PREFIX n: <https://uri.etsi.org/ngsi-ld/>\n"
            "SELECT ?thing WITHIN 1 SECONDS FROM STREAM S <http://e/s> WHERE { SEQ(A; B)\n"
            f"DEFINE GPM A ON S {{ {graphs[0]} FILTER(?x > {RISE}) }}\n"
            f"DEFINE GPM B ON S {{ {graphs[1]} FILTER(?y > {RISE}) }} }}"
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


KINDS = {
    "ngsild": Kind("ngsild", notification, "?thing :level [ n:hasValue {level} ]", True),
    "cloudevents": Kind("cloudevents", cloud_event, "?thing :level {level}"),
}


def expected(given: Sequence[Reading]) -> int:
    """The answers of a plain loop: pairs of high levels of one thing within a second."""
    high = [(thing, at) for thing, at, level in given if level > RISE]
    last: dict[str, list[int]] = {}
    found = 0
    for thing, at in high:
        before = last.setdefault(thing, [])
        found += sum(at - 1000 <= earlier < at for earlier in before)
        before.append(at)
    return found


def cpu(work: Callable[[], object]) -> float:
    """The CPU seconds that some work takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def row(kind: Kind, events: int, runs: int, directory: Path) -> list[float]:
    """Thousand events per second: read, run, json, pyoxigraph (0: not JSON-LD)."""
    given = [*readings(events)]
    lines = [kind.message(number, reading) for number, reading in enumerate(given)]
    path = directory / f"s.{kind.ending}"
    path.write_text("\n".join(lines))
    answers: list[Any] = []

    def read() -> None:
        options = StreamOptions("http://e/s", (str(path),))
        count = sum(len(batch) for batch in read_stream(options, lambda bad: print(bad)))
        assert count == events, count

    def run() -> None:
        answers[:] = spaseq.run(kind.query(), {"S": str(path)}, runtime="local")

    def parse() -> None:
        for line in lines:
            json.loads(line)

    def parse_rdf() -> None:
        for line in lines:
            for _ in ox.parse(line, ox.RdfFormat.JSON_LD):
                pass

    works = [read, run, parse, *([parse_rdf] if kind.is_json_ld else [])]
    best = [min(cpu(work) for _ in range(runs + 1)) for work in works]
    assert len(answers) == expected(given), (len(answers), expected(given))
    return [events / seconds / 1000 for seconds in best]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    asked = parser.parse_args()
    print(f"{'thousand events/s':20}{'read':>8}{'run':>8}{'json':>8}{'pyoxigraph':>12}")
    for name in asked.kinds:
        with TemporaryDirectory() as directory:
            found = row(KINDS[name], asked.events, asked.runs, Path(directory))
        shown = "".join(
            f"{each:{width}.1f}" for each, width in zip(found, (8, 8, 8, 12), strict=False)
        )
        print(f"{name:20}{shown}", flush=True)


if __name__ == "__main__":
    main()
