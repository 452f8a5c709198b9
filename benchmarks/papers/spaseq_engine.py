"""SPAseq's experiments (section 8) on generated bars of stocks: window, operators, KB, size.

The paper's stock market is replaced by the stream of `streams/stocks/` at other sizes, its V-shape
by one with as many steps as asked for. Its text gives no rates, only how they change: costs grow
with the window for skip-till-next and hardly for strict contiguity, hardly with the number of
steps, and less than linearly with the knowledge base.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from benchmarks.plots.figures import Curve, Figure
from benchmarks.plots.timing import rate

NS = "http://stocks.example/ns#"
KB = "http://stocks.example/kb"
WINDOWS_MIN = (10, 20, 30, 40, 60)
STEPS = (3, 4, 5, 6, 7)
KB_TRIPLES = (10_000, 100_000, 1_000_000)
STRATEGIES = {"strict contiguity": ", ", "skip till next": "; "}


def stocks(folder: Path, events: int) -> Path:
    """The generated stream."""
    program = Path(__file__).parents[1] / "generate.py"
    subprocess.run(
        [sys.executable, program, "stocks", "--events", str(events), "--out", folder], check=True
    )
    return folder / "bars.nq"


def falling(
    steps: int, operator: str, window: int, *, join: bool = False, loop: bool = False
) -> str:
    """A price that falls `steps` - 1 times; with `loop`, in a repeated step."""
    known = f"GRAPH <{KB}> {{ ?ticker :company ?company }}" if join else ""
    gpms = [f"DEFINE GPM A ON S {{ ?a :ticker ?ticker ; :close ?pa . {known} }}"]
    names = "ABCDEFG"[:steps]
    for before, name in pairwise(names):
        p, q = f"?p{before.lower()}", f"?p{name.lower()}"
        gpms.append(
            f"DEFINE GPM {name} ON S {{ ?{name.lower()} :ticker ?ticker ; :close {q} "
            f"FILTER({q} < {p}) }}"
        )
    sequence = operator.join(names)
    if loop:
        sequence = sequence.replace("B", "B+", 1)
    return f"""PREFIX : <{NS}> SELECT ?ticker ?pa WITHIN {window} MINUTES PARTITION BY (?ticker)
    FROM STREAM S <http://stocks.example/stream/bars> {f"FROM NAMED <{KB}>" if join else ""}
    WHERE {{ SEQ({sequence}) {" ".join(gpms)} }}"""


def knowledge(path: Path, triples: int) -> Path:
    """A knowledge base: the tickers' companies, and as many others as asked for."""
    known = path.parent / "kb.ttl"
    with path.open("w", encoding="utf-8") as file:
        file.write(known.read_text(encoding="utf-8"))
        for number in range(triples // 4):
            thing = f"<http://stocks.example/ticker/X{number}>"
            for name in ("company", "address", "url", "phone"):
                file.write(f'{thing} <{NS}{name}> "{name} {number}" .\n')
    return path


def figures(folder: Path, events: int, rounds: int) -> Iterator[Figure]:
    """Measure all experiments."""
    path = stocks(folder, events)

    def measured(text: str, kb: dict[str, Path] | None = None) -> float:
        return rate(text, {"S": path}, events, rounds, kb)[0]

    yield Figure(
        "spaseq-window",
        "Three steps by window",
        "window in minutes",
        "events/s",
        [
            Curve(label, WINDOWS_MIN, [measured(falling(3, op, w, loop=loop)) for w in WINDOWS_MIN])
            for label, op, loop in (
                *((label, op, False) for label, op in STRATEGIES.items()),
                ("strict contiguity, B+", ", ", True),
            )
        ],
    )
    yield Figure(
        "spaseq-steps",
        "Number of steps, window of 40 minutes",
        "steps",
        "events/s",
        [
            Curve(label, STEPS, [measured(falling(n, op, 40)) for n in STEPS])
            for label, op in STRATEGIES.items()
        ],
    )
    yield Figure(
        "spaseq-kb",
        "Size of the knowledge base, three steps",
        "triples",
        "events/s",
        [
            Curve(
                label,
                KB_TRIPLES,
                [
                    measured(
                        falling(3, op, 40, join=True), {KB: knowledge(folder / f"kb{n}.ttl", n)}
                    )
                    for n in KB_TRIPLES
                ],
            )
            for label, op in STRATEGIES.items()
        ],
        log_x=True,
    )
    sizes = [events // 16, events // 4, events]
    rates = []
    for size in sizes:
        part = stocks(folder / str(size), size)
        rates.append(rate(falling(3, "; ", 40), {"S": part}, size, rounds)[0])
    yield Figure(
        "spaseq-size",
        "Length of the stream, three steps, skip till next",
        "events",
        "events/s",
        [Curve("spaseq", sizes, rates)],
        log_x=True,
    )
