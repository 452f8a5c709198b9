#!/usr/bin/env python3
"""Memory: bytes per partial match, and peak memory for streams of growing length from a pipe.

    python benchmarks/memory.py [--nodes EVENTS] [--copies 1,5,20] [--events 1000000] [--json FILE]

*Nodes* measures the sequences of benchmarks/sequence.py on `--nodes` events, or on four windows if
that is more. Sequences with conditions get only solutions of the first step; each begins a partial
match. *Live* is the number of nodes of sets (chain, compact) or of partial matches (registers) in
the window at the end. The *bytes* after it are the size of the kernel's arrays per node, spare room
included. *Solutions* is the number of solutions that the stage keeps besides, and its *bytes* are
the size of their columns per solution.

*Stream* sends a million synthetic events repeatedly through a pipe into
`spaseq run sequence.rq --stream S1=- --runtime local`. Each copy has new IRIs and is a year later.
*Peak* is the peak memory of the process. *Growth* is the difference to the shortest stream. Kernels
are compiled before. `--copies ""` leaves out the streams, and `--nodes 0` leaves out the nodes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from sequence import Input, Scenario, plain

from spaseq.automaton.registers.compiled.run_sequencer import RunSequencer
from spaseq.automaton.sets.compiled.set_sequencer import SetSequencer
from spaseq.stages.sequence import SequenceStage

HERE = Path(__file__).parent
QUERY = HERE / "queries" / "synthetic" / "sequence.rq"

SCENARIOS = (
    *(Scenario("chain", plain(n, ": "), w) for n in (3, 12) for w in (10_000, 1_000_000)),
    *(
        Scenario("compact", plain(n, ": "), w, evaluator="compiled-compact")
        for n in (3, 12)
        for w in (10_000, 1_000_000)
    ),
    *(Scenario("Kleene", "A: B+: C", w) for w in (10_000, 1_000_000)),
    *(
        Scenario("correlated", "A; B; C", w, k)
        for w in (10_000, 1_000_000)
        for k in (1, 100, 10_000)
    ),
)


@dataclass(frozen=True)
class Nodes:
    """The measurement of one sequence."""

    scenario: str
    sequence: str
    window: int
    keys: int
    evaluator: str
    live: int
    node_bytes: float
    solutions: int
    solution_bytes: float


@dataclass(frozen=True)
class Stream:
    """The measurement of one stream length."""

    events: int
    answers: int
    seconds: float
    cpu: float
    peak_mb: float


def nodes(scenario: Scenario, events: int) -> Nodes:
    """Measure a sequence after its window has been full for some time."""
    given = Input(scenario, scenario.evaluator)
    stage = SequenceStage(given.plan)
    for batch in given.batches(max(events, 4 * scenario.window)):
        if given.correlated:
            batch.gpm.fill(0)  # only solutions of the first step; each starts a partial match
        stage.push(batch)
        stage.advance(int(batch.time[-1]))
    sequencer = stage._sequencer
    if isinstance(sequencer, RunSequencer):
        runs = sequencer._runs
        runs.collect(int(batch.time[-1]) - scenario.window)
        live, size = runs.live(), runs.nbytes()
    else:
        assert isinstance(sequencer, SetSequencer)
        live, size = sequencer._state.nodes.used, sequencer._state.nodes.array.nbytes
    store = sequencer._builder.store
    return Nodes(
        scenario.name,
        scenario.sequence,
        scenario.window,
        scenario.keys,
        given.plan.sequence.evaluator.name,
        live,
        size / max(live, 1),
        len(store),
        store.nbytes() / max(len(store), 1),
    )


def all_nodes(events: int) -> Iterator[Nodes]:
    """All sequences, as lines of a table."""
    form = "{:<11} {:<24} {:>9} {:>7} {:>11} {:>6} {:>10} {:>6}"
    print(form.format("nodes", "sequence", "window", "keys", "live", "bytes", "solutions", "bytes"))
    for scenario in SCENARIOS:
        line = nodes(scenario, events)
        sequence = line.sequence if len(line.sequence) < 24 else f"{line.sequence[:21]}..."
        sizes = f"{line.node_bytes:.0f}", f"{line.solutions:,}", f"{line.solution_bytes:.0f}"
        window, live = f"{line.window:,}", f"{line.live:,}"
        print(form.format(line.scenario, sequence, window, line.keys, live, *sizes), flush=True)
        yield line


def pour(file: Path, copies: int) -> None:
    """Write the stream `copies` times to standard output."""
    for copy in range(copies):
        iri, year = b"s.example/e/%d-" % copy, b'"%d-' % (2025 + copy)
        with file.open("rb") as lines:
            while part := b"".join(islice(lines, 60_000)):
                sys.stdout.buffer.write(part.replace(b"s.example/e/", iri).replace(b'"2025-', year))


def stream(file: Path, events: int, copies: int, threads: int) -> Stream:
    """Run the query on a pipe."""
    pouring = [sys.executable, __file__, "--pour", str(file), "--copies", str(copies)]
    out = file.with_name("answers.jsonl")
    query = [sys.executable, "-m", "spaseq", "run", str(QUERY), "--stream", "S1=-"]
    query += ["--runtime", "local", "--threads", str(threads), "--out", str(out)]
    started = time.perf_counter()
    source = subprocess.Popen(pouring, stdout=subprocess.PIPE)
    run = subprocess.Popen(query, stdin=source.stdout, stderr=subprocess.DEVNULL)
    assert source.stdout is not None
    source.stdout.close()
    _, status, usage = os.wait4(run.pid, 0)
    source.wait()
    seconds = time.perf_counter() - started
    if status or source.returncode:
        sys.exit(f"failed with {copies} copies")
    cpu = usage.ru_utime + usage.ru_stime
    answers = out.read_bytes().count(b"\n")
    return Stream(events * copies, answers, seconds, cpu, usage.ru_maxrss / 1024)


def all_streams(events: int, copies: list[int], threads: int) -> Iterator[Stream]:
    """All lengths, as lines of a table."""
    print(f"{'events':>11} {'answers':>8} {'seconds':>8} {'CPU':>7} {'peak':>9} {'growth':>7}")
    least = 0.0
    with TemporaryDirectory() as directory:
        generate = [sys.executable, str(HERE / "generate.py"), "synthetic", "--seed", "1"]
        generate += ["--events", str(events), "--out", directory]
        subprocess.run(generate, check=True)
        subprocess.run([sys.executable, "-m", "spaseq", "warm"], check=True, capture_output=True)
        for count in copies:
            line = stream(Path(directory, "s1.nq"), events, count, threads)
            least = least or line.peak_mb
            print(
                f"{line.events:11,} {line.answers:8,} {line.seconds:8.1f} {line.cpu:7.1f} "
                f"{line.peak_mb:6.0f} MB {line.peak_mb / least - 1:7.1%}",
                flush=True,
            )
            yield line


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=400_000, help="events of each sequence")
    parser.add_argument("--copies", default="1,5,20")
    parser.add_argument("--events", type=int, default=1_000_000, help="events of a copy")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the measurements to a file")
    parser.add_argument("--pour", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pour:
        pour(options.pour, int(options.copies))
        return
    found: dict[str, list[Nodes] | list[Stream]] = {}
    if options.nodes:
        found["nodes"] = list(all_nodes(options.nodes))
    if options.copies:
        copies = [*map(int, options.copies.split(","))]
        found["streams"] = list(all_streams(options.events, copies, options.threads))
    if options.json:
        rows = {name: [asdict(line) for line in lines] for name, lines in found.items()}
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
