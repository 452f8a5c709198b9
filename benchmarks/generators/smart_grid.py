"""Smart grid: one stream each for fuel power, weather and storage.

Every ten minutes each home reports the price of power from its fuel generator, then each district
reports its weather, then each home reports the price of power from its storage. Sometimes a home
also reports its mains supply, which the query ignores.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from .case import Case, Dice, Generated, Planted
from .episodes import Schedule
from .names import PEOPLE, STREETS
from .nquads import (
    MADE_BY,
    OBSERVATION,
    RDF_TYPE,
    Stamp,
    double,
    event,
    hundredths,
    integer,
    milliseconds,
    tenths,
)

BASE = "http://grid.example/"
NS = f"{BASE}ns#"
START = milliseconds("2024-06-03T08:00:00")
CYCLE = 600_000
HOMES_PER_DISTRICT = 4
POWER, WEATHER, STORAGE = 0, 1, 2
STREAMS = ("power", "weather", "storage")

HIT = "hit"
KINDS = (HIT, "storage is dearer", HIT, "a fuel reading comes between", HIT, "sun comes too late")


class Cycle(NamedTuple):
    """Values of an episode for a home and its district in one cycle; prices in hundredths."""

    fuel: int | None = None  # None: random, as without an episode
    sunny: bool = False
    storage: int | None = None
    interrupted: bool = False  # another fuel reading comes before the storage reports
    counts: frozenset[str] = frozenset()  # which of the three readings belong to the match


class Episode(NamedTuple):
    """The current episode of a district: its home, and the remaining cycles."""

    home: int
    number: int
    kind: str
    cycles: deque[Cycle]

    def mark(self, cycle: Cycle, stream: str) -> Planted | None:
        """The mark of a cycle's event of this stream."""
        if stream not in cycle.counts:
            return None
        return Planted(self.number, self.kind, "query", last=stream == "storage")


def _episode(dice: Dice, home: int, number: int, kind: str) -> Episode:
    fuel = dice.whole(1750, 1950)
    cheap, dear = fuel - dice.whole(50, 300), fuel + dice.whole(10, 200)
    all_three = frozenset(STREAMS)
    match kind:
        case "storage is dearer":
            cycles = [Cycle(fuel, True, dear, counts=all_three)]
        case "a fuel reading comes between":
            cycles = [Cycle(fuel, True, cheap, interrupted=True, counts=all_three)]
        case "sun comes too late":
            cycles = [Cycle(fuel, storage=dear, counts=frozenset({"power"}))]
            cycles += [Cycle(storage=dear)] * 5
            cycles += [Cycle(None, True, cheap, counts=frozenset({"weather", "storage"}))]
        case _:
            waits, suns = dice.whole(0, 1), dice.whole(0, 1)
            cycles = [Cycle(None, False, dear)] * waits
            cycles += [Cycle(None, True, dear, counts=frozenset({"weather"}))] * suns
            cycles += [Cycle(None, True, cheap, counts=frozenset({"weather", "storage"}))]
            cycles[0] = cycles[0]._replace(fuel=fuel, counts=cycles[0].counts | {"power"})
    return Episode(home, number, kind, deque(cycles))


class Readings:
    """Writes the events of the three streams, numbering them."""

    def __init__(self, dice: Dice) -> None:
        self._dice = dice
        self._numbers = [0, 0, 0]

    def _write(
        self,
        stream: int,
        time: int,
        device: str,
        facts: list[tuple[str, str]],
        mark: Planted | None,
    ) -> Generated:
        self._numbers[stream] += 1
        graph = f"{BASE}{STREAMS[stream]}/{self._numbers[stream]}"
        o = f"<{graph}>"
        triples = [(o, RDF_TYPE, OBSERVATION), (o, MADE_BY, f"<{BASE}{device}>")]
        triples += [(o, f"<{NS}{p}>", value) for p, value in facts]
        if stream == POWER:
            source = "MainsSupply" if device.startswith("mains/") else "FuelSource"
            triples.append((triples[2][2], RDF_TYPE, f"<{NS}{source}>"))
        return Generated(stream, graph, event(o, time, triples, Stamp.AFTER), mark)

    def power(self, time: int, home: int, kind: str, price: int, mark: Planted | None) -> Generated:
        """A reading of a home's fuel generator (kind `fuel`) or mains supply (kind `mains`)."""
        facts = [
            ("source", f"<{BASE}source/{kind}-{home}>"),
            ("price", double(hundredths(price))),
        ]
        return self._write(POWER, time, f"{kind}/{home}", facts, mark)

    def weather(self, time: int, district: int, sunny: bool, mark: Planted | None) -> Generated:
        """A district's weather: bright if sunny, and otherwise neither bright nor windy."""
        irradiance = self._dice.whole(600, 900) if sunny else self._dice.whole(80, 590)
        facts = [
            ("irradiance", integer(irradiance)),
            ("windSpeed", double(tenths(self._dice.whole(5, 88)))),
            ("temperature", double(tenths(self._dice.whole(140, 260)))),
        ]
        return self._write(WEATHER, time, f"station/{district}", facts, mark)

    def storage(self, time: int, home: int, price: int, mark: Planted | None) -> Generated:
        """The price of power from a home's storage, and its level of charge."""
        facts = [
            ("price", double(hundredths(price))),
            ("charge", integer(self._dice.whole(20, 100))),
        ]
        return self._write(STORAGE, time, f"battery/{home}", facts, mark)


