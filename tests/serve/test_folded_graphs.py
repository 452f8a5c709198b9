"""Old changes of graphs go into their base; what is asked of later times stays as it was."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from spaseq.errors import UsageError
from spaseq.logs.stream_log import StreamLog
from spaseq.runtime.live import graph_log, live_loop
from spaseq.serve.assembly import parts_of
from spaseq.serve.configuration import read_configuration
from tests.serve.servers import Served, served, wait
from tests.serve.test_graphs import FILED, KB, OWNERS, alarm, kb, owners, query, serving, triples

SHORT = 'retain = "1 MILLISECONDS"'


def owner(number: int) -> str:
    return f"<http://e/d> <http://e/owner> <http://e/n{number}> ."


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


@pytest.fixture
def _eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is saved after each batch, and each change is worth a new base."""
    monkeypatch.setattr(live_loop, "SNAPSHOT_S", 0.0)
    monkeypatch.setattr(live_loop, "_SHARE", 0.0)
    monkeypatch.setattr(graph_log, "FOLD_BYTES", 1)
    monkeypatch.setattr(graph_log, "_worth", lambda path: 1)


def folded(directory: Path) -> int:
    """How many changes are in the base."""
    bases = [path.name for path in (directory / "state" / "graphs").glob("base*")]
    assert len(bases) == 1, bases
    return int(bases[0].partition("-")[2] or 0)


def hand_on(own: Served, first: int, end: int) -> None:
    """Each ten seconds another owner, and five seconds later an alarm, which has its answer."""
    for number in range(first, end):
        reply = kb(own, "PUT", owner(number), params={"from": at(10 * number)})
        assert reply.status_code in (201, 204), reply.text
        own.post(alarm(10 * number + 5))
        wait(lambda number=number: len(owners(own)) >= number)  # the last one is not certain yet


@pytest.mark.thorough
@pytest.mark.usefixtures("_eager")
def test_what_went_before_the_base_is_not_known(tmp_path: Path) -> None:
    with serving(tmp_path, SHORT) as own:
        hand_on(own, 0, 12)
        first = owners(own)
        assert first == [f"n{number}" for number in range(11)]
    count = folded(tmp_path)
    assert 6 <= count < 12
    assert len([*(tmp_path / "state/graphs/changes").iterdir()]) <= 12 - count + 1
    with serving(tmp_path, SHORT) as own:
        tag = kb(own, "GET").headers["ETag"]
        assert tag == '"12"'
        gone = kb(own, "GET", params={"at": at(15)})
        assert (gone.status_code, "not kept" in gone.json()["error"]) == (410, True)
        assert triples(own) == {owner(11)}
        past = own.http.put(f"/queries/past?from={at(15)}", content=query(OWNERS))
        assert (past.status_code, "not kept" in past.json()["error"]) == (410, True)
        tried = own.http.put("/queries/past?dry-run=true", content=query(OWNERS)).json()
        values = [a["bindings"]["o"]["value"].removeprefix("http://e/") for a in tried["answers"]]
        assert values == [f"n{number}" for number in range(count - 1, 11)][-len(values) :]
        lines = own.http.get("/queries/owned/answers").text.splitlines()
        old = json.loads(lines[0])["id"]
        used = own.http.get(f"/queries/owned/answers/{old}/knowledge")
        assert (used.status_code, "not kept" in used.json()["error"]) == (410, True)
        assert kb(own, "PUT", owner(12), headers={"If-Match": '"11"'}).status_code == 412
        early = kb(own, "PUT", owner(12), params={"from": at(30)})
        assert early.status_code == 409
        hand_on(own, 12, 14)
        assert owners(own) == [f"n{number}" for number in range(13)]
        assert kb(own, "GET").headers["ETag"] == '"14"'
        assert kb(own, "GET", graph=FILED).headers["ETag"] == '"0"'
    command = [sys.executable, "-m", "spaseq", "run", "--logs", str(tmp_path / "state")]
    done = subprocess.run([*command, "--format", "jsonl"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "records of the graphs have been dropped" in done.stderr


@pytest.mark.usefixtures("_eager")
def test_what_is_retained_is_not_folded(tmp_path: Path) -> None:
    """With the retention of an hour all is there, and a replay gives the same answers."""
    with serving(tmp_path) as own:
        hand_on(own, 0, 8)
        first = owners(own)
        assert triples(own, params={"at": at(15)}) == {owner(1)}
    assert folded(tmp_path) == 0
    command = [sys.executable, "-m", "spaseq", "run", "--logs", str(tmp_path / "state")]
    given = [*command, "--runtime", "local", "--format", "jsonl"]
    done = subprocess.run(given, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    values = [own["bindings"]["o"]["value"] for own in lines if own["query"] == "owned"]
    assert [value.removeprefix("http://e/") for value in values] == first


@pytest.mark.usefixtures("_eager")
def test_an_open_window_keeps_what_its_events_need(tmp_path: Path) -> None:
    """An hour's window: the state is rebuilt from its beginning, so nothing goes."""
    pairs = (
        f"SELECT ?o ?o2 WITHIN 1 HOURS FROM STREAM S <http://e/s> FROM NAMED <{OWNERS}>\n"
        "WHERE { SEQ(A; B) "
        f"DEFINE GPM A ON S {{ ?d <http://e/alarm> ?x GRAPH <{OWNERS}> {{ ?d ?p ?o }} }} "
        f"DEFINE GPM B ON S {{ ?d <http://e/alarm> ?y GRAPH <{OWNERS}> {{ ?d ?p ?o2 }} }} }}"
    )
    with serving(tmp_path, SHORT) as own:
        assert own.http.put("/queries/pairs", content=pairs).status_code == 201
        hand_on(own, 0, 8)
    assert folded(tmp_path) == 0
    (tmp_path / "state" / "state").unlink()
    with served(tmp_path, SHORT, KB) as own:
        hand_on(own, 8, 10)
        lines = own.http.get("/queries/pairs/answers?limit=100").text.splitlines()
        found = [json.loads(line)["bindings"] for line in lines]
        ends = [tuple(b[v]["value"].removeprefix("http://e/n") for v in ("o", "o2")) for b in found]
        assert [(int(a), int(b)) for a, b in ends] == [(n, n + 1) for n in range(len(ends))]
        assert len(ends) >= 8


@pytest.mark.usefixtures("_eager")
@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(n, marks=pytest.mark.thorough) for n in range(2, 12))]
)
def test_each_event_sees_its_graph_over_folds_and_restarts(tmp_path: Path, seed: int) -> None:
    """The state is lost now and then, and rebuilt from the logs."""
    draw, second = random.Random(seed), 0
    now, expected = "", list[str]()
    folds = set[int]()
    for _ in range(4):
        with serving(tmp_path, SHORT) as own:
            for _ in range(draw.randrange(3, 12)):
                second += draw.randrange(1, 4)
                if draw.random() < 0.5:
                    now = f"n{second}"
                    kb(own, "PUT", owner(second), params={"from": at(second)})
                else:
                    own.post(alarm(second))
                    expected += [now] if now else []
            least = len(expected) - 1
            wait(lambda least=least: len(owners(own)) >= least)
        folds.add(folded(tmp_path))
        if draw.random() < 0.4:
            (tmp_path / "state" / "state").unlink()
    with serving(tmp_path, SHORT) as own:
        own.post(alarm(second + 100))
        wait(lambda: len(owners(own)) >= len(expected))
        assert owners(own) == expected
    assert max(folds) > 0


