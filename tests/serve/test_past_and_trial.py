"""Answers of the past go only where they are wanted, and a trial of a query sends nothing."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from spaseq.serve import query_routes
from spaseq.serve.configuration import read_configuration
from tests.connectors.hook import Hook
from tests.serve import servers
from tests.serve.servers import event, served, wait
from tests.sizes import first_of

QUERY = (
    "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A) "
    "DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
)
PAIRS = (
    "SELECT ?v ?w WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A, B) "
    "DEFINE GPM A ON S { ?x <http://e/p> ?v } DEFINE GPM B ON S { ?x <http://e/p> ?w } }"
)


def told(hook: Hook) -> list[tuple[str, str]]:
    """The values that a receiver got."""
    found = [json.loads(body)["bindings"] for _, _, body in hook.requests]
    return [(bindings["v"]["value"], bindings["w"]["value"]) for bindings in found]


def test_answers_of_the_past_are_withheld_from_people(tmp_path: Path) -> None:
    hook, wants = Hook(), Hook()
    sinks = f"""
[sinks.ops]
to = "http://127.0.0.1:{hook.port}/"
[sinks.also]
to = "http://127.0.0.1:{wants.port}/"
past = true
[sinks.file]
to = "out.jsonl"
"""
    with served(tmp_path, stream=sinks) as server:
        server.feed(0, 6)
        assert server.http.put("/queries/jam?from=0", content=PAIRS).status_code == 201
        wait(lambda: server.http.get("/queries/jam").json()["answers"] == 4)
        server.http.put("/queries/jam", content=f"# title: Jam\n{PAIRS}")
        server.post(event(5, "same time"))  # it came later, though not by its time
        server.feed(6, 9)  # (4, 5) is of the past, and final only now; all others are not
        wait(lambda: server.http.get("/queries/jam").json()["answers"] == 8)
        wait(lambda: len(wants.requests) == 8)
        wait(lambda: (tmp_path / "out.jsonl").read_text().count("\n") == 8)
        wait(lambda: len(hook.requests) == 3)
        assert server.http.get("/queries/jam").json()["withheld"] == 5
        metrics = server.http.get("/metrics").text
        assert 'spaseq_query_withheld_total{query="jam"} 5' in metrics
    assert told(hook) == [("5", "same time"), ("same time", "6"), ("6", "7")]
    hook.close()
    wants.close()


@pytest.mark.parametrize("rebuild", first_of([True, False], 1))
def test_a_restart_withholds_what_is_of_the_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rebuild: bool
) -> None:
    """Also for queries of a family, which have joined the others before the restart."""
    hook = Hook()
    sinks = f'[sinks.ops]\nto = "http://127.0.0.1:{hook.port}/"\n'
    names = [f"jam{n}" for n in range(10)]

    def counts(name: str) -> tuple[int, int]:
        found = server.http.get(f"/queries/{name}").json()
        return found["answers"], found["withheld"]

    with served(tmp_path, stream=sinks) as server:
        server.feed(0, 6)
        for n, name in enumerate(names):
            text = PAIRS.replace("?w }", f'?w FILTER(?w != "{n - 10}") }}', 1)
            assert server.http.put(f"/queries/{name}?from=0", content=text).status_code == 201
        wait(lambda: all(counts(name) == (4, 4) for name in names))
    again = partial(read_configuration, server={"rebuild": rebuild})
    monkeypatch.setattr(servers, "read_configuration", again)
    with served(tmp_path, stream=sinks) as server:
        wait(lambda: all(counts(name) == (4, 4) for name in names))
        server.feed(6, 8)
        wait(lambda: all(counts(name) == (6, 5) for name in names))
        wait(lambda: len(hook.requests) == 10)
    hook.close()
    assert told(hook) == [("5", "6")] * 10


def test_a_query_that_is_enabled_again_has_no_past(tmp_path: Path) -> None:
    hook = Hook()
    sinks = f'[sinks.ops]\nto = "http://127.0.0.1:{hook.port}/"\n'
    with served(tmp_path, stream=sinks) as server:
        server.feed(0, 3)
        server.http.put("/queries/jam?from=0", content=PAIRS)
        wait(lambda: server.http.get("/queries/jam").json()["answers"] == 1)
        for enabled in (False, True):
            server.http.patch("/queries/jam", json={"enabled": enabled})
        server.post(event(2, "new") + event(2, "newer") + event(3))
        wait(lambda: len(hook.requests) == 1)
    hook.close()
    assert told(hook) == [("new", "newer")]


def test_a_trial_ends_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as server:
        server.feed(0, 3)
        monkeypatch.setattr(query_routes, "_TRY_S", 0.0)
        body = server.http.put("/queries/jam?dry-run=true", content=QUERY).json()
        assert body == {"diagnostics": [], "answers": [], "more": True}


def test_a_trial_answers_and_leaves_nothing(tmp_path: Path) -> None:
    hook = Hook()
    sinks = f'[sinks.ops]\nto = "http://127.0.0.1:{hook.port}/"\npast = true\n'
    with served(tmp_path, stream=sinks) as server:
        http = server.http
        server.feed(0, 6)
        found = http.put("/queries/jam?dry-run=true", content=QUERY)
        body = found.json()
        assert (found.status_code, body["more"], body["diagnostics"]) == (200, False, [])
        values = [answer["bindings"]["v"]["value"] for answer in body["answers"]]
        assert values == ["0", "1", "2", "3", "4"]
        some = http.put("/queries/jam?dry-run=true&limit=2", content=QUERY).json()
        assert len(some["answers"]) == 2 and some["more"] is True
        late = http.put("/queries/jam?dry-run=true&from=2026-01-01T00:00:03Z", content=QUERY).json()
        assert [a["bindings"]["v"]["value"] for a in late["answers"]] == ["3", "4"]
        wrong = http.put("/queries/jam?dry-run=true", content="SELECT")
        assert wrong.status_code == 400 and wrong.json()["diagnostics"]
        # the same ids as the answers that it gives when it runs
        http.put("/queries/jam?from=0", content=QUERY)
        wait(lambda: len(http.get("/queries/jam/answers").text.splitlines()) == 5)
        ids = [answer["id"] for answer in body["answers"]]
        assert all(name in http.get("/queries/jam/answers").text for name in ids)
        wait(lambda: len(hook.requests) == 5)
        http.delete("/queries/jam")
        before = len(hook.requests)
        for name in ("jam", "other"):
            http.put(f"/queries/{name}?dry-run=true", content=QUERY)
        assert http.get("/queries").json() == [] and not list(server.queries.iterdir())
    assert len(hook.requests) == before == 5
    hook.close()
