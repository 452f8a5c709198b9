#!/usr/bin/env python3
"""Speed of reading N-Quads into events, compared with other readers of the same bytes.

    python benchmarks/ingest.py [--events 200000] [--real DIR] [--runs 5] [--json FILE]

The files are:
- a generated stream of five-triple events, in which the time is a sixth quad;
- events in which no term occurs twice, the worst case for a dictionary (*hostile*);
- the first stream as N-Triples;
- with `--real`, all `.nq` files of a directory; each file is a stream.

Each variant runs in a separate process, with the files in the page cache:

rdflib      reads the first 20 000 quads of a file into an rdflib dataset
pyoxigraph  iterates over the quads and keeps none
dictionary  pyoxigraph, and codes for all terms by a Python dict; the ratios are relative to it
delimiters  a kernel that finds the end of each term by 32 bytes at a time and does nothing else:
            no check, no codes, no events; the limit of reading in order
spaseq      events in batches, with times, codes and k; also with two threads; and also for two
            predicates, where other triples are checked but not kept

All quads count, also the times. The table shows medians of the runs after a warm-up run. Seconds
are wall-clock time. *CPU* is the CPU time of the process, which is more reliable if the machine has
other users. *memory* is the growth of the process's peak memory while it reads.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

FEW_QUADS = 20_000
DOT = ord(".")
REFERENCE = "dictionary"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"


@dataclass(frozen=True)
class Line:
    """The measurement of one variant on one file."""

    file: str
    way: str
    quads: int
    bytes: int
    seconds: float
    cpu: float
    memory_mb: float

    @property
    def rate(self) -> float:
        """Quads per second."""
        return self.quads / self.seconds


# --- the files ----------------------------------------------------------------------------------


def write_events(path: Path, events: int) -> None:
    """The generator's synthetic stream."""
    generate = Path(__file__).with_name("generate.py")
    arguments = ["synthetic", "--events", str(events), "--out", "-"]
    with path.open("wb") as file:
        subprocess.run([sys.executable, generate, *arguments], stdout=file, check=True)


def write_hostile(path: Path, events: int) -> None:
    """Events of five triples in which no term occurs twice, except for the graph's IRI."""
    with path.open("w") as file:
        for event in range(events):
            graph = f"<http://h.example/g/{event:x}>"
            for i in range(5 * event, 5 * event + 5):
                s, p = f"<http://h.example/s/{i:x}>", f"<http://h.example/p/{i:x}>"
                file.write(f'{s} {p} "{i * 7 / 8}"^^<{_XSD}double> {graph} .\n')
            file.write(f'{graph} {_TIME} "{event}"^^<{_XSD}long> .\n')


def write_triples(path: Path, quads: Path) -> None:
    """The same quads as N-Triples, six to the event, the time last."""
    with quads.open() as source, path.open("w") as file:
        for line in source:
            terms = line.rsplit(" ", 2)
            file.write(f"{terms[0]} .\n" if _TIME not in line else line)


