"""What queries that come later, and a server, know of the graphs that queries maintain."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaseq
from tests.knowledge.cases import Case, cases, knowledge, queries, shown, streams_of
from tests.knowledge.test_changing_graphs import changes
from tests.serve.servers import Served, served, wait
from tests.sizes import sizes
from tests.thresholds import forced

E = "http://e/"
OWNERS = f"{E}owners"
KEEPER = (
    f"MAINTAIN GRAPH <{OWNERS}> AS DELETE {{ ?d <{E}owner> ?any }} INSERT {{ ?d <{E}owner> ?o }}\n"
    f"FROM STREAM M <{E}m> WHERE {{ SEQ(A) DEFINE GPM A ON M {{ ?d <{E}to> ?o }} }}"
)
READER = (
    f"SELECT ?d ?o FROM STREAM S <{E}s> FROM NAMED <{OWNERS}>\n"
    f"WHERE {{ SEQ(A) DEFINE GPM A ON S {{ ?d <{E}alarm> ?x GRAPH <{OWNERS}> "
    f"{{ ?d <{E}owner> ?o }} }} }}"
)


def of_late_reader(case: Case, place: int) -> Counter[object]:
    """The answers when the reader comes before the event at a place."""
    reader, *keepers = queries(case)
    found: list[spaseq.Match] = []
    given = streams_of(case)
    places = [(iri, event) for iri, events in given.items() for event in events]
    places.sort(key=lambda each: each[1].time)
    with spaseq.Engine(keepers, knowledge(case), kb_changes=changes(case)) as engine:
        for number, (iri, event) in enumerate(places):
            if number == place:
                found += engine.advance(event.time - 1)
                engine.add(reader, name="reader")
            if place <= number or not iri.endswith("S"):
                found += engine.push(iri, event.graph, event.time)
        if place >= len(places):
            engine.add(reader, name="reader")
        found += engine.close()
    return shown(found)


def from_place(case: Case, place: int) -> Case:
    """The case without what the reader's stream had before a place."""
    used = {"S", *(m.stream for m in case.maintainers)}
    order = [event for event in case.events if event.stream in used]
    order.sort(key=lambda event: (event.time, event.stream))
    gone = [event for event in order[:place] if event.stream == "S"]
    kept = [*case.events]
    for event in gone:
        kept.remove(event)
    return replace(case, events=tuple(kept))


@sizes(5, 10, 20)
def test_a_query_that_comes_later_sees_all_changes(examples: int) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(
        cases().filter(lambda case: case.maintainers), st.integers(0, 14), st.sampled_from([0, 3])
    )
    def check(case: Case, place: int, kept: int) -> None:
        with forced(f"kept_changes={kept}"):
            assert of_late_reader(case, place) == from_place(case, place).expected()

    check()


def at(second: int) -> str:
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


def said(second: int, what: str, value: str) -> str:
    graph = f"<{E}g{what}{second}>"
    return (
        f"<{E}d> <{E}{what}> <{E}{value}> {graph} .\n"
        f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{at(second)}"'
        "^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n"
    )


def handed(second: int, value: str) -> str:
    return said(second, "to", value)


def alarm(second: int) -> str:
    return said(second, "alarm", "x")


def put(own: Served, **texts: str) -> None:
    """Put queries that read one stream, S."""
    for name, text in texts.items():
        both = (
            text.replace("STREAM M", "STREAM S").replace(f"{E}m", f"{E}s").replace("ON M", "ON S")
        )
        assert own.http.put(f"/queries/{name}", content=both).status_code == 201


def owned(own: Served, **parameters: str) -> list[str]:
    """The owners in the graph, in order."""
    headers = {"Accept": "application/n-triples"}
    given = {"graph": OWNERS, **parameters}
    reply = own.http.get("/kb", params=given, headers=headers)
    assert reply.status_code == 200, reply.text
    return sorted(line.split()[2][len(E) + 1 : -1] for line in reply.text.splitlines())


def answers(own: Served, name: str) -> list[dict[str, str]]:
    lines = own.http.get(f"/queries/{name}/answers").text.splitlines()
    return [json.loads(line) for line in lines]


