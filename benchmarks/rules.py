#!/usr/bin/env python3
"""Gain of each planner rule: queries that suit the rule, with the rule and without it.

    python benchmarks/rules.py [--events 100000] [--runs 3] [--json FILE]

A rule about graph patterns is measured on pattern matching alone, over events in memory. The rule
about requests is measured on an in-process engine and an endpoint in the same process, the rule
about lifted events on a run over Parquet. The other rules are measured on whole runs of the local
runtime with one thread, from N-Quads to answers.

Seconds are CPU time: the median of the runs after a warm-up run. Runs with and without the rule
alternate. *gain* is the time without the rule divided by the time with it. Both must find the same
number of rows.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import places
from endpoint import serving
from lift import lift, write

import spaseq
from spaseq.compile import CompileOptions, compile_query
from spaseq.gpm.pattern_stage import PatternStage
from spaseq.kb.endpoint import shared_cache
from spaseq.kb.load import load_kb
from spaseq.plan.rules import NAMES
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.ranges import read_stream

PREFIX = "PREFIX : <http://s.example/ns#>\n"
STREAM = "FROM STREAM S1 <http://s.example/stream/s1>"


@dataclass(frozen=True)
class Case:
    """A query for one rule."""

    rule: str
    name: str
    query: str
    patterns_only: bool = False
    pushed: bool = False
    lifted: bool = False


def query(
    select: str, sequence: str, gpms: dict[str, str], options: str = "", seconds: int = 1
) -> str:
    """A query over the synthetic stream."""
    defined = "\n".join(f"DEFINE GPM {name} ON S1 {{ {p} }}" for name, p in gpms.items())
    head = f"{PREFIX}{select} WITHIN {seconds} SECONDS {options} {STREAM}"
    return f"{head} SEQ ({sequence}) {{ {defined} }}"


def keyed(name: str, kind: str, rest: str = "") -> str:
    """A star pattern about one event; in GPM A, `?vA` is the value."""
    return f"?x{name} a :{kind} ; :key ?key ; :value ?v{name} . {rest}"


def steps(condition: str = "") -> dict[str, str]:
    """Three steps with the same key; `condition` belongs to the last step."""
    return {"A": keyed("A", "T1"), "B": keyed("B", "T2"), "C": keyed("C", "T3", condition)}


WIDE = ":key ?key ; :value ?v{0} ; :weight ?w{0} ; :batch ?b{0}"
LATE = {n: f"?x{n} {WIDE.format(n)} ; a :T{i}" for i, n in enumerate("ABC", 1)}
ALIKE = {n: f"?x{n} {WIDE.format(n)} FILTER (?v{n} = {i})" for i, n in enumerate("ABCDEF")}
PATHS = {
    "A": "?a a :T1 ; :key ?key FILTER EXISTS { ?a (:value|:weight|:batch)+ ?n }",
    "B": "?b a :T2 ; :key ?key OPTIONAL { ?b (:value|:weight)* ?m FILTER (isIRI(?m)) }",
}
RARE = "?xD a :T1 ; :key ?key ; :value ?vD FILTER (?vD = 7{})"

LEVEL = f"""{PREFIX}SELECT ?key ?mean {STREAM}
FROM WINDOW W ON S1 RANGE 100 SECONDS SLIDE 10 SECONDS
SEQ (A) {{ DEFINE GPM A ON NEW W {{ {{ SELECT ?key (AVG(?v) AS ?mean)
  {{ EVENT {{ ?x :key ?key ; :value ?v }} }} GROUP BY ?key HAVING (AVG(?v) > 520) }} }} }}"""

CASES = (
    Case("kept-groups", "the mean of each key, in a window", LEVEL),
    Case("pushed-predicates", "two predicates of six", query("SELECT ?key", "A; B", {
        "A": "?a :key ?key ; :value 7", "B": "?b :key ?key ; :value 8"})),
    Case("virtual-triples", "few answers, over Parquet", query("SELECT ?key", "A; B; C", {
        **steps(), "A": keyed("A", "T1", "FILTER (?vA < 3)")}), lifted=True),
    Case("rare-triples-first", "the type comes last", query("SELECT ?key", "A; B; C", LATE), True),
    Case("shared-patterns", "six GPMs alike", query(
        "SELECT ?key", "A; B; C; D; E; F", ALIKE), True),
    Case("lazy-operands", "paths in EXISTS and OPTIONAL", query(
        "SELECT ?key", "A; B", PATHS), True),
    Case("pruned-columns", "one column of seven", query("SELECT ?key", "A; B; C", steps()), True),
    Case("awaited-requests", "SERVICE after a rare step, pushed", "", pushed=True),
    Case("indexed-places", "positions in 300 zones", places.QUERY),
    Case("shared-runs", "the last step of four is rare", query(
        "SELECT ?key", "A: B: C: D", {**steps(), "D": RARE.format("")}, seconds=100)),
    Case("query-families", "a hundred pairs of bounds", ""),
    Case("compiled-runs", "conditions between steps", query("SELECT ?key", "A; B; C", steps(
        "FILTER (?vC > ?vA)"), "PARTITION BY (?key)")),
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """The measurements of one case, with its rule and without."""

    rule: str
    case: str
    rows: int  # answers, or solutions
    seconds_with: float
    seconds_without: float

    @property
    def gain(self) -> float:
        """The time without the rule divided by the time with it."""
        return self.seconds_without / self.seconds_with


def work(case: Case, stream: str, disable: tuple[str, ...]) -> Callable[[], int]:
    """The function to measure; it returns the number of rows found."""
    if case.pushed:
        return partial(pushed, disable)
    if case.lifted:
        table = spaseq.Lifted(Path(stream).with_name("events.parquet"), lift(cast=False))
        run = partial(spaseq.run, case.query, {"S1": table}, runtime="local")
        return lambda: sum(1 for _ in run(disable=disable))
    if case.rule == "query-families":
        run = partial(spaseq.run, alike(), {"S1": stream}, runtime="local", threads=1)
        return lambda: sum(1 for _ in run(disable=disable))
    if case.rule == "indexed-places":
        run = partial(spaseq.run, case.query, *zoned(Path(stream).parent), runtime="local")
        return lambda: sum(1 for _ in run(disable=disable))
    if not case.patterns_only:
        run = partial(spaseq.run, case.query, {"S1": stream}, runtime="local", threads=1)
        return lambda: sum(1 for _ in run(disable=disable))
    plan = compile_query(case.query, options=CompileOptions(disable=disable))
    options = StreamOptions(plan.inputs.streams[0], (stream,))
    batches = list(read_stream(options, lambda bad: sys.exit(bad.reason)))
    matcher = PatternStage(plan, load_kb([]))
    return lambda: sum(len(matcher.match(batch)) for batch in batches)


def alike() -> list[str]:
    """A hundred queries that differ in two numbers."""
    return [
        query("SELECT ?key", "A; B", {
            "A": f"?a :key ?key ; :value ?v FILTER (?v > {900 + i})",
            "B": f"?b :key ?key ; :value ?w FILTER (?w < {i})"})
        for i in range(100)
    ]  # fmt: skip


def zoned(directory: Path) -> tuple[dict[str, Path], dict[str, Path]]:
    """A stream of 10,000 positions and a knowledge base of 300 zones."""
    areas = places.zones(300, random.Random(7))
    least, most = (0, 50), (places.WIDE, 50 + places.HIGH)
    points = np.round(np.random.default_rng(7).uniform(least, most, (10_000, 2)), 5)
    stream, kb = places.write(directory, areas, points)
    return {"S": stream}, {"http://p/kb": kb}


PUSHED = 1000
"""Number of events. Every hundredth begins a partial match, which awaits one in fifty others."""


def pushed(disable: tuple[str, ...]) -> int:
    """Number of answers of an engine that gets pushed events and requests their owners."""
    ns, kind = "http://s.example/ns#", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    shared_cache.cache_clear()
    owners = "".join(f'<{ns}{i}> <{ns}owner> "{i % 7}" .\n' for i in range(PUSHED))
    with serving(owners) as url:
        service = f"SERVICE <{url}> {{ ?xB :owner ?owner }}"
        gpms = {"A": "?xA a :T1 ; :key ?key", "B": f"?xB a :T2 ; :key ?key {service}"}
        text = query("SELECT ?key", "A; B", gpms, seconds=100)
        services = spaseq.ServiceOptions(allow=["127.0.0.1"])
        engine = spaseq.Engine(text, disable=disable, services=services)
        found = 0
        for i in range(PUSHED):
            type_, key = f"<{ns}T{1 if i % 100 == 0 else 2}>", f'"{i * i % 50}"'
            graph = f"<{ns}{i}> {kind} {type_} .\n<{ns}{i}> <{ns}key> {key} ."
            found += len(engine.push("S1", graph, i))
        return found + len(engine.close())


def measured(case: Case, stream: str, runs: int) -> Line:
    """Measure a case with its rule and without, alternating."""
    ways = [work(case, stream, disable) for disable in ((), (case.rule,))]
    seconds: list[list[float]] = [[], []]
    for _ in range(runs + 1):
        rows = []
        for way, spent in zip(ways, seconds, strict=True):
            at = time.process_time()
            rows.append(way())
            spent.append(time.process_time() - at)
        if rows[0] != rows[1]:
            sys.exit(f"{case.rule}: {rows[0]} rows with the rule, {rows[1]} without")
    fast, slow = (median(spent[1:]) for spent in seconds)
    return Line(case.rule, case.name, rows[0], fast, slow)


def lines(stream: str, runs: int) -> Iterator[Line]:
    """All cases."""
    for case in CASES:
        line = measured(case, stream, runs)
        times = f"{line.seconds_with:9.3f} s{line.seconds_without:9.3f} s"
        print(f"{line.rule:20}{line.case:34}{line.rows:>10,}{times}{line.gain:8.2f}", flush=True)
        yield line


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args()
    assert {case.rule for case in CASES} == set(NAMES)
    print(f"{'rule':20}{'case':34}{'rows':>10}{'with':>11}{'without':>11}{'gain':>8}")
    with TemporaryDirectory() as directory:
        generate = Path(__file__).with_name("generate.py")
        arguments = ["synthetic", "--events", str(given.events), "--out", directory]
        subprocess.run([sys.executable, generate, *arguments], check=True)
        write(Path(directory), given.events)
        found = list(lines(f"{directory}/s1.nq", given.runs))
    if given.json is not None:
        rows = [asdict(line) | {"gain": line.gain} for line in found]
        given.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