def files(directory: Path, events: int, real: Path | None) -> Iterator[tuple[str, list[Path]]]:
    """(name, files) of each measurement; writes the missing files."""
    stream, hostile = directory / "events.nq", directory / "hostile.nq"
    write_events(stream, events)
    yield "events.nq", [stream]
    write_hostile(hostile, events // 2)
    yield "hostile.nq", [hostile]
    write_triples(directory / "events.nt", stream)
    yield "events.nt", [directory / "events.nt"]
    if real is not None:
        yield "real", sorted(real.rglob("*.nq"))


# --- the variants -------------------------------------------------------------------------------


def by_rdflib(path: Path) -> int:
    import rdflib

    with path.open("rb") as file:
        head = b"".join(islice(file, FEW_QUADS))
    dataset = rdflib.Dataset()
    dataset.parse(data=head, format="nquads" if path.suffix == ".nq" else "nt11")
    return head.count(b"\n")


def by_pyoxigraph(path: Path) -> int:
    import pyoxigraph

    return sum(1 for _ in pyoxigraph.parse(path=str(path)))


def by_dictionary(path: Path) -> int:
    import pyoxigraph

    codes: dict[object, int] = {}
    code = codes.setdefault
    s, p, o, g = [], [], [], []
    for quad in pyoxigraph.parse(path=str(path)):
        s.append(code(quad.subject, len(codes)))
        p.append(code(quad.predicate, len(codes)))
        o.append(code(quad.object, len(codes)))
        g.append(code(quad.graph_name, len(codes)))
    return len(s)


@cache
def statements() -> Callable[[Any, int], int]:
    """The kernel of `by_delimiters`: the number of statements in the first bytes of a buffer."""
    from spaseq.compiled.decorators import lean_kernel
    from spaseq.rdf.kernels.lines import LF, after_space
    from spaseq.rdf.kernels.tokenizer import term_end
    from spaseq.rdf.kernels.vectors import byte

    @lean_kernel
    def count(buffer: Any, size: int) -> int:
        at = number = 0
        while at < size:
            while byte(buffer, at) != DOT:
                at = after_space(buffer, term_end(buffer, at))
            at += 1
            if byte(buffer, at) == LF:
                at, number = at + 1, number + 1
        return number

    return count


def by_delimiters(path: Path) -> int:
    import numpy as np

    return statements()(np.memmap(path, np.uint8, "r"), path.stat().st_size)


def by_spaseq(path: Path, threads: int = 1, predicates: tuple[str, ...] | None = None) -> int:
    from spaseq.rdf.inputs.stream_options import StreamOptions
    from spaseq.rdf.ranges import read_stream

    options = StreamOptions(
        "http://b.example/stream",
        (str(path),),
        triples_per_event=6,
        threads=threads,
        predicates=predicates,
    )
    bad: list[object] = []
    events = triples = 0
    for batch in read_stream(options, bad.append):
        events += len(batch)
        triples += batch.triples
    assert not bad, bad[0]
    return triples + (events if path.suffix == ".nq" else 0)


WAYS: dict[str, Callable[[Path], int]] = {
    "rdflib": by_rdflib,
    "pyoxigraph": by_pyoxigraph,
    REFERENCE: by_dictionary,
    "delimiters": by_delimiters,
    "spaseq": by_spaseq,
    "spaseq, 2 threads": lambda path: by_spaseq(path, threads=2),
    "spaseq, 2 predicates": lambda path: by_spaseq(
        path, predicates=("http://s.example/ns#key", "http://s.example/ns#value")
    ),
}


def measure(name: str, way: str, paths: list[Path], runs: int) -> Line:
    """Measure one variant in this process."""
    if way.startswith("spaseq"):
        from spaseq.compiled.warming import warm

        warm()  # so that the memory of the kernels does not count
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, cpu = [], []
    for _ in range(runs + 1):
        started, used = time.perf_counter(), time.process_time()
        quads = sum(map(WAYS[way], paths))
        seconds.append(time.perf_counter() - started)
        cpu.append(time.process_time() - used)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    size = sum(path.stat().st_size for path in paths) if way != "rdflib" else 0
    return Line(name, way, quads, size, median(seconds[1:]), median(cpu[1:]), memory)


def measured(name: str, way: str, paths: list[Path], runs: int) -> Line:
    """Measure one variant in a separate process."""
    command = [sys.executable, __file__, "--way", way, "--name", name, "--runs", str(runs)]
    done = subprocess.run([*command, *paths], stdout=subprocess.PIPE, check=True, text=True)
    return Line(**json.loads(done.stdout))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--real", type=Path, help="a directory with .nq files")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the measurements to a file")
    for hidden in ("--way", "--name"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("paths", type=Path, nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        line = measure(options.name, options.way, options.paths, options.runs)
        print(json.dumps(asdict(line)))
        return
    lines: list[Line] = []
    header = ("file", "way", "quads", "seconds", "CPU", "M quads/s", "MB/s", "memory", "ratio")
    print("{:10} {:21} {:>9} {:>8} {:>7} {:>9} {:>7} {:>8} {:>6} CPU ratio".format(*header))
    with TemporaryDirectory() as directory:
        for name, paths in files(Path(directory), options.events, options.real):
            own = [measured(name, way, paths, options.runs) for way in WAYS]
            show(own)
            lines += own
    if options.json:
        options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1) + "\n")


def show(lines: list[Line]) -> None:
    """One file's lines of the table."""
    reference = next(line for line in lines if line.way == REFERENCE)
    for line in lines:
        print(
            f"{line.file:10} {line.way:21} {line.quads:9} {line.seconds:8.3f} "
            f"{line.cpu:7.3f} "
            f"{line.rate / 1e6:9.3f} {line.bytes / line.seconds / 1e6:7.1f} "
            f"{line.memory_mb:5.0f} MB {line.rate / reference.rate:6.2f} "
            f"{reference.cpu / reference.quads * line.quads / line.cpu:9.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
