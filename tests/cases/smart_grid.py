"""Expected answers of `streams/smart-grid`: `SEQ (A; B+, C)`, one home at a time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .raw import HOUR, Answer, Event, Knowledge, after, answer, in_order, next_instant, read_stream

NS = "http://grid.example/ns#"
SENSOR = "http://www.w3.org/ns/sosa/madeBySensor"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
POWER, WEATHER, STORAGE = (
    f"http://grid.example/stream/{name}" for name in ("power", "weather", "storage")
)


def answers(folder: Path) -> Iterator[Answer]:
    """The answers of query.rq, in no particular order."""
    kb = Knowledge(folder / "kb.ttl")
    installed, district = kb.one(f"{NS}installedIn"), kb.one(f"{NS}inDistrict")
    covers, owner, address = kb.one(f"{NS}covers"), kb.one(f"{NS}owner"), kb.one(f"{NS}address")
    power = read_stream(folder / "power.nq", POWER)
    weather = read_stream(folder / "weather.nq", WEATHER)
    storage = read_stream(folder / "storage.nq", STORAGE)
    fuel = [e for e in power if f"<{NS}FuelSource>" in e.facts[TYPE]]
    for home in sorted(district):
        # The home's partition: its own reports of fuel power and storage, its district's weather.
        events = in_order(
            [e for e in fuel if installed[e.one(SENSOR)] == home],
            [e for e in weather if covers[e.one(SENSOR)] == district[home]],
            [e for e in storage if installed[e.one(SENSOR)] == home],
        )
        for a, favourable, c in matches(events):
            trace = [("A", a), *(("B", b) for b in favourable), ("C", c)]
            yield answer(
                "query",
                trace,
                {
                    "home": home,
                    "owner": owner[home],
                    "address": address[home],
                    "fuelPrice": a.one(f"{NS}price"),
                    "irradiance": favourable[-1].one(f"{NS}irradiance"),
                    "storagePrice": c.one(f"{NS}price"),
                },
            )


def matches(events: list[Event]) -> Iterator[tuple[Event, list[Event], Event]]:
    """Expensive fuel, one or more favourable weather reports after it, then storage right after."""
    for a in events:
        if a.stream != POWER or a.double(f"{NS}price") <= 16.0:
            continue
        favourable: list[Event] = []
        for b in after(events, a):
            if b.stream != WEATHER or not is_favourable(b):
                continue
            favourable.append(b)
            for c in next_instant(events, b):
                cheaper = c.stream == STORAGE and c.double(f"{NS}price") < a.double(f"{NS}price")
                if cheaper and c.time - a.time <= HOUR:
                    yield a, list(favourable), c


def is_favourable(report: Event) -> bool:
    return report.double(f"{NS}irradiance") >= 600 or report.double(f"{NS}windSpeed") >= 9.0
