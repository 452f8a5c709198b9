"""With an open end, the end of the input closes no window: what has not happened is no absence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaseq
from spaseq.cli.main import cli

QUERY = """PREFIX : <http://e/>
SELECT ?v WITHIN {seconds} SECONDS FROM STREAM S <http://e/s> FROM STREAM T <http://e/t>
WHERE {{ SEQ(H; N!) DEFINE GPM H ON S {{ ?x :p ?v }} DEFINE GPM N ON S {{ ?x :p ?w }} }}"""

LOOP = QUERY.replace("SEQ(H; N!)", "SEQ(H++)").replace("DEFINE GPM N ON S {{ ?x :p ?w }}", "")
"""The longest loop in the window is known when it closes."""


def stream(*seconds: int) -> str:
    """N-Quads with an event of each second."""
    long = "<http://www.w3.org/2001/XMLSchema#long>"
    prov = "<http://www.w3.org/ns/prov#generatedAtTime>"
    return "".join(
        f'<http://e/x> <http://e/p> "{s}" <http://e/g{s}> .\n'
        f'<http://e/g{s}> {prov} "{s * 1000}"^^{long} .\n'
        for s in seconds
    )


def values(tmp_path: Path, *options: str, seconds: int = 4, more: int = 0) -> list[str]:
    """?v of the answers: S ends at 10 s, T at `more`; other queries make it one of a family."""
    files = {"s": stream(0, 1, 2, 10), "t": stream(more), "q": QUERY.format(seconds=seconds)}
    for name, text in files.items():
        (tmp_path / name).with_suffix(".rq" if name == "q" else ".nq").write_text(text)
    given = [f"{name.upper()}={tmp_path / name}.nq" for name in "st"]
    command = ["run", str(tmp_path / "q.rq"), "--stream", given[0], "--stream", given[1], *options]
    result = CliRunner().invoke(cli, command, prog_name="spaseq", catch_exceptions=False)
    found = map(json.loads, result.stdout.splitlines())
    return [each["bindings"]["v"]["value"] for each in found]


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_the_end_closes_windows_unless_it_is_open(tmp_path: Path, runtime: str) -> None:
    own = "--runtime", runtime
    assert values(tmp_path, *own) == ["2", "10"]
    assert values(tmp_path, *own, "--open-end") == ["2"]
    assert values(tmp_path, *own, "--open-end", seconds=8) == []  # at 10 s 8 s have not passed
    assert values(tmp_path, *own, "--open-end", more=15) == ["2", "10"]  # T goes on until 15 s


def test_no_window_of_any_kind_closes() -> None:
    def found(text: str, **options: bool) -> list[str]:
        graph = '<http://e/x> <http://e/p> "{}" .'
        events = [spaseq.Event(graph.format(s), s * 1000) for s in (0, 1, 2, 10)]
        query = text.format(seconds=4)
        streams = {"S": events, "T": list[spaseq.Event]()}
        matches = spaseq.run(query, streams, runtime="local", **options)  # type: ignore[arg-type]
        return [str(match.bindings["v"]).strip('"') for match in matches]

    for text, closed in ((QUERY, ["2", "10"]), (LOOP, found(LOOP))):
        assert found(text) == closed
        assert found(text, open_end=True) == closed[:-1]


def test_it_is_for_input_that_ends(tmp_path: Path) -> None:
    (tmp_path / "q.rq").write_text(QUERY.format(seconds=4))
    command = ["run", str(tmp_path / "q.rq"), "--follow", "--open-end", "--stream", "S=x"]
    result = CliRunner().invoke(cli, command, prog_name="spaseq")
    assert "--follow has no end" in str(result.exception)
