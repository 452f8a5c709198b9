"""A query over a broker's stream, its events, and what a run over a file of them answers."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spaseq.api.run import answers_of
from spaseq.compile import compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.options import RuntimeOptions
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime.job.job import Job
from spaseq.sinks.answer_json import answer_json
from spaseq.sources.base import Source
from spaseq.sources.files import FileSource

IRI = "http://example/s"

QUERY = f"""SELECT ?x WITHIN 5 SECONDS FROM STREAM S <{IRI}>
WHERE {{ SEQ(A; B)
  DEFINE GPM A ON S {{ ?x <http://example/is> "hot" }}
  DEFINE GPM B ON S {{ ?x <http://example/is> "cold" }} }}"""


def event(number: int, ms: int, thing: str, state: str) -> bytes:
    name = f"<http://example/e{number}>"
    at = f"2026-01-01T00:{ms // 60000:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}Z"
    return (
        f'<http://example/{thing}> <http://example/is> "{state}" {name} .\n'
        f'{name} <http://www.w3.org/ns/prov#generatedAtTime> "{at}"'
        f"^^<http://www.w3.org/2001/XMLSchema#dateTime> {name} .\n"
    ).encode()


def events(count: int, seed: int = 1, disorder_ms: int = 0) -> list[bytes]:
    """Events, of which few are too late for a watermark of half a second; the last is far ahead."""
    chance, found = random.Random(seed), []
    for number in range(count):
        ms = max(0, number * 40 - chance.randrange(disorder_ms + 1))
        found.append(event(number, ms, f"x{chance.randrange(9)}", chance.choice(("hot", "cold"))))
    return [*found, event(count, count * 40 + 60_000, "end", "none")]


def job_of(source: Source, **given: Any) -> Job:
    return Job((compile_query(QUERY, "q"),), (source,), KnowledgeBase.empty(), **given)


def expected_lines(directory: Path, given: Sequence[bytes]) -> list[str]:
    """The answers of a bounded run over a file with the events, as lines of JSON."""
    path = directory / "expected.nq"
    path.write_bytes(b"".join(given))
    job = job_of(FileSource(StreamOptions(IRI, (str(path),))))
    return [answer_json("q", answer) for _, answer in answers_of(job, RuntimeOptions("local"))]


def lines(path: Path) -> list[str]:
    """The lines of a file that are written to their ends."""
    text = path.read_text() if path.exists() else ""
    return text[: text.rfind("\n") + 1].splitlines()


def without_ids(texts: Sequence[bytes]) -> list[Any]:
    found = []
    for text in texts:
        value = json.loads(text)
        del value["id"]
        found.append(value)
    return found