def test_a_query_of_the_past_sees_the_graphs_of_then(tmp_path: Path) -> None:
    with serving(tmp_path) as own:
        hand_on(own, 0, 4)
        assert own.http.put("/queries/past?from=0", content=query(OWNERS)).status_code == 201
        wait(lambda: len(owners(own, "past")) == 3)
        assert owners(own, "past") == ["n0", "n1", "n2"]
        hand_on(own, 4, 6)
        assert owners(own, "past") == owners(own) == [f"n{number}" for number in range(5)]


@pytest.mark.usefixtures("_eager")
@pytest.mark.parametrize("drops", [False, True])
def test_a_graph_that_a_query_keeps_is_not_made_anew_of_half_its_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, drops: bool
) -> None:
    """Without the state, what it was follows from all events only."""
    graph = "http://e/kept-by-query"
    if drops:
        monkeypatch.setattr(StreamLog.__init__, "__defaults__", (200,))
    keeper = (
        f"MAINTAIN GRAPH <{graph}> AS INSERT {{ ?d <http://e/owner> ?x }}\n"
        "FROM STREAM S <http://e/s> WHERE { SEQ(A) DEFINE GPM A ON S { ?d <http://e/to> ?x } }"
    )
    with serving(tmp_path, SHORT) as own:
        own.http.put("/queries/keeper", content=keeper)
        assert own.http.put("/queries/reads", content=query(graph)).status_code == 201
        own.post(alarm(1).replace('alarm> "x"', "to> <http://e/ann>"))
        for number in range(8):
            own.post(alarm(100 + 100 * number))
            wait(lambda number=number: len(owners(own, "reads")) >= number)
    state, path = tmp_path / "state" / "state", tmp_path / "spaseq.toml"
    state.rename(tmp_path / "kept")
    if drops:
        with pytest.raises(UsageError, match=f"<{graph}> \\(MAINTAIN GRAPH\\).* --rebuild"):
            parts_of(read_configuration(path, {}), tmp_path).run.start()
        (tmp_path / "kept").rename(state)
    with served(tmp_path, SHORT, KB) as own:
        own.post(alarm(2000) + alarm(3000))
        wait(lambda: len(owners(own, "reads")) >= 9)
        assert owners(own, "reads") == ["ann"] * 9
    state.unlink()
    run = parts_of(read_configuration(path, {}, {"rebuild": True}), tmp_path).run
    run.start()
    run.stop()