def events(dice: Dice, keys: int) -> Iterator[Generated]:
    """The events of `keys` homes, without end."""
    readings = Readings(dice)
    schedule = Schedule(KINDS)
    districts = -(-keys // HOMES_PER_DISTRICT)
    active: list[Episode | None] = [None] * districts
    for number in count():
        for d in range(districts):
            if active[d] is None and dice.chance(0.16):
                home = d * HOMES_PER_DISTRICT + dice.whole(0, HOMES_PER_DISTRICT - 1)
                active[d] = _episode(dice, min(home, keys - 1), *schedule.next())
        yield from _cycle(dice, readings, START + number * CYCLE, keys, active)
        active = [e if e and e.cycles else None for e in active]


def _slot(keys: int) -> int:
    """Milliseconds between two homes' reports: whole seconds if all reports fit into a minute."""
    return 60 // keys * 1000 or 60_000 // keys


def _cycle(
    dice: Dice, readings: Readings, at: int, keys: int, active: list[Episode | None]
) -> Iterator[Generated]:
    """The events of one cycle; removes one cycle from every active episode."""
    now = {e.home: (e, e.cycles.popleft()) for e in active if e}
    sunny = {home // HOMES_PER_DISTRICT: (e, c) for home, (e, c) in now.items()}
    slot = _slot(keys)
    for home in range(keys):
        price = dice.whole(1601, 1740) if dice.chance(0.03) else dice.whole(1100, 1590)
        mark = None
        if home in now and now[home][1].fuel is not None:
            e, c = now[home]
            price, mark = c.fuel or price, e.mark(c, "power")
        yield readings.power(at + home * slot, home, "fuel", price, mark)
    for district in range(len(active)):
        bright, mark = dice.chance(0.07), None
        if district in sunny:
            e, c = sunny[district]
            bright, mark = c.sunny, e.mark(c, "weather")
        yield readings.weather(at + 240_000 + district * slot, district, bright, mark)
    yield from _between(dice, readings, at + 300_000, keys, now)
    for home in range(keys):
        price, mark = dice.whole(1600, 2100), None
        if home in now and now[home][1].storage is not None:
            e, c = now[home]
            price, mark = c.storage or price, e.mark(c, "storage")
        yield readings.storage(at + 360_000 + home * slot, home, price, mark)


def _between(
    dice: Dice, readings: Readings, at: int, keys: int, now: dict[int, tuple[Episode, Cycle]]
) -> Iterator[Generated]:
    """Readings after the weather and before the storage."""
    for home in range(keys):
        if home in now and now[home][1].interrupted:
            yield readings.power(
                at + home * _slot(keys), home, "fuel", dice.whole(1100, 1590), None
            )
        elif dice.chance(0.1):
            yield readings.power(
                at + home * _slot(keys), home, "mains", dice.whole(1300, 2000), None
            )


def knowledge(keys: int) -> str:
    """Homes with owner, address, district and devices; the district of each weather station."""
    rows = [
        f"@prefix : <{NS}> .",
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .",
        "",
    ]
    for d in range(-(-keys // HOMES_PER_DISTRICT)):
        rows.append(f'<{BASE}district/{d}> a :District ; rdfs:label "District {d}" .')
        rows.append(f"<{BASE}station/{d}> a :WeatherStation ; :covers <{BASE}district/{d}> .")
    for h in range(keys):
        address = f"{h // len(STREETS) + 2 * h + 1} {STREETS[h % len(STREETS)]}"
        rows += [
            f'<{BASE}home/{h}> a :Home ; :owner "{PEOPLE[h % len(PEOPLE)]}" ;',
            f'    :address "{address}" ; :inDistrict <{BASE}district/{h // HOMES_PER_DISTRICT}> .',
            f"<{BASE}fuel/{h}> a :Meter ; :installedIn <{BASE}home/{h}> .",
            f"<{BASE}mains/{h}> a :Meter ; :installedIn <{BASE}home/{h}> .",
            f"<{BASE}battery/{h}> a :Battery ; :installedIn <{BASE}home/{h}> .",
        ]
    return "\n".join(rows) + "\n"


CASE = Case(
    "smart-grid", STREAMS, events, knowledge, default_events=560, default_keys=8, max_keys=60_000
)
