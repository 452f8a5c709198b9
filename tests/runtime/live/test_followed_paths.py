"""Live runs over files that arrive and grow: the answers of a bounded run over the whole files."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runtime.live.live_jobs import QUERY, events, expected_lines, lines
from tests.runtime.live.test_sources_without_places import Command
from tests.sizes import first_of

LIFT = """PREFIX e: <http://example/> PREFIX prov: <http://www.w3.org/ns/prov#>
CONSTRUCT { ?x e:is ?state ; e:row ?_line ; prov:generatedAtTime ?at }
WHERE { BIND(IRI(CONCAT("http://example/", ?thing)) AS ?x)
  BIND(STRDT(?time, <http://www.w3.org/2001/XMLSchema#dateTime>) AS ?at) }"""

ROWS = QUERY.replace("SELECT ?x", "SELECT ?x ?n").replace(
    '?x <http://example/is> "cold"', '?x <http://example/is> "cold" ; <http://example/row> ?n'
)


def rows(count: int, seed: int = 1) -> list[dict[str, str]]:
    """Rows of things that are hot and cold; the last is far ahead."""
    chance, found = random.Random(seed), []
    for number in range(count + 1):
        ms = number * 40 if number < count else 10**6
        at = f"2026-01-01T00:{ms // 60000:02d}:{ms // 1000 % 60:02d}.{ms % 1000:03d}Z"
        thing = f"x{chance.randrange(9)}" if number < count else "end"
        found.append({"thing": thing, "state": chance.choice(("hot", "cold")), "time": at})
    return found


def bounded(directory: Path, query: str, path: Path, *more: str) -> list[str]:
    """The answers of a run to the end of a path."""
    (directory / "bounded.rq").write_text(query)
    command = [sys.executable, "-m", "spaseq", "run", str(directory / "bounded.rq")]
    command += ["--runtime", "local", "--stream", f"S={path}", *more]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return found.replace('"query": "bounded"', '"query": "q"').splitlines()


def keep_open(path: Path) -> None:
    """Date a file an hour ahead: however slow the run is, its last line may still be written."""
    ahead = time.time() + 3600
    os.utime(path, (ahead, ahead))


@pytest.mark.parametrize("kills", [1, pytest.param(12, marks=pytest.mark.thorough)])
def test_kills_over_a_file_that_grows_change_nothing(tmp_path: Path, kills: int) -> None:
    chance, given = random.Random(kills), events(150 * (kills + 1), kills, 400)
    given[40] = b"no RDF\n" + given[40]
    # A line without a graph's name costs the events on both sides of it.
    expected = expected_lines(tmp_path, [*given[:39], *given[41:]])
    data, path, at = b"".join(given), tmp_path / "s.nq", 0
    path.touch()
    run = Command(tmp_path, str(path))
    run.start()
    for _ in range(kills):
        end = min(len(data), at + chance.randrange(12_000, 25_000))
        with path.open("ab") as file:
            while at < end:
                step = min(end, at + chance.randrange(1, 6000))  # in the middle of a line
                file.write(data[at:step])
                file.flush()
                at = step
                time.sleep(chance.uniform(0, 0.1))
        keep_open(path)
        time.sleep(chance.uniform(0, 1.0))
        run.kill()
        run.start()
    with path.open("ab") as file:
        file.write(data[at:])
    run.until(lambda: len(lines(run.out)) >= len(expected))
    time.sleep(0.5)
    run.stop()
    assert lines(run.out) == expected
    bad = [*map(json.loads, lines(run.bad))]
    line = 1 + b"".join(given[:40]).count(b"\n")
    assert {each["file"] for each in bad} == {str(path)}
    assert line in {each["line"] for each in bad}
    assert len(bad) == 3, bad


@pytest.mark.parametrize("form", first_of(["csv", "jsonl"], 0))
def test_lifted_rows_of_files_that_arrive(tmp_path: Path, form: str) -> None:
    given = rows(200)

    def text(row: dict[str, str]) -> str:
        return json.dumps(row) if form == "jsonl" else ",".join(row.values())

    whole = [*([] if form == "jsonl" else ["thing,state,time"]), *map(text, given)]
    (tmp_path / "lift.rq").write_text(LIFT)
    lift = ("--lift", str(tmp_path / "lift.rq"))
    (tmp_path / f"whole.{form}").write_text("\n".join(whole) + "\n")
    (tmp_path / "q.rq").write_text(ROWS)
    expected = bounded(tmp_path, ROWS, tmp_path / f"whole.{form}", *lift)
    assert len(expected) > 20
    (path := tmp_path / "in").mkdir()
    run = Command(tmp_path, str(path), "--lift", f"S={lift[1]}")
    (tmp_path / "q.rq").write_text(ROWS)
    (path / f"s.{form}").write_text("\n".join(whole[:90])[:-7])
    keep_open(path / f"s.{form}")
    run.start()
    run.until(lambda: len(lines(run.out)) > 3)
    run.kill()
    (path / f"s.{form}").write_text("\n".join([*whole[:150], "{no row," * 3, *whole[150:]]) + "\n")
    run.start()
    run.until(lambda: len(lines(run.bad)) > 0 and len(lines(run.out)) >= len(expected))
    run.stop()
    (bad,) = map(json.loads, lines(run.bad))
    assert (bad["file"], bad["line"]) == (str(path / f"s.{form}"), 151)
    assert [_without_row(line) for line in lines(run.out)] == [*map(_without_row, expected)]
    found, wanted = _rows(lines(run.out)), _rows(expected)
    header = form == "csv"
    assert [n - (n > 150 - header) for n in found] == wanted


def _without_row(line: str) -> str:
    value = json.loads(line)
    del value["bindings"]["n"]
    return json.dumps({key: part for key, part in value.items() if key != "id"})


def _rows(texts: list[str]) -> list[int]:
    return [int(json.loads(line)["bindings"]["n"]["value"]) for line in texts]


def test_json_with_a_context_in_a_file_that_grows(tmp_path: Path) -> None:
    context = {
        "is": "http://example/is",
        "at": {
            "@id": "http://www.w3.org/ns/prov#generatedAtTime",
            "@type": "http://www.w3.org/2001/XMLSchema#dateTime",
        },
    }
    (tmp_path / "c.jsonld").write_text(json.dumps({"@context": context}))
    given = [
        json.dumps({"@id": f"http://example/{r['thing']}", "is": r["state"], "at": r["time"]})
        for r in rows(60)
    ]
    path, more = tmp_path / "s.jsonl", ("--context", f"S={tmp_path / 'c.jsonld'}")
    path.write_text("\n".join(given) + "\n")
    expected = bounded(tmp_path, QUERY, path, *more)
    assert len(expected) > 5
    path.write_text("\n".join(given[:30])[:-7])
    keep_open(path)
    run = Command(tmp_path, str(path), *more)
    run.start()
    time.sleep(1.0)
    with path.open("a") as file:
        file.write(given[29][-7:] + "\n" + "\n".join(given[30:]) + "\n")
    run.until(lambda: len(lines(run.out)) >= len(expected))
    run.stop()
    assert lines(run.out) == expected
    assert not lines(run.bad)