def answered(own: Served, name: str) -> list[str]:
    """The owners in the answers of a query so far."""
    return [each["bindings"]["o"]["value"].removeprefix(E) for each in answers(own, name)]  # type: ignore[index]


@pytest.mark.parametrize("kb", ["", f'[kb."{OWNERS}"]\nwritable = true\n'])
def test_a_server_shows_the_graphs_that_queries_maintain(tmp_path: Path, kb: str) -> None:
    """With or without the graph in the configuration; also when it starts again."""
    (tmp_path / "queries").mkdir()
    with served(tmp_path, stream=kb) as own:
        assert [*own.http.get("/kb").json()] == [] or kb
        put(own, keeper=KEEPER, reader=READER)
        own.post(handed(10, "ann") + alarm(15) + handed(20, "bob") + alarm(25) + alarm(60))
        wait(lambda: answered(own, "reader") == ["ann", "bob"])
        (listed,) = own.http.get("/kb").json()
        assert (listed["graph"], listed["triples"], listed["since"]) == (OWNERS, 1, at(20))
        assert (listed["writable"], listed["watched"]) == (False, [])
    with served(tmp_path, stream=kb) as own:
        assert owned(own) == ["bob"]
        assert [owned(own, at=at(n)) for n in (9, 10, 19, 20)] == [[], ["ann"], ["ann"], ["bob"]]
        tag = own.http.get("/kb", params={"graph": OWNERS}).headers["ETag"]
        refused = own.http.put("/kb", params={"graph": OWNERS}, content="")
        assert refused.status_code == 403
        used = []
        for answer in answers(own, "reader"):
            found = own.http.get(f"/queries/reader/answers/{answer['id']}/knowledge").json()
            (triple,) = found["events"][0]["graphs"][0]["triples"]
            used.append((triple["object"]["value"], triple.get("until")))
        assert used == [(f"{E}ann", at(20)), (f"{E}bob", None)]
        own.post(handed(70, "zoe") + alarm(71) + alarm(120))
        wait(lambda: answered(own, "reader") == ["ann", "bob", "bob", "zoe"])
        assert own.http.get("/kb", params={"graph": OWNERS}).headers["ETag"] != tag


@pytest.mark.parametrize("starts_again", [False, True])
@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.thorough)])
def test_a_query_that_is_put_or_edited_later_knows_the_graph(
    tmp_path: Path, starts_again: bool, runtime: str
) -> None:
    """Also in a replay of the logs."""
    (tmp_path / "queries").mkdir()
    edited = READER.replace("SELECT ?d", "SELECT DISTINCT ?d")
    with served(tmp_path) as own:
        put(own, keeper=KEEPER)
        own.post(handed(10, "ann") + alarm(12) + alarm(14))
        put(own, reader=READER)
        own.post(alarm(15) + alarm(20))
        wait(lambda: answered(own, "reader") == ["ann"])
        if not starts_again:
            put_again(own, edited)
    with served(tmp_path) as own:
        if starts_again:
            put_again(own, edited)
        own.post(alarm(30) + alarm(40))
        wait(lambda: answered(own, "reader") == ["ann"] * 2)
    command = ["spaseq", "run", "--logs", str(tmp_path / "state"), "--runtime", runtime]
    done = subprocess.run(
        [sys.executable, "-m", *command], capture_output=True, text=True, check=True
    )
    replayed = [json.loads(line)["bindings"]["o"]["value"] for line in done.stdout.splitlines()]
    assert replayed == [f"{E}ann"] * 2


def put_again(own: Served, text: str) -> None:
    reply = own.http.put("/queries/reader", content=text)
    assert (reply.status_code, reply.json()["changed"]) == (200, True), reply.text


def test_what_a_graph_was_long_ago_is_gone(tmp_path: Path) -> None:
    (tmp_path / "queries").mkdir()
    with forced("kept_changes=2"), served(tmp_path) as own:
        put(own, keeper=KEEPER)
        for number in range(1, 9):
            own.post(handed(number, f"o{number}"))
        own.post(alarm(20))
        wait(lambda: owned(own) == ["o8"])
        wait(lambda: own.http.get("/kb", params={"graph": OWNERS, "at": at(1)}).status_code == 410)
        assert owned(own, at=at(8)) == ["o8"]
