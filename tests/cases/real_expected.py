"""Expected answers of `benchmarks/queries/real` on the real data, by a loop per query.

The data is not part of the repository. It is in the `data` folder of the directory in
SPASEQ_SHARED, by default `../shared` beside the checkout.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

from .expected import ROOT
from .raw import (
    MINUTE,
    Answer,
    Event,
    Knowledge,
    after,
    answer,
    by,
    in_order,
    lexical,
    next_instant,
    read_stream,
)

DATA = Path(os.environ.get("SPASEQ_SHARED", ROOT.parent / "shared")) / "data"
QUERIES = ROOT / "benchmarks" / "queries" / "real"

AARHUS = "http://aarhus.example/"
CARDS = "http://cards.example/"
STOCKS = "http://stocks.example/"
SENSOR = "http://www.w3.org/ns/sosa/madeBySensor"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
CHAIN = ("183117", "183063", "183009", "182955", "182901", "195312")
SPEED, VEHICLES = f"{AARHUS}avgSpeed", f"{AARHUS}vehicleCount"


def traffic(sensor: str) -> str:
    return f"{AARHUS}stream/traffic-{sensor}"


# --- traffic -----------------------------------------------------------------------------------


@cache
def read_traffic(sensor: str) -> list[Event]:
    return read_stream(DATA / "aarhus" / f"traffic-{sensor}.nq", traffic(sensor))


@cache
def read_parking() -> list[Event]:
    return read_stream(DATA / "aarhus" / "parking.nq", PARKING)


def congestion() -> Iterator[Answer]:
    """`SEQ ((A & B); C)` over six streams: two connected segments, then the one after them."""
    kb = Knowledge(DATA / "aarhus" / "kb.ttl")
    road, normal = kb.one(f"{AARHUS}street"), kb.one(f"{AARHUS}normalSpeed")
    to = kb.one(f"{AARHUS}connectedTo")  # a chain: at most one segment follows another

    def is_slow(e: Event) -> bool:
        limit = Decimal("0.75") * Decimal(lexical(normal[e.one(SENSOR)]))
        return e.number(SPEED) < limit and e.number(VEHICLES) >= 5

    slow = in_order(*([e for e in read_traffic(s) if is_slow(e)] for s in CHAIN))
    by_sensor = by(slow, SENSOR)
    for a in slow:
        for b in by_sensor.get(to.get(a.one(SENSOR), ""), []):
            if a.time != b.time:
                continue
            last = max(a, b, key=lambda e: e.instant)
            third = by_sensor.get(to.get(b.one(SENSOR), ""), [])
            c = next(after(third, last), None)
            if c is None or c.time - a.time > 15 * MINUTE:
                continue
            bindings = {}
            for i, e in enumerate((a, b, c), 1):
                bindings[f"sensor{i}"] = e.one(SENSOR)
                bindings[f"road{i}"] = road[e.one(SENSOR)]
                bindings[f"speed{i}"] = e.one(SPEED)
            yield answer("congestion", [("A", a), ("B", b), ("C", c)], bindings)


def spreading() -> Iterator[Answer]:
    """`SEQ (A; B)`: the second segment lies at least two further down the road than the first."""
    kb = Knowledge(DATA / "aarhus" / "kb.ttl")
    road, normal = kb.one(f"{AARHUS}street"), kb.one(f"{AARHUS}normalSpeed")
    metres = {s: int(lexical(d)) for s, d in kb.one(f"{AARHUS}distance").items()}
    chain = [f"<{AARHUS}s/{s}>" for s in CHAIN]

    def is_slow(e: Event) -> bool:
        limit = Decimal("0.75") * Decimal(lexical(normal[e.one(SENSOR)]))
        return e.number(SPEED) < limit and e.number(VEHICLES) >= 5

    slow = in_order(*([e for e in read_traffic(s) if is_slow(e)] for s in CHAIN))
    place = {e.graph: chain.index(e.one(SENSOR)) for e in slow}
    for a in slow:
        ahead = [b for b in after(slow, a) if place[b.graph] >= place[a.graph] + 2]
        for b in ahead:
            if b.instant != ahead[0].instant or b.time - a.time > 15 * MINUTE:
                break
            between = chain[place[a.graph] + 1 : place[b.graph]]
            bindings = {}
            for i, e in enumerate((a, b), 1):
                bindings[f"segment{i}"] = e.one(SENSOR)
                bindings[f"road{i}"] = road[e.one(SENSOR)]
                bindings[f"speed{i}"] = e.one(SPEED)
            bindings["between"] = f'"{len(between)}"^^<{INTEGER}>'
            bindings["metres"] = f'"{sum(metres[s] for s in between)}"^^<{INTEGER}>'
            yield answer("spreading", [("A", a), ("B", b)], bindings)


def slow_in_first(e: Event) -> bool:
    return e.stream == traffic("183063") and e.number(SPEED) < 33 and e.number(VEHICLES) >= 5


def slow_in_second(e: Event) -> bool:
    return e.stream == traffic("183009") and e.number(SPEED) < 36 and e.number(VEHICLES) >= 5


def traffic_sequence() -> Iterator[Answer]:
    """`SEQ (A, B)` over two streams that share timestamps."""
    events = in_order(read_traffic("183063"), read_traffic("183009"))
    for a in filter(slow_in_first, events):
        for b in filter(slow_in_second, next_instant(events, a)):
            if b.time - a.time <= 10 * MINUTE:
                bindings = {"speed1": a.one(SPEED), "speed2": b.one(SPEED)}
                yield answer("traffic-sequence", [("A", a), ("B", b)], bindings)


def traffic_conjunction() -> Iterator[Answer]:
    """`SEQ ((A & B), C)` over two streams that share timestamps; C may be of either."""
    normal = Knowledge(DATA / "aarhus" / "kb.ttl").one(f"{AARHUS}normalSpeed")
    events = in_order(read_traffic("183063"), read_traffic("183009"))
    second = {b.time: b for b in events if slow_in_second(b)}
    for a in filter(slow_in_first, events):
        b = second.get(a.time)
        if b is None:
            continue
        last = max(a, b, key=lambda e: e.instant)
        for c in next_instant(events, last):
            flows = c.number(SPEED) >= Decimal("0.9") * Decimal(lexical(normal[c.one(SENSOR)]))
            if flows and c.time - a.time <= 10 * MINUTE:
                bindings = {"speed1": a.one(SPEED), "speed2": b.one(SPEED)}
                bindings |= {"sensor3": c.one(SENSOR), "speed3": c.one(SPEED)}
                yield answer("traffic-conjunction", [("A", a), ("B", b), ("C", c)], bindings)


# --- parking -----------------------------------------------------------------------------------

PARKING = f"{AARHUS}stream/parking"
PARKED, SPACES = f"{AARHUS}parkedVehicles", f"{AARHUS}totalSpaces"


def fills(e: Event, share: str) -> bool:
    """Whether a garage is filled to at least this share, but not completely."""
    return Decimal(share) * e.number(SPACES) <= e.number(PARKED) < e.number(SPACES)


def parking_sequence() -> Iterator[Answer]:
    """`SEQ (A; B)` in one stream with eight events at every timestamp."""
    street = Knowledge(DATA / "aarhus" / "kb.ttl").one(f"{AARHUS}street")
    events = in_order(read_parking())
    nearly_full = [e for e in events if fills(e, "0.8")]
    for a in nearly_full:
        others = (b for b in after(nearly_full, a) if b.one(SENSOR) != a.one(SENSOR))
        b = next(others, None)
        if b is not None and b.time - a.time <= 31 * MINUTE:
            bindings = {}
            for i, e in enumerate((a, b), 1):
                bindings[f"garage{i}"] = e.one(SENSOR)
                bindings[f"street{i}"] = street[e.one(SENSOR)]
                bindings[f"parked{i}"] = e.one(PARKED)
            yield answer("parking-sequence", [("A", a), ("B", b)], bindings)


def parking_conjunction() -> Iterator[Answer]:
    """`SEQ ((A & B), C)` in one stream with eight events at every timestamp."""
    street = Knowledge(DATA / "aarhus" / "kb.ttl").one(f"{AARHUS}street")
    events = in_order(read_parking())
    filling = [e for e in events if fills(e, "0.7")]
    for a in filling:
        for b in filling:
            if a.time != b.time or not a.one(SENSOR) < b.one(SENSOR):
                continue
            last = max(a, b, key=lambda e: e.instant)
            for c in next_instant(events, last):
                half = Decimal("0.5") * c.number(SPACES)
                if c.number(PARKED) <= half and c.time - a.time <= 31 * MINUTE:
                    bindings = {}
                    for i, e in enumerate((a, b, c), 1):
                        bindings[f"garage{i}"] = e.one(SENSOR)
                        bindings[f"parked{i}"] = e.one(PARKED)
                    bindings["street3"] = street[c.one(SENSOR)]
                    yield answer("parking-conjunction", [("A", a), ("B", b), ("C", c)], bindings)


# --- cards and stocks --------------------------------------------------------------------------

AMOUNT = "http://example/amount"
ID = "http://example/id"


def card_fraud() -> Iterator[Answer]:
    """`SEQ (A, B{2,}; C{3})`, one card at a time."""
    kb = Knowledge(DATA / "cards" / "kb.ttl")
    holder, bank, label = kb.one(f"{CARDS}holder"), kb.one(f"{CARDS}issuedBy"), kb.one(LABEL)
    events = read_stream(DATA / "cards" / "transactions.nq", f"{CARDS}stream/transactions")
    for number, own in by(events, ID).items():
        card = f"<http://example/card#{lexical(number)}>"
        for grown, small in big_after_small(own):
            trace = [("A", grown[0]), *(("B", b) for b in grown[1:]), *(("C", c) for c in small)]
            yield answer(
                "card-fraud",
                trace,
                {
                    "card": card,
                    "holder": holder[card],
                    "bankName": label[bank[card]],
                    "first": grown[0].one(AMOUNT),
                    "big": grown[-1].one(AMOUNT),
                    "small": small[-1].one(AMOUNT),
                },
            )


def big_after_small(own: list[Event]) -> Iterator[tuple[list[Event], list[Event]]]:
    """Runs of at least three consecutive growing amounts, and the next three small ones."""
    for first, a in enumerate(own):
        last = first
        while last + 1 < len(own) and grows(own[last], own[last + 1]):
            last += 1
            big = own[last].double(AMOUNT)
            small = [c for c in own[last + 1 :] if c.double(AMOUNT) <= 0.1 * big][:3]
            enough = last - first >= 2 and len(small) == 3
            if enough and small[-1].time - a.time <= 20 * MINUTE:
                yield own[first : last + 1], small


def grows(before: Event, event: Event) -> bool:
    return event.double(AMOUNT) >= 1.5 * before.double(AMOUNT)


def v_shape() -> Iterator[Answer]:
    """`SEQ (A, B{2,}, C+, D)`, one ticker at a time."""
    company = Knowledge(DATA / "stocks" / "kb.ttl").one(f"{STOCKS}company")
    events = read_stream(DATA / "stocks" / "nasdaq.nq", f"{STOCKS}stream/nasdaq")
    for ticker, bars in by(events, f"{STOCKS}ticker").items():
        price = [bar.double(f"{STOCKS}close") for bar in bars]
        for first in range(len(bars)):
            bottom = first
            while bottom + 1 < len(bars) and price[bottom + 1] < price[bottom]:
                bottom += 1
            if bottom - first < 2 or price[bottom] > 0.998 * price[first]:
                continue
            top = bottom
            while top + 1 < len(bars) and price[top + 1] > price[top] and price[top] < price[first]:
                top += 1
            if price[top] < price[first] or top - bottom < 2:
                continue
            if bars[top].time - bars[first].time > 20 * MINUTE:
                continue
            bindings = {"ticker": ticker, "company": company[ticker]}
            for variable, place in (("start", first), ("bottom", bottom), ("end", top)):
                bindings[variable] = bars[place].one(f"{STOCKS}close")
            gpms = ["A", *"B" * (bottom - first), *"C" * (top - bottom - 1), "D"]
            trace = zip(gpms, bars[first : top + 1], strict=True)
            yield answer("v-shape", trace, bindings)


# --- what to run -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RealCase:
    """A query on real data: its inputs by IRI, and the loop that derives its answers."""

    streams: dict[str, Path]
    kb: dict[str, Path]
    answers: Callable[[], Iterator[Answer]]
    ontology: Path | None = None


def _aarhus(
    loop: Callable[[], Iterator[Answer]],
    *streams: str,
    kb: bool = True,
    ontology: Path | None = None,
) -> RealCase:
    folder = DATA / "aarhus"
    return RealCase(
        {f"{AARHUS}stream/{name}": folder / f"{name}.nq" for name in streams},
        {f"{AARHUS}kb": folder / "kb.ttl"} if kb else {},
        loop,
        ontology,
    )


PAIR = ("traffic-183063", "traffic-183009")

REAL = {
    "congestion": _aarhus(congestion, *(f"traffic-{s}" for s in CHAIN)),
    "spreading": _aarhus(
        spreading, *(f"traffic-{s}" for s in CHAIN), ontology=QUERIES / "spreading.ttl"
    ),
    "traffic-sequence": _aarhus(traffic_sequence, *PAIR, kb=False),
    "traffic-conjunction": _aarhus(traffic_conjunction, *PAIR),
    "parking-sequence": _aarhus(parking_sequence, "parking"),
    "parking-conjunction": _aarhus(parking_conjunction, "parking"),
    "card-fraud": RealCase(
        {f"{CARDS}stream/transactions": DATA / "cards" / "transactions.nq"},
        {f"{CARDS}kb": DATA / "cards" / "kb.ttl"},
        card_fraud,
    ),
    "v-shape": RealCase(
        {f"{STOCKS}stream/nasdaq": DATA / "stocks" / "nasdaq.nq"},
        {f"{STOCKS}kb": DATA / "stocks" / "kb.ttl"},
        v_shape,
    ),
}
"""The queries of `benchmarks/queries/real` by file stem."""


@cache
def real_answers(name: str) -> tuple[Answer, ...]:
    """The answers of a query's loop, which runs once in a process."""
    return tuple(REAL[name].answers())
