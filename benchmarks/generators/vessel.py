"""Vessel trajectories: one stream of position reports of fishing boats and other boats.

Each vessel reports every ten minutes. It lies in a harbour, leaves, sails, stops somewhere, and
sails back. A report inside an area names the area in `zone`; a report in open water has no `zone`.
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
    """Speed in tenths of a knot, heading in degrees, and the area, if any."""

    speed: int
    heading: int
    zone: str | None = None


def _course(dice: Dice, heading: int, reports: int) -> list[Report]:
    """Steady reports: the heading moves by at most 4 degrees from one to the next."""
    out = []
    for _ in range(reports):
        heading += dice.whole(-4, 4)
        out.append(Report(dice.whole(75, 105), heading))
    return out


def _trip(dice: Dice, kind: str) -> list[Part[Report]]:
    """A trip from a harbour and back. Headings avoid north, where degrees wrap round."""
    harbour, heading = dice.pick(HARBOURS), dice.whole(60, 140)
    leaving = Report(dice.whole(32, 58), heading, harbour)
    length = {"stops too soon": 2, "takes too long": 18}.get(kind, dice.whole(3, 8))
    way = _course(dice, heading, length)
    if kind == "turns on the way":
        way[2] = way[2]._replace(heading=way[1].heading + 40)
        way[3:] = _course(dice, way[2].heading, length - 3)
    zone = dice.pick(OTHER if kind == "stops at an anchorage" else FISHING)
    stop = Report(dice.whole(0, 4), way[-1].heading, zone)
    counted = [Part(r) for r in (leaving, *way, stop)]
    stay = [Part(Report(dice.whole(0, 14), dice.whole(0, 359), zone), False)] * dice.whole(1, 4)
    back = [Part(r, False) for r in _course(dice, heading + 180, length)]
    return counted + stay + back


def _moored(dice: Dice, harbour: str) -> Report:
    """A report in the harbour: at rest, or sometimes moving."""
    speed = dice.whole(5, 28) if dice.chance(0.2) else 0
    return Report(speed, dice.whole(0, 359), harbour)


class Positions:
    """Writes reports, and keeps each vessel's position in hundred-thousandths of a degree."""

    def __init__(self) -> None:
        self._number = 0
        self._places: dict[int, tuple[int, int]] = {}

    def write(self, time: int, vessel: int, report: Report, mark: Planted | None) -> Generated:
        """One report as an event."""
        self._number += 1
        graph = f"{BASE}report/{self._number}"
        r = f"<{graph}>"
        north, east = self._move(vessel, report)
        triples: list[Triple] = [
            (r, RDF_TYPE, f"<{NS}PositionReport>"),
            (r, f"<{NS}vessel>", f"<{BASE}vessel/{vessel}>"),
            (r, f"<{NS}speed>", decimal(tenths(report.speed))),
            (r, f"<{NS}heading>", integer(report.heading)),
            (r, f"<{NS}north>", integer(north)),
            (r, f"<{NS}east>", integer(east)),
        ]
        if report.zone:
            triples.append((r, f"<{NS}zone>", f"<{BASE}{report.zone}>"))
        return Generated(0, graph, event(r, time, triples, Stamp.INSIDE), mark)

    def _move(self, vessel: int, report: Report) -> tuple[int, int]:
        """Metres north and east of a point on the coast; ten minutes at 0.1 kn are 31 m."""
        north, east = self._places.get(vessel, (500 * vessel, 0))
        way = 31 * report.speed
        quarter, angle = divmod(report.heading % 360, 90)
        ahead, aside = way * (90 - angle) // 90, way * angle // 90
        step = ((ahead, aside), (-aside, ahead), (-ahead, -aside), (aside, -ahead))[quarter]
        self._places[vessel] = north + step[0], east + step[1]
        return self._places[vessel]


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
    """Vessels with name and owner; areas with class and name."""
    rows = [
        f"@prefix : <{NS}> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "",
    ]
    owners = sorted({owner for _, owner in VESSELS})
    for i, owner in enumerate(owners):
        rows.append(f'<{BASE}owner/{i}> a :Company ; rdfs:label "{owner}" .')
    for area, (kind, label) in AREAS.items():
        rows.append(f'<{BASE}{area}> a :{kind} ; rdfs:label "{label}" .')
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
