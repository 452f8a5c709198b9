"""Many queries over one stream: events per second, memory, start and change, by their number.

    python benchmarks/queries.py --numbers 1 10 100 1000 --ways local pushed spark

`family` are queries that differ in constants only. `families` are fifty families. `rules` differ
in three constants, too: two falls below the price at which a big volume was traded, by company;
each event may be the second and the third step of every rule. `shapes` are all different: the
generator of the oracle draws them over one vocabulary. *few* gives each query one of 200 kinds of
events as a further constant, so that an event concerns five of a thousand
queries; *rare* one of 10,000 kinds, so that a tenth of the events concern one; *many* none, so that
each event concerns each query; *none* a kind that no event has. `--disable` evaluates the queries
separately. Each line of the output is measured in a new process: seconds of CPU time, the workers'
included, of planning and of the run, and the memory that the run takes for each query, with its
solutions and answers; *none* shows what queries take without them. `pushed` pushes a thousand
events at a time; it also adds two queries, of a known shape and of a new one, and has the
milliseconds of each until the next event has been matched.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

import spaseq

XSD = "http://www.w3.org/2001/XMLSchema#"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
WORKLOADS = ("family", "families", "rules", "shapes")
WAYS = ("local", "pushed", "spark")
LARGEST = 100_000
KINDS = {"rare": 10_000, "few": 200, "many": 200, "none": 200}
"""The number of kinds of events, by how many events concern a query."""

COMPANIES = 200
VOLUMES = 1000

START = 1_600_000_000
WARM = 10
"""Queries of the first runs, which are not counted: enough for a family."""
WARM_SHAPES = 100
"""Different queries of the first run: all kernels are loaded for them."""
LINES = 12_000
"""Lines of the stream that the first runs of a family read: too many to be read without kernels."""
PUSHED = 1000
"""Events that are pushed together."""

OTHERS = (
    "several-streams",
    "several-streams-per-GPM",
    "GRAPH",
    "EVENTS",
    "STRICT",
    ",",
    "late-BIND",
)
"""Features that are not drawn: other streams and knowledge; order among all events of a stream;
BINDs, which came later than the measurements."""


def events(workload: str, number: int, kinds: str) -> Iterator[tuple[int, list[str]]]:
    """(time in ms, triples) of events: ten a second, each of one of the kinds.

    They tell the price of one of fifty things; for `rules` a company's price, which changes in
    small steps, and volume; for `shapes` they are what the oracle draws.
    """
    random, prices = Random(1), [100.0] * COMPANIES
    for i in range(number):
        kind = f"<http://e/kind> <http://e/k{random.randrange(KINDS[kinds])}>"
        if workload == "shapes":
            name = "<http://example.org/"
            thing = f"{name}o{random.randrange(50)}>"
            triples = [
                f"{thing} {name}is> {name}{random.choice('ABCDE')}>",
                f'{thing} {name}v> "{random.randrange(4)}"^^<{XSD}integer>',
                f"{thing} {name}k> {name}k{random.randrange(3)}>",
                f'{thing} {name}g> "{random.randrange(2)}"^^<{XSD}integer>',
            ]
        elif workload == "rules":
            company = random.randrange(COMPANIES)
            prices[company] += random.gauss(0, 1)
            thing = f"<http://e/s{company}>"
            triples = [
                f'{thing} <http://e/price> "{prices[company]:.2f}"^^<{XSD}decimal>',
                f'{thing} <http://e/volume> "{random.randrange(VOLUMES)}"^^<{XSD}integer>',
            ]
        else:
            thing = f"<http://e/s{random.randrange(50)}>"
            price = f'"{random.randrange(LARGEST)}"^^<{XSD}integer>'
            triples = [f"{thing} <http://e/price> {price}"]
        yield START * 1000 + i * 100, [*triples, f"{thing} {kind}"]


def stream(workload: str, number: int, kinds: str) -> str:
    """The events as N-Quads."""
    lines = []
    for i, (ms, triples) in enumerate(events(workload, number, kinds)):
        graph = f"<http://e/g{i}>"
        at = datetime.fromtimestamp(ms / 1000, UTC).isoformat()
        lines += [f"{triple} {graph} ." for triple in triples]
        lines.append(f'{graph} <{TIME}> "{at}"^^<{XSD}dateTime> .')
    return "\n".join(lines) + "\n"


def mark(random: Random, kinds: str) -> str:
    """The name of a kind that events have or, with `none`, do not have."""
    return f"{'none' if kinds == 'none' else 'k'}{random.randrange(KINDS[kinds])}"


def query(shape: int, random: Random, kinds: str) -> str:
    """A fall of the price of one thing; the shape sets window, operator and order of prices."""
    width = LARGEST // 5
    kind = "" if kinds == "many" else f":kind :{mark(random, kinds)} ;"
    high, low = LARGEST - random.randrange(width), random.randrange(width)
    fall = random.randrange(LARGEST // 2)
    operator, rises = ";:"[shape % 2], shape // 2 % 2
    first, second = (f"< {low}", f"> {high}") if rises else (f"> {high}", f"< {low}")
    condition = f"?q > ?p + {fall}" if rises else f"?q < ?p - {fall}"
    return f"""PREFIX : <http://e/>
        SELECT ?s ?p ?q WITHIN {10 + shape // 4} SECONDS PARTITION BY (?s)
        FROM STREAM S <http://e/S> WHERE {{ SEQ(A {operator} B)
        DEFINE GPM A ON S {{ ?s {kind} :price ?p FILTER (?p {first}) }}
        DEFINE GPM B ON S {{ ?s {kind} :price ?q FILTER (?q {second} && {condition}) }} }}"""


def rule(random: Random, kinds: str) -> str:
    """A company whose price falls twice after a big volume, each time by so much."""
    kind = "" if kinds == "many" else f":kind :{mark(random, kinds)} ;"
    volume, fall = random.randrange(VOLUMES * 9 // 10, VOLUMES), random.randrange(100, 400) / 100
    return f"""PREFIX : <http://e/>
        SELECT ?s ?p ?q ?r WITHIN 120 SECONDS PARTITION BY (?s)
        FROM STREAM S <http://e/S> WHERE {{ SEQ(A; B; C)
        DEFINE GPM A ON S {{ ?s {kind} :price ?p ; :volume ?v FILTER (?v > {volume}) }}
        DEFINE GPM B ON S {{ ?s {kind} :price ?q FILTER (?q < ?p - {fall}) }}
        DEFINE GPM C ON S {{ ?s {kind} :price ?r FILTER (?r < ?p - {fall + 1:.2f}) }} }}"""


def drawn(number: int, kinds: str) -> list[str]:
    """Queries of the oracle's generator, each perhaps with a kind in all its GPMs."""
    from tests.oracle.choices import seeded
    from tests.oracle.strategies import EVERYTHING, case

    found: list[str] = []
    attempt, random = 0, Random(3)
    while len(found) < number:
        text = case(seeded(f"benchmark:{attempt}"), EVERYTHING.difference(OTHERS)).query
        attempt += 1
        text = text.replace(
            "FROM STREAM S1 <http://example.org/stream/1>", "FROM STREAM S <http://e/S>"
        )
        text = text.replace(" ON S1 {", " ON S {")
        if "S1" in text or "S2" in text or "FROM NAMED" in text or " EVENTS" in text:
            continue
        if kinds != "many":
            kind = f"_:kind <http://e/kind> <http://e/{mark(random, kinds)}> ."
            text = text.replace(" ON S {", f" ON S {{ {kind}")
        found.append(text)
    return found


