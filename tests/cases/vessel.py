"""Expected answers of `streams/vessel`: `SEQ (A, B{3,}, C)`, one vessel at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

from .raw import HOUR, Answer, Event, Knowledge, answer, by, read_stream

NS = "http://vessel.example/ns#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
Areas = dict[str, list[tuple[Decimal, Decimal]]]
AIS = "http://vessel.example/stream/ais"


def answers(folder: Path) -> Iterator[Answer]:
    """The answers of query.rq, in no particular order."""
    kb = Knowledge(folder / "kb.ttl")
    kind, label, owner = kb.one(TYPE), kb.one(LABEL), kb.one(f"{NS}owner")
    areas = {area: numbers(extent) for area, extent in kb.one(f"{NS}extent").items()}
    reports = read_stream(folder / "ais.nq", AIS)
    for vessel, own in by(reports, f"{NS}vessel").items():
        for trip in trips(own, kind, areas):
            left, *way, stop = trip
            yield answer(
                "query",
                [("A", left), *(("B", b) for b in way), ("C", stop)],
                {
                    "vessel": vessel,
                    "name": label[vessel],
                    "ownerName": label[owner[vessel]],
                    "harbourName": label[area_of(left, areas)],
                    "areaName": label[area_of(stop, areas)],
                    "speed": way[-1].one(f"{NS}speed"),
                },
            )


def numbers(term: str) -> list[tuple[Decimal, Decimal]]:
    """The corners of a shape in WKT."""
    found = [Decimal(number) for number in re.findall(r"\d+\.\d+", term)]
    return list(zip(found[::2], found[1::2], strict=True))


def area_of(report: Event, areas: Areas) -> str:
    """The area that a report lies in, "" in open water: a ray to the east crosses it once."""
    ((x, y),) = numbers(report.one(f"{NS}position"))
    for area, corners in areas.items():
        crossed = [
            (a, b)
            for a, b in pairwise(corners)
            if (a[1] > y) != (b[1] > y) and x < a[0] + (y - a[1]) * (b[0] - a[0]) / (b[1] - a[1])
        ]
        if len(crossed) % 2:
            return area
    return ""


def trips(reports: list[Event], kind: dict[str, str], areas: Areas) -> Iterator[list[Event]]:
    """Runs of consecutive reports of one vessel that are a fishing trip."""

    def lies_in(report: Event, area: str) -> bool:
        return kind.get(area_of(report, areas)) == f"<{NS}{area}>"

    for first, a in enumerate(reports):
        if not lies_in(a, "Harbour") or a.number(f"{NS}speed") < Decimal("3.0"):
            continue
        last = first  # the last steady report so far
        while last + 1 < len(reports) and is_steady(reports[last], reports[last + 1]):
            last += 1
            stop = reports[last + 1] if last + 1 < len(reports) else None
            if stop is None or last - first < 3 or stop.time - a.time > 2 * HOUR:
                continue
            if lies_in(stop, "FishingArea") and stop.number(f"{NS}speed") < Decimal("0.5"):
                yield reports[first : last + 2]


def is_steady(before: Event, report: Event) -> bool:
    turn = abs(report.number(f"{NS}heading") - before.number(f"{NS}heading"))
    return Decimal("7.0") <= report.number(f"{NS}speed") <= Decimal("11.0") and turn <= 10
