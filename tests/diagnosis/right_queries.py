"""Right queries over real streams, which the tables of mistakes alter in one place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from spaseq import Report, why

DATA = Path(os.environ.get("SPASEQ_SHARED", Path(__file__).parents[3] / "shared")) / "data"


@dataclass(frozen=True, slots=True)
class Right:
    """A query with answers, its streams and its knowledge base: files below `DATA`."""

    text: str
    streams: dict[str, str]
    kb: dict[str, str]

    def why(self, old: str = "", new: str = "") -> Report:
        """The report on the query with one change."""
        return why(
            self.changed(old, new),
            {name: str(DATA / path) for name, path in self.streams.items()},
            {iri: str(DATA / path) for iri, path in self.kb.items()},
        )

    def changed(self, old: str, new: str) -> str:
        """The text with `new` in place of the only `old`."""
        assert not old or self.text.count(old) == 1, old
        return self.text.replace(old, new) if old else self.text


SLOW = Right(
    """PREFIX : <http://aarhus.example/>
PREFIX sosa: <http://www.w3.org/ns/sosa/>
SELECT ?street ?v1 ?v2
WITHIN 1 HOURS
FROM STREAM S1 <http://aarhus.example/stream/traffic-183117>
FROM STREAM S2 <http://aarhus.example/stream/parking>
FROM NAMED <http://aarhus.example/kb>
WHERE {
  SEQ(A; P; B)
  DEFINE GPM A ON S1 {
    ?o1 a sosa:Observation ; sosa:madeBySensor ?s ; :avgSpeed ?v1 .
    GRAPH <http://aarhus.example/kb> { ?s a :TrafficSensor ; :street ?street }
    FILTER(?v1 < 25 && ?street = "Silkeborgvej")
  }
  DEFINE GPM P ON S2 {
    ?p sosa:madeBySensor <http://aarhus.example/s/BRUUNS> ; :parkedVehicles ?parked .
    FILTER(?parked > 10)
  }
  DEFINE GPM B ON S1 {
    ?o2 :avgSpeed ?v2 ; :vehicleCount ?n .
    FILTER(?v2 < ?v1)
    FILTER(?n >= 0)
  }
}
""",
    {"S1": "aarhus/traffic-183117.nq", "S2": "aarhus/parking.nq"},
    {"http://aarhus.example/kb": "aarhus/kb.ttl"},
)

CARDS = Right(
    """PREFIX ex: <http://example/>
PREFIX : <http://cards.example/>
SELECT ?card ?a1 ?a2
WITHIN 10 MINUTES
PARTITION BY (?card)
FROM STREAM T <http://cards.example/stream/transactions>
FROM NAMED <http://cards.example/kb>
WHERE {
  SEQ(A; B)
  DEFINE GPM A ON T { ?card ex:amount ?a1 FILTER(?a1 < 5) }
  DEFINE GPM B ON T {
    ?card ex:id ?id ; ex:amount ?a2 .
    GRAPH <http://cards.example/kb> { ?card :issuedBy ?bank . ?bank :country "DK" }
    FILTER(?a2 > 200)
  }
}
""",
    {"T": "cards/transactions.nq"},
    {"http://cards.example/kb": "cards/kb.ttl"},
)

STOCKS = Right(
    """PREFIX : <http://stocks.example/>
SELECT ?t ?c1 ?c2
WITHIN 30 MINUTES
PARTITION BY (?t)
FROM STREAM Bars <http://stocks.example/stream/nasdaq>
WHERE {
  SEQ(X!; A; B+)
  DEFINE GPM X ON Bars { ?x :ticker ?t ; :close ?c0 . FILTER(?c0 > 1000) }
  DEFINE GPM A ON Bars {
    ?a :ticker ?t ; :open ?o1 ; :close ?c1 .
    VALUES ?t { <http://stocks.example/t/MSFT> }
    FILTER(?o1 < ?c1)
  }
  DEFINE GPM B ON Bars {
    { ?b :ticker ?t ; :close ?c2 } UNION { ?b :symbol ?t ; :last ?c2 }
    OPTIONAL { ?b :volume ?v FILTER(?v > 1) }
    FILTER(?c2 > 20)
  }
}
""",
    {"Bars": "stocks/nasdaq.nq"},
    {},
)

RISE = Right(
    """PREFIX : <http://stocks.example/>
SELECT ?t ?c1 ?c3
WITHIN 30 MINUTES
PARTITION BY (?t)
FROM STREAM Bars <http://stocks.example/stream/nasdaq>
WHERE {
  SEQ(A, B{2}; C)
  DEFINE GPM A ON Bars { ?a :ticker ?t ; :close ?c1 ; :volume ?n1 }
  DEFINE GPM B ON Bars { ?b :ticker ?t ; :close ?c2 FILTER(?c2 > COALESCE(PREV(?c2), ?c1)) }
  DEFINE GPM C ON Bars { ?c :ticker ?t ; :close ?c3 ; :volume ?n3 FILTER(?c3 < ?c1) }
  DEFINE GPM U ON Bars { ?u :ticker ?t ; :close ?c4 FILTER(?c4 > 100000) }
}
HAVING (?c3 < 100000)
""",
    {"Bars": "stocks/nasdaq.nq"},
    {},
)

ROAD = Right(
    """PREFIX : <http://aarhus.example/>
PREFIX sosa: <http://www.w3.org/ns/sosa/>
SELECT *
WITHIN 3 HOURS
FROM STREAM S1 <http://aarhus.example/stream/traffic-183117>
FROM STREAM S2 <http://aarhus.example/stream/traffic-183063>
FROM STREAM Parking <http://aarhus.example/stream/parking>
FROM STREAM Weather <http://aarhus.example/stream/weather>
WHERE {
  SEQ(A; (B & C); P; W)
  DEFINE GPM A ON S1 { ?a :avgSpeed ?v1 FILTER(?v1 < 25) }
  DEFINE GPM B ON S1 { ?b :avgSpeed ?v2 ; :vehicleCount ?n2 }
  DEFINE GPM C ON S2 { ?c :avgSpeed ?v3 FILTER(?v3 < 60) }
  DEFINE GPM P ON Parking {
    ?p sosa:madeBySensor <http://aarhus.example/s/SALLING> ; :parkedVehicles ?parked
  }
  DEFINE GPM W ON Weather { ?w :temperature ?degrees FILTER(?degrees > -50) }
  DEFINE GPM N ON Parking { ?q :parkedVehicles ?other }
}
""",
    {
        "S1": "aarhus/traffic-183117.nq",
        "S2": "aarhus/traffic-183063.nq",
        "Parking": "aarhus/parking.nq",
        "Weather": "aarhus/weather.nq",
    },
    {},
)
