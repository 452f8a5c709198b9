"""Writes `trades.parquet`: a day of trades of eight companies, with a few sudden falls.

python streams/trades-parquet/generate.py
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SECTORS = {
    "ARGO": "shipping",
    "BOLT": "energy",
    "CALM": None,
    "DUNE": "energy",
    "ECHO": "media",
    "FLUX": "energy",
    "GUST": "shipping",
    "HALO": "media",
}
OPENING = datetime(2026, 1, 5, 9, tzinfo=UTC)
TRADES = 1_200


def trades(seed: int = 19) -> pa.Table:
    """The trades in order of time."""
    chance = random.Random(seed)
    cents = {ticker: chance.randrange(3_000, 20_000) for ticker in SECTORS}
    at, rows = OPENING, []
    for number in range(1, TRADES + 1):
        at += timedelta(milliseconds=chance.randrange(1_000, 40_000))
        ticker = chance.choice([*SECTORS])
        step = chance.gauss(0, 0.004) - (0.04 if chance.random() < 0.012 else 0)
        cents[ticker] = max(100, round(cents[ticker] * (1 + step)))
        volume = 0 if chance.random() < 0.02 else chance.randrange(1, 1_000)
        price = Decimal(cents[ticker]).scaleb(-2)
        rows.append((number, ticker, price, volume, at, SECTORS[ticker]))
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("ticker", pa.dictionary(pa.int32(), pa.string())),
            ("price", pa.decimal128(10, 2)),
            ("volume", pa.int32()),
            ("time", pa.timestamp("ms", "UTC")),
            ("sector", pa.string()),
        ]
    )
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


if __name__ == "__main__":
    pq.write_table(trades(), Path(__file__).with_name("trades.parquet"), row_group_size=400)
