"""Many lines of NDJSON-LD of several shapes, among which others stand, against a plain loop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from spaseq import thresholds
from spaseq.cli.main import cli
from spaseq.rdf.terms.times import format_time
from tests.rdf.streams import TIME, XSD
from tests.sizes import sizes
from tests.thresholds.forcing import forced

CONTEXT = {"@vocab": "http://e/", "at": {"@id": TIME[1:-1], "@type": f"{XSD}dateTime"}}
THINGS, HIGH = 1000, 95
QUERY = f"""PREFIX : <http://e/>
SELECT ?thing ?x ?y ?note WITHIN 1 SECONDS FROM STREAM S <http://e/s> WHERE {{
  SEQ(A; B)
  DEFINE GPM A ON S {{ ?thing :level ?x FILTER(?x > {HIGH}) }}
  DEFINE GPM B ON S {{ ?thing :level ?y ; :note ?note FILTER(?y > {HIGH}) }}
}}"""

Reading = tuple[str, int, float, str]
"""A thing, the time (ms), the level, a note."""


def lines(count: int) -> Iterator[tuple[str, Reading | None]]:
    """Lines, and the reading that each has, if it is no bad one."""
    dice = Random(5)
    yield json.dumps({"@context": CONTEXT}), None
    for number in range(count):
        thing, at = f"urn:thing:{dice.randrange(THINGS)}", 10 * number
        level: Any = dice.choice([dice.randrange(100), dice.randrange(1000) / 10])
        note = dice.choice(["a b", "", "é", "\U0001f600", "\\", '"', "\u00ff", "\ufffe", "\x7f"])
        node = {"@id": thing, "level": level, "note": note}
        time = {"at": format_time(at)}
        line: Any = {"@id": f"http://e/g{number}", **time, "@graph": [node]}
        match dice.randrange(20):
            case 0 | 1 | 2 | 3:
                line = {**time, **node}
            case 4 | 5 | 6:  # with a blank node
                line = {**node, "of": {"part": dice.randrange(5)}, **time}
            case 7 | 8:
                line = {"@context": CONTEXT, **node, **time}
            case 9:
                line["@graph"].append({"@id": "urn:a", "b": {"@value": "x", "@language": "de"}})
            case 10:
                line = {**time, **node, "level": {"@value": str(level), "@type": f"{XSD}decimal"}}
        text = json.dumps(line, ensure_ascii=dice.random() < 0.5)
        if dice.randrange(50) == 0:
            text = dice.choice(
                ["{" + text, text[:-1], text.replace("level", 'level": x, "level'), "7"]
            )
            yield text, None
        else:
            yield text.replace(f" {level},", f" {level}0,") if level % 1 else text, (
                thing, at, level, note,
            )  # fmt: skip


def expected(readings: list[Reading | None]) -> list[list[Any]]:
    """The answers of a plain loop."""
    last: dict[str, tuple[int, float]] = {}
    found = []
    for thing, at, level, note in filter(None, readings):
        if level > HIGH:
            before, x = last.get(thing, (-10_000, 0.0))
            if at - before <= 1000:
                found.append([f"{thing}", x, level, note])
            last[thing] = at, level
    return found


def answers(path: Path, directory: Path, runtime: str) -> tuple[list[list[Any]], list[int]]:
    """The answers of a run by the command line, and the lines that are bad."""
    query, out, bad = (directory / name for name in ("q.rq", "out.jsonl", "bad.jsonl"))
    query.write_text(QUERY)
    words = ["run", str(query), "--stream", f"<http://e/s>={path}", "--runtime", runtime]
    words += ["--out", str(out), "--format", "jsonl", "--bad", str(bad)]
    result = CliRunner().invoke(cli, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = []
    for text in out.read_text(encoding="utf-8").splitlines():
        own = {name: term["value"] for name, term in json.loads(text)["bindings"].items()}
        found.append([own["thing"], float(own["x"]), float(own["y"]), own["note"]])
    return found, [json.loads(text)["line"] for text in bad.read_text().splitlines()]


def check(directory: Path, count: int, runtime: str) -> int:
    """Compare one run with the loop; gives the number of answers."""
    path = directory / "s.ndjsonld"
    written = [*lines(count)]
    path.write_text(
        "\n".join(text for text, _ in written), encoding="utf-8", errors="surrogatepass"
    )
    found, bad = answers(path, directory, runtime)
    wanted = expected([reading for _, reading in written])
    assert found == wanted
    assert bad == [n for n, (_, reading) in enumerate(written, 1) if reading is None and n > 1]
    return len(wanted)


@sizes(50_000, 100_000)
def test_many_lines_of_a_thousand_things(tmp_path: Path, examples: int) -> None:
    assert check(tmp_path, examples, "local") > 10


@pytest.mark.parametrize("words", ["shape_messages=least", "shape_messages=never"])
def test_some_lines_with_forced_thresholds(tmp_path: Path, words: str) -> None:
    before = thresholds.use(forced(words))
    try:
        check(tmp_path, 4000, "local")
    finally:
        thresholds.use(before)


@pytest.mark.spark
@sizes(50_000, 100_000)
def test_many_lines_on_spark(spark: Any, tmp_path: Path, examples: int) -> None:
    assert check(tmp_path, examples, "spark") > 10
