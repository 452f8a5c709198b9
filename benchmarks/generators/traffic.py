"""Traffic: four streams, one per street of a small network; all sensors report at the same times.

Every five minutes each sensor reports average speed and vehicle count. With several towns, stream
i carries the i-th street of every town, so that a single stream also has events with equal
timestamps. One report in twelve is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from .case import Case, Dice, Generated
from .episodes import Part, Schedule, Script
from .nquads import MADE_BY, OBSERVATION, RDF_TYPE, Stamp, event, integer, milliseconds

BASE = "http://traffic.example/"
NS = f"{BASE}ns#"
START = milliseconds("2024-11-04T06:00:00")
TICK = 300_000

STREETS = ("Mill Street", "Bridge Road", "Market Square", "Station Road")
LIMITS = (50, 50, 30, 40)
LENGTHS = (800, 650, 300, 500)
CONNECTED = ((1,), (2, 3), (3,), (0,))
CHAINS = ((0, 1, 2), (0, 1, 3), (1, 2, 3), (2, 3, 0), (3, 0, 1))

KINDS = (
    "hit",
    "not connected",
    "hit",
    "one after the other",
    "spreads too late",
    "hit",
    "at night",
)


class Moment(NamedTuple):
    """Values of an episode at one time: which streets are jammed, and which slow but nearly empty.

    `counts` are the jammed streets in the match. During an episode every sensor reports.
    """

    jammed: frozenset[int] = frozenset()
    empty: frozenset[int] = frozenset()
    counts: frozenset[int] = frozenset()


def _episode(dice: Dice, kind: str) -> list[Part[Moment]]:
    """Two streets jam at the same time, then a third one; or a near miss of that."""
    first, second, third = (frozenset({s}) for s in dice.pick(CHAINS))
    quiet = [Moment()] * dice.whole(0, 1)
    both, end = first | second, Moment(third, counts=third)
    match kind:
        case "not connected":
            apart = frozenset({0, 2})
            path = [Moment(apart, counts=apart), Moment(frozenset({3}), counts=frozenset({3}))]
        case "one after the other":
            path = [Moment(first, counts=first), Moment(second, counts=second), *quiet, end]
        case "spreads too late":
            path = [Moment(both, counts=both), *[Moment()] * 3, end]
        case "at night":
            path = [Moment(first, second, both), *quiet, end]
        case _:
            ahead = [Moment(first)] * dice.whole(0, 1)
            path = [*ahead, Moment(both, counts=both), *quiet, end]
    return [Part(m, bool(m.counts)) for m in path]


@dataclass(slots=True)
class Town:
    """A network of four streets and its current episode."""

    number: int
    script: Script[Moment] = field(default_factory=Script)


class Sensors:
    """Writes the reports, numbering them by stream."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._numbers = [0] * len(STREETS)

    def report(self, time: int, town: int, street: int, moment: Moment) -> tuple[str, str]:
        """The IRI and the text of one sensor's report."""
        dice, limit = self._dice, LIMITS[street]
        speed, vehicles = dice.whole(limit * 6, limit * 11) // 10, dice.whole(0, 40)
        if street in moment.jammed:
            speed, vehicles = dice.whole(limit // 10, limit * 3 // 10), dice.whole(12, 60)
        elif street in moment.empty:
            speed, vehicles = dice.whole(limit // 10, limit * 3 // 10), dice.whole(0, 6)
        self._numbers[street] += 1
        graph = f"{BASE}report/{street + 1}-{self._numbers[street]}"
        o = f"<{graph}>"
        seconds = LENGTHS[street] * 36 // (10 * max(speed, 1))
        triples = [
            (o, RDF_TYPE, OBSERVATION),
            (o, MADE_BY, f"<{BASE}sensor/{town}-{street + 1}>"),
            (o, f"<{NS}avgSpeed>", integer(speed)),
            (o, f"<{NS}vehicleCount>", integer(vehicles)),
            (o, f"<{NS}travelTime>", integer(seconds)),
        ]
        return graph, event(o, time, triples, Stamp.AFTER)


def events(dice: Dice, keys: int) -> Iterator[Generated]:
    """The reports of `keys` towns, without end."""
    sensors, schedule = Sensors(dice), Schedule(KINDS)
    towns = [Town(number) for number in range(keys)]
    for tick in count():
        for town in towns:
            if not town.script and dice.chance(0.2):
                number, kind = schedule.next()
                town.script.plan(number, kind, "query", _episode(dice, kind))
            yield from _tick(dice, sensors, START + tick * TICK, town)


def _tick(dice: Dice, sensors: Sensors, time: int, town: Town) -> Iterator[Generated]:
    """The reports of one town at one time."""
    planned = bool(town.script)
    noise = frozenset(s for s in range(len(STREETS)) if dice.chance(0.03))
    moment, mark = town.script.next() if planned else (Moment(noise), None)
    for street in range(len(STREETS)):
        if not planned and dice.chance(1 / 12):
            continue
        graph, text = sensors.report(time, town.number, street, moment)
        yield Generated(street, graph, text, mark if street in moment.counts else None)


def knowledge(keys: int) -> str:
    """The street of each sensor; the streets' names, limits and connections."""
    rows = [f"@prefix : <{NS}> .", ""]
    for town in range(keys):
        for s, street in enumerate(STREETS):
            name = street if keys == 1 else f"{street}, Town {town}"
            to = ", ".join(f"<{BASE}street/{town}-{t + 1}>" for t in CONNECTED[s])
            rows += [
                f"<{BASE}sensor/{town}-{s + 1}> a :TrafficSensor ; "
                f":observes <{BASE}street/{town}-{s + 1}> .",
                f'<{BASE}street/{town}-{s + 1}> a :Street ; :name "{name}" ; '
                f":speedLimit {LIMITS[s]} ; :length {LENGTHS[s]} ;",
                f"    :connectedTo {to} .",
            ]
    return "\n".join(rows) + "\n"


CASE = Case(
    "traffic",
    ("sensor-1", "sensor-2", "sensor-3", "sensor-4"),
    events,
    knowledge,
    default_events=560,
    default_keys=1,
)
