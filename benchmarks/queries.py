"""Many queries over one stream: events per second and memory, by the number of queries.

    python benchmarks/queries.py --events 80000 --numbers 1 10 100 1000

`family` are queries that differ in constants only. `families` are fifty families. Each is measured
twice. *selective* gives each query one of 200 kinds of events as a further constant, so that few
events match; *matching* does not. `--disable` evaluates the queries separately. Each line of the
output is measured in a new process. It has the CPU seconds of planning and of the run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import spaseq

XSD = "http://www.w3.org/2001/XMLSchema#"
TIME = "http://www.w3.org/ns/prov#generatedAtTime"
WORKLOADS = ("family", "families")
LARGEST = 100_000


def stream(events: int) -> str:
    """Events about fifty things, ten a second, each with a price and one of 200 kinds."""
    random, lines = Random(1), []
    for i in range(events):
        at = datetime.fromtimestamp(1_600_000_000 + i / 10, UTC).isoformat()
        graph, thing = f"<http://e/g{i}>", f"<http://e/s{random.randrange(50)}>"
        price = f'"{random.randrange(LARGEST)}"^^<{XSD}integer>'
        lines.append(f"{thing} <http://e/price> {price} {graph} .")
        lines.append(f"{thing} <http://e/kind> <http://e/k{random.randrange(200)}> {graph} .")
        lines.append(f'{graph} <{TIME}> "{at}"^^<{XSD}dateTime> .')
    return "\n".join(lines) + "\n"


def query(shape: int, random: Random, selective: bool) -> str:
    """A fall of the price of one thing; the shape sets window, operator and order of prices."""
    width = LARGEST // 5
    kind = f":kind :k{random.randrange(200)} ;" if selective else ""
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


def queries(workload: str, number: int, selective: bool) -> list[str]:
    """The texts of a workload."""
    random, shapes = Random(7), 1 if workload == "family" else 50
    return [query(i % shapes, random, selective) for i in range(number)]


def measured(path: str, texts: list[str], disable: list[str]) -> dict[str, float]:
    """CPU seconds of planning and of running, answers, and the peak of memory in MB."""
    # The first run loads or compiles the kernels, which is not counted.
    for _ in spaseq.run(texts[0], {"S": path}, runtime="local", threads=1):
        pass
    begin = time.process_time()
    found = spaseq.run(texts, {"S": path}, runtime="local", threads=1, disable=disable)
    planned = time.process_time()
    answers = sum(1 for _ in found)
    done = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"plan": planned - begin, "run": done - planned, "answers": answers, "peak": peak}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=80_000)
    parser.add_argument("--numbers", type=int, nargs="+", default=[1, 10, 100, 1000])
    parser.add_argument("--workloads", nargs="+", default=WORKLOADS, choices=WORKLOADS)
    parser.add_argument("--kinds", nargs="+", default=("few", "many"), choices=("few", "many"))
    parser.add_argument("--disable", action="store_true", help="run each query by itself")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    disable = ["query-families"] if given.disable else []
    if given.one:
        path, workload, number, kind = given.one
        texts = queries(workload, int(number), kind == "few")
        print(json.dumps(measured(path, texts, disable)))
        return
    print(f"{'workload':10}{'answers':8}{'queries':>8}{'found':>10}{'plan s':>8}{'run s':>8}"
          f"{'events/s':>10}{'MB':>7}")  # fmt: skip
    with TemporaryDirectory() as directory:
        path = Path(directory) / "s.nq"
        path.write_text(stream(given.events))
        for workload in given.workloads:
            for kind in given.kinds:
                for number in given.numbers:
                    command = [sys.executable, __file__, "--one", path, workload, str(number), kind]
                    command += ["--disable"] * given.disable
                    one = subprocess.run(command, check=True, capture_output=True, text=True)
                    m = json.loads(one.stdout)
                    print(f"{workload:10}{kind:8}{number:8,}{m['answers']:10,}{m['plan']:8.2f}"
                          f"{m['run']:8.2f}{given.events / m['run']:10,.0f}{m['peak']:7,.0f}",
                          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
