"""Answers of the past go only where they are wanted, and a trial of a query sends nothing."""

from __future__ import annotations

from pathlib import Path

from tests.connectors.hook import Hook
from tests.serve.servers import served, wait

QUERY = (
    "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A) "
    "DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
)
PAIRS = (
    "SELECT ?v ?w WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A, B) "
    "DEFINE GPM A ON S { ?x <http://e/p> ?v } DEFINE GPM B ON S { ?x <http://e/p> ?w } }"
)


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
        server.feed(6, 9)  # (4, 5) is of the past, and final only now; (5, 6) is not
        wait(lambda: server.http.get("/queries/jam").json()["answers"] == 7)
        wait(lambda: len(wants.requests) == 7)
        wait(lambda: (tmp_path / "out.jsonl").read_text().count("\n") == 7)
        wait(lambda: server.http.get("/queries/jam").json()["withheld"] in (4, 5))
        withheld = server.http.get("/queries/jam").json()["withheld"]
        wait(lambda: len(hook.requests) == 7 - withheld)
        metrics = server.http.get("/metrics").text
        assert f'spaseq_query_withheld_total{{query="jam"}} {withheld}' in metrics
    hook.close()
    wants.close()


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
