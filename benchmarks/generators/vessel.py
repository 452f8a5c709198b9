"""Vessel trajectories: one stream of position reports of fishing boats and other boats.

Each vessel reports every ten minutes. It lies in a harbour, leaves, sails, stops somewhere, and
sails back. A report has its position as WKT. The areas are hexagons of the knowledge base, far
enough from each other for the way between two to lie in open water.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from .case import Case, Dice, Generated, Planted
from .episodes import Part, Schedule, Script
from .names import VESSELS
from .nquads import (
    RDF_TYPE,
    Stamp,
    Triple,
    decimal,
    event,
    integer,
    milliseconds,
    tenths,
)

BASE = "http://vessel.example/"
NS = f"{BASE}ns#"
START = milliseconds("2024-05-02T03:00:00")
ROUND = 600_000
HARBOURS = ("harbour/north", "harbour/south")
FISHING = ("ground/cod-bank", "ground/herring-deep")
OTHER = ("anchorage/roads", "reserve/seal-rocks")
AREAS = {
    "harbour/north": ("Harbour", "Northport"),
    "harbour/south": ("Harbour", "Southport"),
    "ground/cod-bank": ("FishingArea", "Cod Bank"),
    "ground/herring-deep": ("FishingArea", "Herring Deep"),
    "anchorage/roads": ("Anchorage", "The Roads"),
    "reserve/seal-rocks": ("NatureReserve", "Seal Rocks"),
}
MIDDLES = {
    "harbour/north": (40_000, 520_000),
    "harbour/south": (40_000, 516_000),
    "ground/cod-bank": (47_000, 512_000),
    "ground/herring-deep": (47_000, 516_000),
    "anchorage/roads": (47_000, 520_000),
    "reserve/seal-rocks": (47_000, 524_000),
}
"""Longitude and latitude of the areas' middles, in ten-thousandths of a degree."""
CORNERS = ((200, 0), (120, 150), (-120, 150), (-200, 0), (-120, -150), (120, -150))
"""The corners of an area, seen from its middle."""
WKT = "http://www.opengis.net/ont/geosparql#wktLiteral"

KINDS = (
    "hit",
    "turns on the way",
    "hit",
    "stops at an anchorage",
    "hit",
    "stops too soon",
    "hit",
    "takes too long",
)


class Report(NamedTuple):
    """Speed in tenths of a knot, heading in degrees, and the place, as in `MIDDLES`."""

    speed: int
    heading: int
    place: tuple[int, int] = (0, 0)


def _course(dice: Dice, heading: int, reports: int) -> list[Report]:
    """Steady reports: the heading moves by at most 4 degrees from one to the next."""
    out = []
    for _ in range(reports):
        heading += dice.whole(-4, 4)
        out.append(Report(dice.whole(75, 105), heading))
    return out


