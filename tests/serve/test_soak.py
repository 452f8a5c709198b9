"""A soak of the server; `SPASEQ_SERVE_SOAK_S` makes it longer, `SPASEQ_SERVE_SEED` another one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.serve.soak import QUERIES, soak, without_ids

SECONDS = float(os.environ.get("SPASEQ_SERVE_SOAK_S", "20"))
SEED = int(os.environ.get("SPASEQ_SERVE_SEED", "1"))


@pytest.mark.parametrize(
    "runtime",
    [
        pytest.param("local", marks=pytest.mark.thorough),
        pytest.param("spark", marks=pytest.mark.slow),
    ],
)
def test_kills_of_all_processes_change_no_answer(tmp_path: Path, runtime: str) -> None:
    found = soak(tmp_path, SECONDS, SEED, runtime)
    print({"kills": found.kills, "answers": sum(map(len, found.logged.values()))})
    print({sink: f"{len(own)}, {len(set(own))} different" for sink, own in found.sinks.items()})
    assert found.kills["server"]
    ids = [answer["id"] for name in QUERIES for answer in found.logged[name]]
    assert len(set(ids)) == len(ids) > 100
    for name in QUERIES:
        assert without_ids(found.logged[name]) == found.expected[name], name
    for sink in ("hook", "mqtt"):  # at least once
        assert set(found.sinks[sink]) == set(ids), sink
    for sink in ("nats", "kafka", "table"):
        assert sorted(found.sinks[sink]) == sorted(ids), sink
    lines = [line.partition(" ")[2] for line in found.sinks["file"]]
    expected = [json.dumps(answer) for own in found.expected.values() for answer in own]
    assert sorted(json.dumps(json.loads(line)) for line in lines) == sorted(expected)
