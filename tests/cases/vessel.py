"""Expected answers of `streams/vessel`: `SEQ (A, B{3,}, C)`, one vessel at a time."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from .raw import HOUR, Answer, Event, Knowledge, answer, by, read_stream

NS = "http://vessel.example/ns#"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
AIS = "http://vessel.example/stream/ais"


def answers(folder: Path) -> Iterator[Answer]:
    """The answers of query.rq, in no particular order."""
    kb = Knowledge(folder / "kb.ttl")
    kind, label, owner = kb.one(TYPE), kb.one(LABEL), kb.one(f"{NS}owner")
    reports = read_stream(folder / "ais.nq", AIS)
    for vessel, own in by(reports, f"{NS}vessel").items():
        for trip in trips(own, kind):
            left, *way, stop = trip
            yield answer(
                "query",
                [("A", left), *(("B", b) for b in way), ("C", stop)],
                {
                    "vessel": vessel,
                    "name": label[vessel],
                    "ownerName": label[owner[vessel]],
                    "harbourName": label[left.one(f"{NS}zone")],
                    "areaName": label[stop.one(f"{NS}zone")],
                    "speed": way[-1].one(f"{NS}speed"),
                },
            )


def trips(reports: list[Event], kind: dict[str, str]) -> Iterator[list[Event]]:
    """Runs of consecutive reports of one vessel that are a fishing trip."""

    def lies_in(report: Event, area: str) -> bool:
        return any(kind[zone] == f"<{NS}{area}>" for zone in report.facts[f"{NS}zone"])

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
