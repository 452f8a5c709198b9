"""docs/architecture.md leads to the lines that it names, and every page names files that exist."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
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

def pushed():
    engine = spaseq.Engine(Path("slower.rq"), kb={"http://example/kb": "kb.ttl"})
    of = "<http://example/o> <http://example/road> <http://example/r1> .\\n"
    of += "<http://example/o> <http://example/speed> {} ."
    number = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    for time, speed in (0, 28), (60_000, 20):
        engine.push("S1", of.format(number.format(speed)), time)
    assert len(engine.advance(60_000)) == 1

threading.setprofile(note)
sys.setprofile(note)
globals()[sys.argv[1]]()
sys.setprofile(None)
threading.setprofile(None)
Path("calls.json").write_text(json.dumps([*seen]))
"""


def _ways() -> dict[str, list[tuple[str, str, str]]]:
    """The steps of both ways: file, function and remark."""
    first, _, second = PAGE.partition("The same event, given to `Engine.push`")
    return {"local": _STEP.findall(first), "pushed": _STEP.findall(second)}


@pytest.mark.parametrize("way", ["local", "pushed"])
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
    assert len(marked) == 4
    for file, _, remark in marked:
        (line,) = re.findall(r"`([^`]+)`", remark)
        beside = "register_runs.py" if "13 calls" in remark else ""
        place = PACKAGE / file
        text = (place.with_name(beside) if beside else place).read_text("utf-8")
        assert line in text, (file, line)


@pytest.mark.parametrize("page", [*MAPS, *ROOMS], ids=lambda p: str(p.relative_to(ROOT)))
def test_files_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    names = [name.rstrip("/") for name in _FILE.findall(text) if "NAME" not in name]
    missing = [n for n in names if not (ROOT / n).exists() and not _is_in_package(n)]
    assert missing == []


def _is_in_package(name: str) -> bool:
    return any(path.endswith((f"/{name}", f"/{name}.py")) for path in PATHS)
