"""docs/architecture.md leads to the lines that it names, and every page names files that exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from spaseq import thresholds
from tests.docs.pages import README, ROOT, blocks

PACKAGE = ROOT / "spaseq"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
PATHS = [path.as_posix() for path in PACKAGE.rglob("*")]
ROOMS = sorted(PACKAGE.rglob("README.md"))
MAPS = [ROOT / "docs" / f"{name}.md" for name in ("architecture", "contributing", "one-flow")]
_STEP = re.compile(r"^\| \d+ \| `([\w/]+\.py)` \| `([\w.]+)` \| (.*) \|$", re.MULTILINE)
_FILE = re.compile(r"`((?:[\w.-]+/)*[\w.-]+\.py|(?:\w+/)+\w*)`")

MANY = {thresholds.VARIABLE: "rows_as_events=0"}
"""The stream has few events, which take the way of many."""

_TRACE = """
import json, sys, threading
from pathlib import Path
import spaseq
from spaseq.cli import main

root, seen = str(Path(spaseq.__file__).parent) + "/", {}

def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root):
        seen[code.co_filename.removeprefix(root), code.co_qualname] = None

def local():
    given = "run slower.rq --stream S1=loops.nq --kb kb.ttl --runtime local --out out.jsonl"
    try:
        main(given.split())
    except SystemExit as end:
        assert not end.code

event = (
    "<http://example/o> <http://example/road> <http://example/r1> .\\n"
    '<http://example/o> <http://example/speed> "{}"^^<http://www.w3.org/2001/XMLSchema#integer> .'
).format

def pushed():
    engine = spaseq.Engine(Path("slower.rq"), kb={"http://example/kb": "kb.ttl"})
    for time, speed in (0, 28), (60_000, 20):
        engine.push("S1", event(speed), time)
    assert len(engine.advance(60_000)) == 1

def released():
    of = "{{ ?o :road ?road ; :speed ?{0} FILTER (?{0} {1}) }}".format
    engine = spaseq.Engine(
        "PREFIX : <http://example/> SELECT ?road WITHIN 5 MINUTES PARTITION BY (?road) "
        "FROM STREAM S1 <http://example/s> WHERE { SEQ (A; B!) "
        f"DEFINE GPM A ON S1 {of('a', '< 30')} DEFINE GPM B ON S1 {of('b', '> ?a')} }}"
    )
    engine.push("S1", event(28), 0)
    assert not engine.advance(60_000)
    seen.clear()
    assert len(engine.advance(300_001)) == 1

threading.setprofile(note)
sys.setprofile(note)
globals()[sys.argv[1]]()
sys.setprofile(None)
threading.setprofile(None)
Path("calls.json").write_text(json.dumps([*seen]))
"""


def _ways() -> dict[str, list[tuple[str, str, str]]]:
    """The steps of each way: file, function and remark."""
    first, _, second = PAGE.partition("The same event, given to `Engine.push`")
    second, _, third = second.partition("A match that ends in a negation")
    ways = {"local": first, "pushed": second, "released": third}
    return {way: _STEP.findall(text) for way, text in ways.items()}


@pytest.mark.parametrize("way", ["local", "pushed", "released"])
def test_the_way_of_one_event(way: str, tmp_path: Path) -> None:
    for block in blocks(README):
        if block.title in ("slower.rq", "kb.ttl", "loops.trig"):
            (tmp_path / block.title).write_text(block.text, "utf-8")
    _write_quads(tmp_path / "loops.trig", tmp_path / "loops.nq")
    subprocess.run(
        [sys.executable, "-c", _TRACE, way],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "SPASEQ_KERNELS": "interpreted"} | MANY,
        check=True,
        timeout=300,
    )
    if way == "local":
        assert len((tmp_path / "out.jsonl").read_text("utf-8").splitlines()) == 1
    calls = [tuple(call) for call in json.loads((tmp_path / "calls.json").read_text("utf-8"))]
    steps = [(file, function) for file, function, _ in _ways()[way]]
    assert steps == [call for call in calls if call in steps]


def _write_quads(trig: Path, quads: Path) -> None:
    import pyoxigraph as ox

    found = ox.parse(trig.read_bytes(), format=ox.RdfFormat.TRIG)
    ox.serialize(found, str(quads), format=ox.RdfFormat.N_QUADS)


def test_the_lines_that_make_solutions_and_matches_are_there() -> None:
    marked = [step for way in _ways().values() for step in way if step[2].startswith("**")]
    assert len(marked) == 5
    for file, _, remark in marked:
        (line,) = re.findall(r"`([^`]+)`", remark)
        beside = "register_runs.py" if "13 calls" in remark else ""
        place = PACKAGE / file
        text = (place.with_name(beside) if beside else place).read_text("utf-8")
        assert line in text, (file, line)


def test_rooms_stand_in_the_order_of_their_imports() -> None:
    """The contracts of import-linter name the rooms from the first to the last, too."""
    table = PAGE[PAGE.index("\n## Rooms") : PAGE.index("\n## State")]
    rows = [
        re.findall(r"`([^`]+)`", row.split("|")[1])
        for row in table.splitlines()
        if row[:3] == "| `"
    ]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    level = {room: n for n, layer in enumerate(layers) for room in layer.split(" | ")}
    rooms = [{f"spaseq.{n.removesuffix('.py').split('/')[0]}" for n in names} for names in rows]
    found = [min(level[room] for room in of_row) for row in rooms if (of_row := row & {*level})]
    assert found == sorted(found) and len(found) > 30
    present = {path.name.removesuffix(".py") for path in PACKAGE.iterdir()} - {"__pycache__"}
    named = {name.removesuffix(".py").split("/")[0] for names in rows for name in names}
    assert {p for p in present if not p.startswith(("_", "py."))} <= named


@pytest.mark.parametrize("page", [*MAPS, *ROOMS], ids=lambda p: str(p.relative_to(ROOT)))
def test_files_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    names = [name.rstrip("/") for name in _FILE.findall(text) if "NAME" not in name]
    missing = [n for n in names if not (ROOT / n).exists() and not _is_in_package(n)]
    assert missing == []


def _is_in_package(name: str) -> bool:
    return any(path.endswith((f"/{name}", f"/{name}.py")) for path in PATHS)
