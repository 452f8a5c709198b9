"""Queries as people first write them, each with its rows and a plain loop that finds the answers.

The loops follow the language's definition: they share nothing with the engine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

from tests.loops.tables import HEAD, NS, START, Instant, Row, Table

SECOND = 1000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
AFTER_ALL = 2**31
"""k of the close of a window."""


@dataclass(frozen=True)
class Found:
    """An answer: values by variable, first instant, end, and its trace: instant, GPM, event."""

    values: Mapping[str, Any]
    end: Instant
    trace: tuple[tuple[Instant, str, str], ...]

    def order(self) -> tuple[Any, ...]:
        return self.end, self.trace[0][0], self.trace


@dataclass(frozen=True)
class Scenario:
    """Queries by name, the rows that they read, and the answers that a loop finds."""

    queries: Mapping[str, str]
    tables: Callable[[int], list[Table]]
    loop: Callable[[Sequence[Table]], dict[str, list[Found]]]
    variables: tuple[str, ...]
    kb: Callable[[int], str] | None = None


def entry(table: Table, i: int, gpm: str, instants: Sequence[Instant]) -> tuple[Instant, str, str]:
    return instants[i], gpm, table.event(table.rows[i])


def by(table: Table, field: str) -> dict[Any, list[int]]:
    """The places of the rows, in order, by the value of a field."""
    places: dict[Any, list[int]] = defaultdict(list)
    for i, row in enumerate(table.rows):
        places[row[field]].append(i)
    return places


def times(random: Random, count: int, step: int) -> Iterator[int]:
    """Times in ms that rise by `step` on average; some are equal."""
    t = START
    for _ in range(count):
        t += random.choice([0, step // 2, step, step, step * 2])
        yield t


def keys(count: int) -> int:
    """Number of keys for so many rows: 1,000 and more from 10,000 rows on."""
    return max(5, count // 10)


# --- paid or not ----------------------------------------------------------------------------------

UNPAID = f"""{HEAD}SELECT ?order ?customer
WITHIN 1 HOURS
FROM STREAM Orders <http://t/stream/orders>
FROM STREAM Payments <http://t/stream/payments>
WHERE {{ SEQ(Ordered; Paid!)
  DEFINE GPM Ordered ON Orders {{ ?order :hasorder ?order ; :customer ?customer }}
  DEFINE GPM Paid ON Payments {{ ?order :hasorder ?order }}
}}"""


def orders(count: int) -> list[Table]:
    """Orders of customers; 93 % are paid, some of them too late."""
    random = Random("orders")
    made: list[Row] = []
    paid: list[Row] = []
    for i, t in enumerate(times(random, count // 2, 300)):
        made.append({"id": i, "t": t, "order": i, "customer": random.randrange(keys(count))})
        if random.random() < 0.93:
            late = random.choice([0, random.randrange(HOUR), random.randrange(HOUR + HOUR // 20)])
            paid.append({"id": i, "t": t + late, "order": i})
    paid.sort(key=lambda row: row["t"])
    return [
        Table("orders", ("order", "customer"), (), made),
        Table("payments", ("order",), (), paid),
    ]


def unpaid(tables: Sequence[Table]) -> dict[str, list[Found]]:
    made, payments = tables
    paid = dict(zip((row["order"] for row in payments.rows), payments.instants(), strict=True))
    found = []
    instants = made.instants()
    for i, row in enumerate(made.rows):
        close = row["t"] + HOUR
        payment = paid.get(row["order"])
        if payment is None or payment <= instants[i] or payment[0] > close:
            values = {
                "order": f"{NS}order/{row['order']}",
                "customer": f"{NS}customer/{row['customer']}",
            }
            found.append(Found(values, (close, AFTER_ALL), (entry(made, i, "Ordered", instants),)))
    return {"unpaid": found}


# --- three failures, then a success ---------------------------------------------------------------

BREAK_IN = f"""{HEAD}SELECT ?user ?address
WITHIN 10 MINUTES PARTITION BY (?user)
FROM STREAM Logins <http://t/stream/logins>
WHERE {{ SEQ(Failed{{3}}; Entered)
  DEFINE GPM Failed ON Logins {{ ?user :hasuser ?user ; :ok 0 }}
  DEFINE GPM Entered ON Logins {{ ?user :hasuser ?user ; :ok 1 ; :address ?address }}
}}"""


def logins(count: int) -> list[Table]:
    random = Random("logins")
    rows = [
        {
            "id": i,
            "t": t,
            "user": random.randrange(keys(count)),
            "address": random.randrange(50),
            "ok": int(random.random() < 0.4),
        }
        for i, t in enumerate(times(random, count, 20 * MINUTE // (count // 10 + 1) // 5 + 2))
    ]
    return [Table("logins", ("user", "address"), ("ok",), rows)]


def break_ins(tables: Sequence[Table]) -> dict[str, list[Found]]:
    (table,) = tables
    found, instants = [], table.instants()
    for user, places in by(table, "user").items():
        failed = [i for i in places if not table.rows[i]["ok"]]
        entered = [i for i in places if table.rows[i]["ok"]]
        for first in range(len(failed) - 2):
            three = failed[first : first + 3]
            after = next((i for i in entered if i > three[-1]), None)
            if after is None or instants[after][0] - instants[three[0]][0] > 10 * MINUTE:
                continue
            values = {
                "user": f"{NS}user/{user}",
                "address": f"{NS}address/{table.rows[after]['address']}",
            }
            trace = [entry(table, i, "Failed", instants) for i in three]
            trace.append(entry(table, after, "Entered", instants))
            found.append(Found(values, instants[after], tuple(trace)))
    return {"break-in": found}


# --- a rise within ten minutes --------------------------------------------------------------------

RISE = f"""{HEAD}SELECT ?share ?low ?high
WITHIN 10 MINUTES
FROM STREAM Prices <http://t/stream/prices>
WHERE {{ SEQ(Low; High)
  DEFINE GPM Low ON Prices {{ ?share :hasshare ?share ; :price ?low }}
  DEFINE GPM High ON Prices {{ ?share :hasshare ?share ; :price ?high FILTER (?high > ?low * 1.2) }}
}}"""


def prices(count: int) -> list[Table]:
    random = Random("prices")
    now: dict[int, int] = {}
    rows = []
    for i, t in enumerate(times(random, count, 3 * MINUTE // keys(count) + 2)):
        share = random.randrange(keys(count))
        now[share] = max(50, now.get(share, 1000) + random.randint(-100, 100))
        rows.append({"id": i, "t": t, "share": share, "price": now[share]})
    return [Table("prices", ("share",), ("price",), rows)]


def rises(tables: Sequence[Table]) -> dict[str, list[Found]]:
    (table,) = tables
    found, instants = [], table.instants()
    for share, places in by(table, "share").items():
        for n, i in enumerate(places):
            low = table.rows[i]["price"]
            for j in places[n + 1 :]:
                if instants[j][0] - instants[i][0] > 10 * MINUTE:
                    break
                if table.rows[j]["price"] * 10 > low * 12:
                    values = {
                        "share": f"{NS}share/{share}",
                        "low": low,
                        "high": table.rows[j]["price"],
                    }
                    trace = entry(table, i, "Low", instants), entry(table, j, "High", instants)
                    found.append(Found(values, instants[j], trace))
                    break
    return {"rise": found}


# --- bursts by address ----------------------------------------------------------------------------

BURST = f"""{HEAD}SELECT ?address (COUNT(?page) AS ?requests)
WITHIN 10 SECONDS PARTITION BY (?address)
AFTER MATCH SKIP PAST LAST EVENT
FROM STREAM Requests <http://t/stream/requests>
WHERE {{ SEQ(Request{{5}})
  DEFINE GPM Request ON Requests {{ ?address :hasaddress ?address ; :page ?page }}
}}"""


def requests(count: int) -> list[Table]:
    random = Random("requests")
    rows = [
        {
            "id": i,
            "t": t,
            "address": min(random.randrange(keys(count)), random.randrange(keys(count))),
            "page": random.randrange(100),
        }
        for i, t in enumerate(times(random, count, 4 * SECOND // keys(count) + 2))
    ]
    return [Table("requests", ("address", "page"), (), rows)]


def bursts(tables: Sequence[Table]) -> dict[str, list[Found]]:
    (table,) = tables
    found, instants = [], table.instants()
    for address, places in by(table, "address").items():
        free = 0
        for n in range(4, len(places)):
            if n - 4 < free or instants[places[n]][0] - instants[places[n - 4]][0] > 10 * SECOND:
                continue
            free = n + 1
            trace = tuple(entry(table, i, "Request", instants) for i in places[n - 4 : n + 1])
            values = {"address": f"{NS}address/{address}", "requests": 5}
            found.append(Found(values, instants[places[n]], trace))
    return {"burst": found}


# --- a hot room, then its neighbour ---------------------------------------------------------------

SPREAD = f"""{HEAD}SELECT ?one ?other
WITHIN 5 MINUTES
FROM STREAM Readings <http://t/stream/readings>
FROM NAMED :rooms
WHERE {{ SEQ(Hot; Near)
  DEFINE GPM Hot ON Readings {{ ?one :hasroom ?one ; :celsius ?a FILTER (?a >= 40) }}
  DEFINE GPM Near ON Readings {{
    ?other :hasroom ?other ; :celsius ?b FILTER (?b >= 40)
    GRAPH :rooms {{ ?one :beside ?other }} }}
}}"""


def readings(count: int) -> list[Table]:
    random = Random("readings")
    rows = [
        {"id": i, "t": t, "room": random.randrange(keys(count)), "celsius": random.randint(15, 44)}
        for i, t in enumerate(times(random, count, MINUTE // keys(count) + 2))
    ]
    return [Table("readings", ("room",), ("celsius",), rows)]


def neighbours(count: int) -> str:
    """Each room is beside the next one, and beside the one 10 further on."""
    rooms = keys(count)
    return "".join(
        f"<{NS}room/{room}> <{NS}beside> <{NS}room/{(room + d) % rooms}> .\n"
        for room in range(rooms)
        for d in (1, 10 % rooms)
    )


def spreading(tables: Sequence[Table]) -> dict[str, list[Found]]:
    (table,) = tables
    rooms = keys(len(table.rows))
    found, instants = [], table.instants()
    hot = {
        room: [i for i in places if table.rows[i]["celsius"] >= 40]
        for room, places in by(table, "room").items()
    }
    for room, places in hot.items():
        near = sorted({(room + 1) % rooms, (room + 10) % rooms})
        after = sorted(i for other in near for i in hot.get(other, []))
        at = 0
        for i in places:
            while at < len(after) and instants[after[at]] <= instants[i]:
                at += 1
            if at == len(after):
                break
            j = after[at]
            if instants[j][0] - instants[i][0] <= 5 * MINUTE:
                values = {"one": f"{NS}room/{room}", "other": f"{NS}room/{table.rows[j]['room']}"}
                trace = entry(table, i, "Hot", instants), entry(table, j, "Near", instants)
                found.append(Found(values, instants[j], trace))
    return {"spread": found}


# --- a derived stream, counted by a second query --------------------------------------------------

ALARM = f"""{HEAD}REGISTER STREAM <http://t/stream/alarms> AS
CONSTRUCT {{ ?room :alarm ?b }}
WITHIN 2 MINUTES PARTITION BY (?room)
FROM STREAM Readings <http://t/stream/readings>
WHERE {{ SEQ(Warm, Warmer)
  DEFINE GPM Warm ON Readings {{ ?room :hasroom ?room ; :celsius ?a }}
  DEFINE GPM Warmer ON Readings {{ ?room :hasroom ?room ; :celsius ?b FILTER (?b > ?a + 5) }}
}}"""

ALARMS = f"""{HEAD}SELECT ?room (COUNT(?celsius) AS ?alarms) (MAX(?celsius) AS ?most)
WITHIN 10 MINUTES PARTITION BY (?room)
FROM STREAM Alarms <http://t/stream/alarms>
WHERE {{ SEQ(Alarm{{3}})
  DEFINE GPM Alarm ON Alarms {{ ?room :alarm ?celsius }}
}}"""


def alarms(tables: Sequence[Table]) -> dict[str, list[Found]]:
    (table,) = tables
    first, instants = [], table.instants()
    for room, places in by(table, "room").items():
        for i, j in pairwise(places):
            near = instants[j][0] - instants[i][0] <= 2 * MINUTE
            if near and table.rows[j]["celsius"] > table.rows[i]["celsius"] + 5:
                trace = entry(table, i, "Warm", instants), entry(table, j, "Warmer", instants)
                values = {"room": f"{NS}room/{room}", "celsius": table.rows[j]["celsius"]}
                first.append(Found(values, instants[j], trace))
    first.sort(key=Found.order)
    derived = [{"id": n, "t": a.end[0], **a.values} for n, a in enumerate(first)]
    stream = Table("alarms", ("room",), ("celsius",), derived)
    found, later = [], stream.instants()
    for room, places in by(stream, "room").items():
        for n in range(len(places) - 2):
            three = places[n : n + 3]
            if later[three[2]][0] - later[three[0]][0] <= 10 * MINUTE:
                most = max(derived[i]["celsius"] for i in three)
                counted = tuple((later[i], "Alarm", "") for i in three)
                values = {"room": room, "alarms": 3, "most": most}
                found.append(Found(values, later[three[2]], counted))
    return {"alarm": first, "alarms": found}


# --- a run above a level, with its average --------------------------------------------------------

RUN = f"""{HEAD}SELECT ?sensor (COUNT(?v) AS ?readings) (AVG(?v) AS ?mean)
WITHIN 1 HOURS PARTITION BY (?sensor)
FROM STREAM Values <http://t/stream/values>
WHERE {{ SEQ(Below, Above{{3,}}, After)
  DEFINE GPM Below ON Values {{ ?sensor :hassensor ?sensor ; :value ?w FILTER (?w <= 80) }}
  DEFINE GPM Above ON Values {{ ?sensor :hassensor ?sensor ; :value ?v FILTER (?v > 80) }}
  DEFINE GPM After ON Values {{ ?sensor :hassensor ?sensor ; :value ?x FILTER (?x <= 80) }}
}}
HAVING (AVG(?v) > 88)"""


def values(count: int) -> list[Table]:
    random = Random("values")
    high: dict[int, bool] = {}
    rows = []
    for i, t in enumerate(times(random, count, 6 * MINUTE // keys(count) + 2)):
        sensor = random.randrange(keys(count))
        high[sensor] = high.get(sensor, False) ^ (random.random() < 0.3)
        value = random.randint(81, 100) if high[sensor] else random.randint(20, 80)
        rows.append({"id": i, "t": t, "sensor": sensor, "value": value})
    return [Table("values", ("sensor",), ("value",), rows)]


def runs(tables: Sequence[Table]) -> dict[str, list[Found]]:
    (table,) = tables
    found, instants = [], table.instants()
    for sensor, places in by(table, "sensor").items():
        low = [n for n, i in enumerate(places) if table.rows[i]["value"] <= 80]
        for start, end in pairwise(low):
            inside = places[start + 1 : end]
            span = instants[places[end]][0] - instants[places[start]][0]
            total = sum(table.rows[i]["value"] for i in inside)
            if len(inside) < 3 or span > HOUR or total <= 88 * len(inside):
                continue
            names = ["Below", *["Above"] * len(inside), "After"]
            trace = tuple(
                entry(table, i, name, instants)
                for i, name in zip(places[start : end + 1], names, strict=True)
            )
            shown = {
                "sensor": f"{NS}sensor/{sensor}",
                "readings": len(inside),
                "mean": total / len(inside),
            }
            found.append(Found(shown, instants[places[end]], trace))
    return {"run": found}


SCENARIOS = {
    "unpaid": Scenario({"unpaid": UNPAID}, orders, unpaid, ("order", "customer")),
    "break-in": Scenario({"break-in": BREAK_IN}, logins, break_ins, ("user", "address")),
    "rise": Scenario({"rise": RISE}, prices, rises, ("share", "low", "high")),
    "burst": Scenario({"burst": BURST}, requests, bursts, ("address", "requests")),
    "spread": Scenario({"spread": SPREAD}, readings, spreading, ("one", "other"), neighbours),
    "alarms": Scenario(
        {"alarm": ALARM, "alarms": ALARMS}, readings, alarms, ("room", "alarms", "most")
    ),
    "run": Scenario({"run": RUN}, values, runs, ("sensor", "readings", "mean")),
}