def queries(workload: str, number: int, kinds: str) -> list[str]:
    """The texts of a workload."""
    if workload == "shapes":
        return drawn(number, kinds)
    random, shapes = Random(7), 1 if workload == "family" else 50
    if workload == "rules":
        return [rule(random, kinds) for _ in range(number)]
    return [query(i % shapes, random, kinds) for i in range(number)]


def peak() -> float:
    """The most memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def first_of(texts: list[str], workload: str) -> list[str]:
    """The queries of the first run, which is not counted."""
    return texts[: WARM_SHAPES if workload == "shapes" else WARM]


def warm(path: Path, workload: str, kinds: str, texts: list[str], **chosen: Any) -> None:
    """The first runs, which load or compile the kernels and start Spark.

    Those of a family on a part of the stream have matches if each event concerns each query. The
    last one reads the whole stream again: a second run of any queries takes a few megabytes more
    than the first, which are not memory for each query.
    """
    part = path.with_suffix(".part.nq")
    with path.open() as stream:
        part.write_text("".join(islice(stream, LINES)))
    first = [(path, first_of(texts, workload))]
    if workload != "shapes":
        like = "rules" if workload == "rules" else "family"
        first += [(part, queries(like, WARM, found)) for found in {kinds, "many"}]
    first.append(first[0])
    for read, some in first:
        for _ in spaseq.run(some, {"S": str(read)}, **chosen):
            pass


def replayed(
    path: Path, workload: str, kinds: str, texts: list[str], way: str, disable: list[str]
) -> dict[str, float]:
    """A bounded run. On Spark its time is that on the clock, as workers go on living."""
    chosen: dict[str, Any] = {"runtime": way} | ({"threads": 1} if way == "local" else {})
    warm(path, workload, kinds, texts, **chosen)
    clock = time.process_time if way == "local" else time.perf_counter
    begin, before = clock(), peak()
    found = spaseq.run(texts, {"S": str(path)}, disable=disable, **chosen)
    planned = clock()
    answers = sum(1 for _ in found)
    done = clock()
    return {
        "plan": planned - begin,
        "run": done - planned,
        "answers": answers,
        "kb": (peak() - before) * 1024 / len(texts),
    }


def pushed(
    path: Path, workload: str, kinds: str, texts: list[str], disable: list[str]
) -> dict[str, float]:
    """An `Engine` that gets the events a thousand at a time, and then two more queries."""
    given = [
        ("S", spaseq.Event("".join(f"{triple} .\n" for triple in triples), ms))
        for ms, triples in events(workload, sum(1 for line in path.open() if TIME in line), kinds)
    ]
    parts = [given[i : i + PUSHED] for i in range(0, len(given), PUSHED)]
    for some in (first_of(texts, workload), queries("family", WARM, "many")):
        first = spaseq.Engine(some)
        for part in parts:
            first.push_many(part)
    gc.collect()  # what the first runs have left
    begin, before = time.process_time(), peak()
    engine = spaseq.Engine(texts, disable=disable)
    planned = time.process_time()
    answers = sum(len(engine.push_many(part)) for part in parts)
    done = time.process_time()
    measured = {"plan": planned - begin, "run": done - planned, "answers": answers}
    measured["kb"] = (peak() - before) * 1024 / len(texts)
    last, after = given[-1][1], given[-1][1].time
    engine.push("S", last.graph, after)
    for name, text in (
        ("known", texts[0] if workload == "shapes" else query(0, Random(8), "few")),
        ("new", query(199, Random(8), "few")),
    ):
        begin = time.process_time()
        engine.push("S", last.graph, after)
        alone, begin = time.process_time() - begin, time.process_time()
        engine.add(text, name=name)
        engine.push("S", last.graph, after)
        measured[name] = 1000 * (time.process_time() - begin - alone)
    return measured


def measure(path: Path, one: list[str], disable: list[str]) -> dict[str, float]:
    """What one line of the output says."""
    workload, number, kind, way = one
    texts = queries(workload, int(number), kind)
    if way == "pushed":
        return pushed(path, workload, kind, texts, disable)
    return replayed(path, workload, kind, texts, way, disable)


def line(m: dict[str, float], given: argparse.Namespace, one: list[str]) -> str:
    """A line of the table."""
    workload, number, kind, way = one
    changes = "".join(f"{m[name]:8.1f}" for name in ("known", "new") if name in m)
    return (
        f"{workload:10}{kind:6}{way:8}{int(number):8,}{m['answers']:10,}{m['plan']:8.2f}"
        f"{m['run']:8.2f}{given.events / m['run']:12,.0f}{m['kb']:9,.1f}{changes}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=80_000)
    parser.add_argument("--numbers", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS, choices=WORKLOADS)
    parser.add_argument("--kinds", nargs="+", default=("rare", "few", "many"), choices=tuple(KINDS))
    parser.add_argument("--ways", nargs="+", default=("local",), choices=WAYS)
    parser.add_argument("--disable", action="store_true", help="run each query by itself")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    disable = ["query-families"] if given.disable else []
    if given.one:
        path, *one = given.one
        print(json.dumps(measure(Path(path), one, disable)))
        return
    print(f"{'workload':10}{'found':6}{'way':8}{'queries':>8}{'answers':>10}{'plan s':>8}"
          f"{'run s':>8}{'events/s':>12}{'KB/query':>9}{'known':>8}{'new ms':>8}")  # fmt: skip
    lines = [
        [w, str(n), k, way]
        for w in given.workloads
        for way in given.ways
        for k in given.kinds
        for n in given.numbers
    ]
    streams = {"shapes": "shapes", "rules": "companies"}  # the others have one stream
    with TemporaryDirectory() as directory:
        for one in lines:
            path = Path(directory) / f"{streams.get(one[0], 'prices')}-{KINDS[one[2]]}.nq"
            if not path.exists():
                path.write_text(stream(one[0], given.events, one[2]))
            command = [sys.executable, __file__, "--one", str(path), *one]
            command += ["--disable"] * given.disable
            process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            print(line(json.loads(process.stdout), given, one), flush=True)


if __name__ == "__main__":
    main()
