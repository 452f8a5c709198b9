"""An absence that holds for no key, at numbers of keys around what an evaluator keeps at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from spaseq.cli.main import cli
from tests.loops.test_loops import check
from tests.sizes import THOROUGH

NS = "http://t/"
STEP_MS, AFTER_MS = 100, 500
QUERY = f"""PREFIX : <{NS}> SELECT ?c WITHIN 1 SECONDS PARTITION BY (?c)
FROM STREAM S <{NS}s>
WHERE {{ SEQ(A; B!)
  DEFINE GPM A ON S {{ ?c :is :a }}
  DEFINE GPM B ON S {{ ?c :is :b }}
}}"""
TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
LONG = "<http://www.w3.org/2001/XMLSchema#integer>"


def pairs(keys: int, without: frozenset[int]) -> str:
    """An A of each key and, half a second later, its B, but for some keys."""
    events = [(c * STEP_MS, c, "a") for c in range(keys)]
    events += [(c * STEP_MS + AFTER_MS, c, "b") for c in range(keys) if c not in without]
    lines = []
    for t, c, kind in sorted(events):
        graph = f"<{NS}e/{c}{kind}>"
        lines += [f"<{NS}{c}> <{NS}is> <{NS}{kind}> {graph} .", f'{graph} {TIME} "{t}"^^{LONG} .']
    return "\n".join(lines) + "\n"


def silent(keys: int, without: frozenset[int], runtime: str, directory: Path) -> list[int]:
    """The keys without a B, by the command line."""
    (directory / "q.rq").write_text(QUERY)
    (directory / "s.nq").write_text(pairs(keys, without))
    words = ["run", str(directory / "q.rq"), "--stream", f"S={directory / 's.nq'}", "--strict"]
    words += ["--runtime", runtime, "--format", "csv", "--out", str(directory / "found.csv")]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    rows = (directory / "found.csv").read_text().splitlines()[1:]
    return [int(row.split(",")[0].removeprefix(NS)) for row in rows]


KEYS = [256, 257, 300, pytest.param(5_000, marks=THOROUGH)]


@pytest.mark.parametrize("keys", KEYS)
def test_no_key_is_silent(keys: int, tmp_path: Path) -> None:
    assert silent(keys, frozenset(), "local", tmp_path) == []


@pytest.mark.parametrize("keys", KEYS)
def test_some_keys_are_silent(keys: int, tmp_path: Path) -> None:
    without = frozenset(range(3, keys, 50))
    assert silent(keys, without, "local", tmp_path) == sorted(without)


@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.parametrize("keys", [257, 5_000])
def test_the_same_on_spark(spark: Any, keys: int, tmp_path: Path) -> None:
    without = frozenset(range(3, keys, 50))
    assert silent(keys, without, "spark", tmp_path) == sorted(without)


@pytest.mark.thorough
def test_unpaid_orders_of_40000(tmp_path: Path) -> None:
    assert check("unpaid", 80_000, "csv", "jsonl", "local", tmp_path, True) > 2_000


@pytest.mark.thorough
@pytest.mark.spark
def test_unpaid_orders_of_40000_on_spark(spark: Any, tmp_path: Path) -> None:
    assert check("unpaid", 80_000, "csv", "jsonl", "spark", tmp_path, False) > 2_000
