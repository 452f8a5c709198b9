"""CORE's experiments (VLDB 2022, section 5): long sequences, windows, other operators.

The stream is like its stock market: buy and sell events with a name, a price and a volume, 25 ms
apart, so that a window of 10 seconds has 400 events. Fifty names make each kind of event one in a
hundred. As in the paper, the events of an answer are used up, and at most a thousand answers of one
instant are given. CORE reads parsed events from memory; here each run begins with N-Quads text.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.plots.figures import Band, Curve, Figure
from benchmarks.plots.timing import rate

NS = "http://stocks.example/"
NAMES = 50
STEP_MS = 25
WINDOW_S = 10
LENGTHS = (3, 6, 9, 12, 24)
CORE_RANGE = Band("CORE, published", 1e5, 1e6)
CORE_STABLE = Band("CORE, published (order of)", 0.5e6, 2e6)


def write(path: Path, events: int) -> None:
    """Write the stream."""
    dice = random.Random(1)
    start = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)
    double = "<http://www.w3.org/2001/XMLSchema#double>"
    time = "<http://www.w3.org/ns/prov#generatedAtTime>"
    date_time = "<http://www.w3.org/2001/XMLSchema#dateTime>"
    with path.open("w", encoding="utf-8") as file:
        for number in range(events):
            event = f"<{NS}e{number}>"
            at = (start + timedelta(milliseconds=STEP_MS * number)).isoformat(
                timespec="milliseconds"
            )
            kind = dice.choice(("Buy", "Sell"))
            rows = (
                ("kind", f"<{NS}{kind}>"),
                ("name", f"<{NS}n{dice.randrange(NAMES)}>"),
                ("price", f'"{dice.uniform(10, 100):.2f}"^^{double}'),
                ("volume", f'"{dice.randrange(1, 11) * 100}"^^{double}'),
            )
            file.writelines(f"{event} <{NS}{name}> {value} {event} .\n" for name, value in rows)
            file.write(f'{event} {time} "{at}"^^{date_time} .\n')


def gpm(name: str, kind: str, stock: int, price: bool, volume: bool) -> str:
    """The definition of a step: a kind of event of one stock."""
    v = name.lower()
    more = f" ; :price ?p{v} FILTER(?p{v} > 26)" if price else ""
    key = " ; :volume ?volume" if volume else ""
    return f"DEFINE GPM {name} ON S {{ ?{v} :kind :{kind} ; :name :n{stock}{key}{more} }}"


def query(
    sequence: str,
    kinds: dict[str, tuple[str, int]],
    window: int = WINDOW_S,
    *,
    price: bool = False,
    volume: bool = False,
) -> str:
    """A query over the stream."""
    gpms = "\n".join(gpm(name, *kind, price, volume) for name, kind in kinds.items())
    partition = "PARTITION BY (?volume)" if volume else ""
    return f"""PREFIX : <{NS}> SELECT * WITHIN {window} SECONDS {partition}
    AFTER MATCH CONSUME FROM STREAM S <{NS}stream> WHERE {{ SEQ({sequence}) {gpms} }}"""


def long_sequence(steps: int, answers: bool, window: int = WINDOW_S) -> str:
    """The paper's P_n, or its P'_n, which ends with an event that never occurs."""
    names = [chr(ord("A") + number) for number in range(steps)]
    kinds = {name: (("Sell", "Buy")[i % 2], i) for i, name in enumerate(names)}
    if not answers:
        names.append("Never")
        kinds["Never"] = ("Sell", NAMES + 1)
    return query(" : ".join(names), kinds, window)


FOUR = {"A": ("Sell", 0), "B": ("Buy", 1), "C": ("Buy", 2), "D": ("Sell", 3)}
SIX = {**FOUR, "E": ("Sell", 4), "F": ("Sell", 5)}
OPERATORS = {
    "Q1: four steps": query("A : B : C : D", FOUR),
    "Q2: filters": query("A : B : C : D", FOUR, price=True),
    "Q3: partitions": query("A : B : C : D", FOUR, volume=True),
    "Q4: either": query("A : (B | E) : (C | F) : D", SIX),
    "Q5: either, filters": query("A : (B | E) : (C | F) : D", SIX, price=True),
    "Q6: either, partitions": query("A : (B | E) : (C | F) : D", SIX, volume=True),
    "Q7: repeated": query("A : (B | E)+ : D", {k: SIX[k] for k in "ABDE"}),
}


def figures(folder: Path, events: int, rounds: int) -> Iterator[Figure]:
    """Measure all experiments."""
    path = folder / "core.nq"
    write(path, events)

    def measured(queries: list[str]) -> list[float]:
        return [rate(q, {"S": path}, events, rounds)[0] for q in queries]

    yield Figure(
        "core-length",
        "Sequences of n steps",
        "steps",
        "events/s",
        tuple(
            Curve(label, LENGTHS, measured([long_sequence(n, answers) for n in LENGTHS]))
            for label, answers in (("spaseq, with answers", True), ("spaseq, no answers", False))
        ),
        (CORE_RANGE, Band("Esper, SASE, FlinkCEP, n = 3, published", 1e4, 1e5)),
    )
    windows = [WINDOW_S * factor for factor in (1, 2, 3, 4)]
    yield Figure(
        "core-window",
        "Three steps and a fourth that never comes",
        "window in seconds",
        "events/s",
        (Curve("spaseq", windows, measured([long_sequence(3, False, w) for w in windows])),),
        (CORE_STABLE, Band("Esper, FlinkCEP, OpenCEP at 4 T, published (below)", 1e2, 1e3)),
    )
    yield Figure(
        "core-operators",
        "Other operators",
        "query",
        "events/s",
        (Curve("spaseq", tuple(OPERATORS), measured(list(OPERATORS.values()))),),
        (CORE_STABLE,),
    )
