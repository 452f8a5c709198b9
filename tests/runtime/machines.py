"""Streams of two machine rooms as N-Quads files, and queries over them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from spaseq.compile import CompileOptions, compile_query
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.runtime import local
from spaseq.runtime.job.job import Job
from spaseq.sources.files import FileSource

IRIS = ("http://m.example/north", "http://m.example/south")

HEAD = """PREFIX : <http://m.example/>
SELECT * WITHIN 1 MINUTES FROM STREAM N <http://m.example/north> FROM STREAM S <http://m.example/south>
"""

KEYED = (
    HEAD
    + """SEQ (A; B) {
  DEFINE GPM A ON N, S { ?machine :starts ?load }
  DEFINE GPM B ON N, S { ?machine :stops ?code }
}"""
)
"""Every GPM binds ?machine, so stage 2 is split by it."""

UNKEYED = (
    HEAD
    + """SEQ (A, B) {
  DEFINE GPM A ON N { ?machine :starts ?load }
  DEFINE GPM B ON N, S { ?other :stops ?code }
}"""
)
"""Strict contiguity considers all events, so there is one partition."""

Row = tuple[int, str, str, object]
"""Time in ms, machine, property, value."""

NORTH: Sequence[Row] = (
    (0, "m1", "starts", 5),
    (1000, "m2", "starts", 6),
    (1000, "m1", "stops", 1),
    (4000, "m2", "starts", 7),
    (9000, "m3", "starts", 8),
)
SOUTH: Sequence[Row] = (
    (1000, "m2", "stops", 2),
    (3000, "m4", "starts", 9),
    (5000, "m2", "stops", 3),
    (5000, "m4", "stops", 4),
    (9500, "m3", "stops", 5),
)


def nquads(rows: Iterable[Row], name: str = "e") -> str:
    """The N-Quads of one event per row; `name` makes the graph IRIs unique."""
    lines = []
    for number, (time, machine, what, value) in enumerate(rows):
        graph, m = f"<http://m.example/{name}/{number}>", "http://m.example/"
        lines.append(f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> "
                     f'"{time}"^^<http://www.w3.org/2001/XMLSchema#long> .')  # fmt: skip
        lines.append(f'<{m}{machine}> <{m}{what}> "{value}" {graph} .')
    return "".join(f"{line}\n" for line in lines)


def put(path: Path, text: str) -> None:
    """Write a file that appears atomically, as required in a followed directory."""
    unfinished = path.with_name(f".{path.name}")
    unfinished.write_text(text)
    unfinished.rename(path)


def job_of(
    paths: Sequence[Path],
    limits: Limits = DEFAULT_LIMITS,
    query: str | None = None,
    partial: bool = False,
    **functions: Any,
) -> Job:
    """A job with a query, or with both queries, over two streams; perhaps with partial matches."""
    options = CompileOptions(partial=partial)
    plans: tuple[QueryPlan, ...] = (
        compile_query(KEYED, "keyed", options),
        compile_query(UNKEYED, "unkeyed", options),
    )
    if query is not None:
        plans = (compile_query(query),)
    streams = tuple(
        FileSource(StreamOptions(i, (str(p),), limits=limits))
        for i, p in zip(IRIS, paths, strict=True)
    )
    return Job(plans, streams, KnowledgeBase.empty(), **functions)


def answers_in_process(job: Job) -> list[tuple[int, Any]]:
    """The answers of the local runtime."""
    return list(local.run(job))
