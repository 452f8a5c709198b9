#!/usr/bin/env python3
"""Effect of a knowledge base's size on load time, disk space, and events per second.

    python benchmarks/kb.py [--triples 10000 ...] [--events 50000] [--runs 3] [--json FILE]

The knowledge base contains things as N-Triples. Each has four triples: a class, a name, a neighbour
and a limit. The stream contains observations of random things, as N-Quads. The query joins each
observation with the name and the limit of its thing (a BGP of two triples over the KB, and a FILTER
between event and KB). Few observations pass.

*load* reads and compiles the N-Triples. *turtle* does the same for the text as Turtle. *open* is a
second start: it hashes the content of the source and opens the compiled form. Events per second
are measured on the local runtime without loading, with the KB and without it. Seconds are CPU time
in a separate process: the median of the runs.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

K = "http://kb.example/"
XSD = "http://www.w3.org/2001/XMLSchema#"
_TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"

_QUERY = f"""PREFIX k: <{K}>
SELECT ?thing ?name WITHIN 1 MINUTES FROM STREAM S <{K}stream> FROM NAMED <{K}graph>
WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?o k:of ?thing ; k:value ?value JOIN }} }}"""
_JOIN = f"GRAPH <{K}graph> {{ ?thing k:name ?name ; k:limit ?limit }} "
_JOIN += "FILTER (?value > ?limit && ?limit > 115)"
_ALONE = "FILTER (?value > 118)"


def query(joined: bool) -> str:
    """The query, joined with the knowledge base or without it."""
    return _QUERY.replace("JOIN", _JOIN if joined else _ALONE)


@dataclass(frozen=True)
class Line:
    """One size of knowledge base."""

    triples: int
    source_mb: float
    load_s: float
    turtle_s: float
    open_s: float
    compiled_mb: float
    events_s: float  # per second
    without_kb: float  # events per second
    answers: int


def write_kb(path: Path, triples: int) -> None:
    """Things, four triples each."""
    things = triples // 4
    with path.open("w") as file:
        for i in range(things):
            s = f"<{K}thing/{i}>"
            file.write(
                f"{s} <{K}class> <{K}class/{i % 50}> .\n"
                f'{s} <{K}name> "Thing number {i}" .\n'
                f"{s} <{K}near> <{K}thing/{i * 7919 % things}> .\n"
                f'{s} <{K}limit> "{i % 120}"^^<{XSD}integer> .\n'
            )


def write_events(path: Path, events: int, triples: int) -> None:
    """Observations of things, one per 10 ms."""
    rng = random.Random(1)
    with path.open("w") as file:
        for i in range(events):
            g, o = f"<{K}event/{i}>", f"<{K}observation/{i}>"
            thing, value = rng.randrange(triples // 4), rng.randrange(120)
            file.write(
                f"{o} <{K}of> <{K}thing/{thing}> {g} .\n"
                f'{o} <{K}value> "{value}"^^<{XSD}integer> {g} .\n'
                f'{g} {_TIME} "{10 * i}"^^<{XSD}long> .\n'
            )


# --- one measurement, in a separate process -------------------------------------------------------


def load(source: str, cache: str) -> dict[str, float]:
    """CPU seconds to load a knowledge base, without imports."""
    from spaseq.compiled.warming import warm
    from spaseq.kb.load import cache_at, load_kb

    warm()
    start = time.process_time()
    knowledge = load_kb([(f"{K}graph", source)], cache=cache_at(cache))
    return {"seconds": time.process_time() - start, "triples": len(knowledge)}


def run(query: str, events: str, source: str, cache: str) -> dict[str, float]:
    """CPU seconds of a run without loading, and the number of its answers."""
    from spaseq.compile import compile_query
    from spaseq.compiled.warming import warm
    from spaseq.kb.load import cache_at, load_kb
    from spaseq.rdf.inputs.stream_options import StreamOptions
    from spaseq.runtime import local
    from spaseq.runtime.job.job import Job
    from spaseq.sources.files import FileSource

    warm()
    knowledge = load_kb([(f"{K}graph", source)], cache=cache_at(cache))
    job = Job(
        (compile_query(query),), (FileSource(StreamOptions(f"{K}stream", (events,))),), knowledge
    )
    start = time.process_time()
    answers = sum(1 for _ in local.run(job))
    return {"seconds": time.process_time() - start, "answers": answers}


def measured(runs: int, function: str, *arguments: str) -> dict[str, float]:
    """The median of some runs of a function of this file."""
    command = [sys.executable, __file__, "--one", function, *arguments]
    found = [
        json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        for _ in range(runs)
    ]
    return {**found[0], "seconds": median(one["seconds"] for one in found)}


def line(triples: int, events: int, runs: int, directory: Path) -> Line:
    """All measurements of one size."""
    nt, turtle, stream = directory / "kb.nt", directory / "kb.ttl", directory / "events.nq"
    cache = directory / "cache"
    write_kb(nt, triples)
    turtle.write_bytes(nt.read_bytes())
    write_events(stream, events, triples)
    loading = measured(runs, "load", str(nt), "none")
    by_parser = measured(1, "load", str(turtle), "none")
    measured(1, "load", str(nt), str(cache))
    (compiled,) = cache.iterdir()
    opening = measured(runs, "load", str(nt), str(cache))
    inputs = str(stream), str(nt), str(cache)
    joined = measured(runs, "run", query(joined=True), *inputs)
    without = measured(runs, "run", query(joined=False), *inputs)
    return Line(
        int(loading["triples"]),
        nt.stat().st_size / 1e6,
        loading["seconds"],
        by_parser["seconds"],
        opening["seconds"],
        compiled.stat().st_size / 1e6,
        events / joined["seconds"],
        events / without["seconds"],
        int(joined["answers"]),
    )


def table(lines: list[Line]) -> str:
    """The lines as a readable table."""
    names = ("triples", "source MB", "load s", "turtle s", "open s", "compiled MB", "events/s")
    rows = ["".join(f"{name:>13}" for name in (*names, "without KB"))]
    rows += [
        f"{x.triples:>13,}{x.source_mb:>13.1f}{x.load_s:>13.2f}{x.turtle_s:>13.2f}{x.open_s:>13.3f}"
        f"{x.compiled_mb:>13.1f}{x.events_s:>13,.0f}{x.without_kb:>13,.0f}"
        for x in lines
    ]
    return "\n".join(rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--triples", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="also write the lines as JSON")
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        name, *arguments = given.one
        print(json.dumps({"load": load, "run": run}[name](*arguments)))
        return
    lines = []
    for triples in given.triples:
        with TemporaryDirectory(prefix="spaseq-kb-") as directory:
            lines.append(line(triples, given.events, given.runs, Path(directory)))
    print(table(lines))
    if given.json:
        Path(given.json).write_text(json.dumps([asdict(x) for x in lines], indent=2) + "\n")


if __name__ == "__main__":
    main()