def _on_the_way(reports: list[Report], start: str, end: str) -> list[Report]:
    """The reports, at equal distances between two areas."""
    (x, y), (to_x, to_y) = MIDDLES[start], MIDDLES[end]
    parts = len(reports) + 1
    return [
        report._replace(place=(x + (to_x - x) * i // parts, y + (to_y - y) * i // parts))
        for i, report in enumerate(reports, 1)
    ]


def _trip(dice: Dice, kind: str) -> list[Part[Report]]:
    """A trip from a harbour and back. Headings avoid north, where degrees wrap round."""
    harbour, heading = dice.pick(HARBOURS), dice.whole(60, 140)
    leaving = Report(dice.whole(32, 58), heading, MIDDLES[harbour])
    length = {"stops too soon": 2, "takes too long": 18}.get(kind, dice.whole(3, 8))
    way = _course(dice, heading, length)
    if kind == "turns on the way":
        way[2] = way[2]._replace(heading=way[1].heading + 40)
        way[3:] = _course(dice, way[2].heading, length - 3)
    zone = dice.pick(OTHER if kind == "stops at an anchorage" else FISHING)
    there = MIDDLES[zone]
    stop = Report(dice.whole(0, 4), way[-1].heading, there)
    counted = [Part(r) for r in (leaving, *_on_the_way(way, harbour, zone), stop)]
    stay = [Part(Report(dice.whole(0, 14), dice.whole(0, 359), there), False)] * dice.whole(1, 4)
    back = _on_the_way(_course(dice, heading + 180, length), zone, harbour)
    return counted + stay + [Part(r, False) for r in back]


def _moored(dice: Dice, harbour: str) -> Report:
    """A report in the harbour: at rest, or sometimes moving."""
    speed = dice.whole(5, 28) if dice.chance(0.2) else 0
    return Report(speed, dice.whole(0, 359), MIDDLES[harbour])


def _degrees(place: tuple[int, int]) -> str:
    return " ".join(f"{part // 10_000}.{part % 10_000:04}" for part in place)


class Positions:
    """Writes reports; vessels at one place lie some metres apart."""

    def __init__(self) -> None:
        self._number = 0

    def write(self, time: int, vessel: int, report: Report, mark: Planted | None) -> Generated:
        """One report as an event."""
        self._number += 1
        graph = f"{BASE}report/{self._number}"
        r = f"<{graph}>"
        x, y = report.place
        place = _degrees((x + vessel * 37 % 100 - 50, y + self._number * 13 % 60 - 30))
        triples: list[Triple] = [
            (r, RDF_TYPE, f"<{NS}PositionReport>"),
            (r, f"<{NS}vessel>", f"<{BASE}vessel/{vessel}>"),
            (r, f"<{NS}speed>", decimal(tenths(report.speed))),
            (r, f"<{NS}heading>", integer(report.heading)),
            (r, f"<{NS}position>", f'"POINT({place})"^^<{WKT}>'),
        ]
        return Generated(0, graph, event(r, time, triples, Stamp.INSIDE), mark)


def events(dice: Dice, keys: int) -> Iterator[Generated]:
    """The reports of `keys` vessels, without end."""
    positions, schedule = Positions(), Schedule(KINDS)
    scripts: list[Script[Report]] = [Script() for _ in range(keys)]
    slot = 540 // keys * 1000 or 540_000 // keys
    for number in count():
        for vessel, script in enumerate(scripts):
            if not script and dice.chance(0.12):
                episode, kind = schedule.next()
                script.plan(episode, kind, "query", _trip(dice, kind))
            at = START + number * ROUND + vessel * slot
            home = HARBOURS[vessel % len(HARBOURS)]
            report, mark = script.next() if script else (_moored(dice, home), None)
            yield positions.write(at, vessel, report, mark)


def knowledge(keys: int) -> str:
    """Vessels with name and owner; areas with class, name and extent."""
    rows = [
        f"@prefix : <{NS}> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "@prefix geo: <http://www.opengis.net/ont/geosparql#> .",
        "",
    ]
    owners = sorted({owner for _, owner in VESSELS})
    for i, owner in enumerate(owners):
        rows.append(f'<{BASE}owner/{i}> a :Company ; rdfs:label "{owner}" .')
    for area, (kind, label) in AREAS.items():
        x, y = MIDDLES[area]
        corners = [_degrees((x + dx, y + dy)) for dx, dy in (*CORNERS, CORNERS[0])]
        extent = f'"POLYGON(({", ".join(corners)}))"^^geo:wktLiteral'
        rows.append(f'<{BASE}{area}> a :{kind} ; rdfs:label "{label}" ; :extent {extent} .')
    for v in range(keys):
        name, owner = VESSELS[v % len(VESSELS)]
        rows.append(
            f'<{BASE}vessel/{v}> a :Vessel ; rdfs:label "{name}" ; '
            f":owner <{BASE}owner/{owners.index(owner)}> ."
        )
    return "\n".join(rows) + "\n"


CASE = Case(
    "vessel", ("ais",), events, knowledge, default_events=520, default_keys=7, max_keys=540_000
)
