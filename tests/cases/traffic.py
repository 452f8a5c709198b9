"""Expected answers of `streams/traffic`: `SEQ ((A & B); C)` and, entailed, `SEQ (A; B)`."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from .raw import MINUTE, Answer, Event, Knowledge, after, answer, in_order, lexical, read_stream

NS = "http://traffic.example/ns#"
SENSOR = "http://www.w3.org/ns/sosa/madeBySensor"


def answers(folder: Path) -> Iterator[Answer]:
    """The answers of query.rq and of near.rq, in no particular order."""
    kb = Knowledge(folder / "kb.ttl")
    observes, name, limit = kb.one(f"{NS}observes"), kb.one(f"{NS}name"), kb.one(f"{NS}speedLimit")
    connected = set(kb.all(f"{NS}connectedTo"))
    streams = [
        read_stream(folder / f"sensor-{i}.nq", f"http://traffic.example/stream/sensor-{i}")
        for i in (1, 2, 3, 4)
    ]

    def street(report: Event) -> str:
        return observes[report.one(SENSOR)]

    def is_jam(report: Event) -> bool:
        allowed = Decimal(lexical(limit[street(report)]))
        slow = report.number(f"{NS}avgSpeed") < Decimal("0.4") * allowed
        return slow and report.number(f"{NS}vehicleCount") >= 10

    jams = in_order(*([e for e in stream if is_jam(e)] for stream in streams))
    for a in jams:
        for b in jams:
            if a.time != b.time or (street(a), street(b)) not in connected:
                continue
            for beyond in [to for by, to in connected if by == street(b)]:
                last = max(a, b, key=lambda e: e.instant)
                c = next((e for e in after(jams, last) if street(e) == beyond), None)
                if c and c.time - a.time <= 15 * MINUTE:
                    bindings = {}
                    for i, report in enumerate((a, b, c), 1):
                        bindings[f"name{i}"] = name[street(report)]
                        bindings[f"speed{i}"] = report.one(f"{NS}avgSpeed")
                    yield answer("query", [("A", a), ("B", b), ("C", c)], bindings)

    def is_heavy(report: Event) -> bool:
        return report.number(f"{NS}avgSpeed") < 10 and report.number(f"{NS}vehicleCount") >= 30

    heavy = in_order(*([e for e in stream if is_heavy(e)] for stream in streams))
    for a in heavy:
        for near in [to for by, to in connected if by == street(a)]:
            b = next((e for e in after(heavy, a) if street(e) == near), None)
            if b and b.time - a.time <= 10 * MINUTE:
                bindings = {}
                for i, report in enumerate((a, b), 1):
                    bindings[f"street{i}"] = name[street(report)]
                    bindings[f"speed{i}"] = report.one(f"{NS}avgSpeed")
                yield answer("near", [("A", a), ("B", b)], bindings)
