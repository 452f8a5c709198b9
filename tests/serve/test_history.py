"""What became of the queries: audit trail, versions, rollback, pauses, comments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spaseq.errors import RunError
from spaseq.serve import history
from tests.serve.servers import Served, served, wait

QUERY = (
    "SELECT ?v WITHIN {} HOURS FROM STREAM S <http://e/s> WHERE {{ SEQ(A) "
    "DEFINE GPM A ON S {{ ?x <http://e/p> ?v }} }}"
)
ONE, TWO = QUERY.format(1), QUERY.format(2)


def trail(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "state/audit.jsonl").read_text().splitlines()]


def state(server: Served) -> tuple[str, int]:
    found = server.http.get("/queries/jam").json()
    return found["state"], found["answers"]


def test_versions_and_who_made_them(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        http = server.http
        http.put("/queries/jam", content=ONE)
        http.put("/queries/jam", content=TWO)
        http.put("/queries/jam", content=TWO.replace(" ", "  "))  # nothing changes
        (server.queries / "jam.rq").write_text(QUERY.format(3))
        wait(lambda: len(http.get("/queries/jam/versions").json()) == 3)
        versions = http.get("/queries/jam/versions").json()
        assert [v["version"] for v in versions] == [1, 2, 3]
        assert [v["who"] for v in versions] == ["local", "local", "file"]
        assert versions[0]["text"] == ONE
        back = http.post("/queries/jam/rollback", json={"version": 1})
        assert back.json() == {"changed": True, "text": ONE}
        assert (server.queries / "jam.rq").read_text() == ONE
        assert http.post("/queries/jam/rollback", json={"version": 9}).status_code == 404
        assert http.post("/queries/jam/rollback", json={"version": "1"}).status_code == 400
        assert http.get("/queries/other/versions").status_code == 404
        http.delete("/queries/jam")
        assert len(http.get("/queries/jam/versions").json()) == 4
    lines = trail(tmp_path)
    assert [line["what"] for line in lines] == ["start", "put", "put", "edit", "rollback", "delete"]
    assert lines[1]["before"] is None and lines[2]["before"] == lines[1]["after"]
    assert lines[4]["after"] == lines[1]["after"] == history.digest_of(ONE)
    assert lines[5] == {**lines[5], "who": "local", "target": "jam", "after": None}


def test_a_paused_query_gets_nothing_also_after_a_restart(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        http = server.http
        http.put("/queries/jam", content=ONE)
        server.feed(0, 3)
        wait(lambda: state(server) == ("running", 2))
        found = http.patch("/queries/jam", json={"enabled": False}).json()
        assert (found["state"], found["answers"]) == ("paused", 2)
        assert http.patch("/queries/jam", json={"enabled": False}).status_code == 200
        server.feed(3, 6)
        assert http.patch("/queries/jam", json={"on": 1}).status_code == 400
        assert http.patch("/queries/other", json={"enabled": False}).status_code == 404
        assert http.get("/queries").json()[0]["state"] == "paused"
        # another text waits, too
        assert http.put("/queries/jam", content=TWO).json()["changed"] is True
        assert state(server) == ("paused", 2)
    with served(tmp_path) as server:
        http = server.http
        assert state(server) == ("paused", 2)
        assert http.get("/queries/jam").json()["text"] == TWO
        server.feed(6, 9)
        http.patch("/queries/jam", json={"enabled": True})
        assert state(server)[0] == "running"
        server.feed(9, 12)
        wait(lambda: state(server) == ("running", 4))  # of 9 and 10
    assert [line["what"] for line in trail(tmp_path)] == [
        "start", "put", "pause", "put", "start", "enable"
    ]  # fmt: skip


def test_comments_change_and_nothing_begins_anew(tmp_path: Path) -> None:
    """The partial match of before the change becomes an answer after it."""
    two = (
        "SELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> WHERE { SEQ(A; B) "
        "DEFINE GPM A ON S { ?x <http://e/p> ?v FILTER(?v = '0') } "
        "DEFINE GPM B ON S { ?x <http://e/p> ?w FILTER(?w = '1') } }"
    )
    with served(tmp_path) as server:
        http = server.http
        http.put("/queries/jam", content=two)
        server.feed(0, 1)
        told = http.put("/queries/jam", content=f"# title: Jam\n{two}")
        assert (told.status_code, told.json()["changed"]) == (200, True)
        assert http.put("/queries/jam", content=f"# title: Jam\n{two}").json()["changed"] is False
    with served(tmp_path) as server:
        assert server.http.get("/queries/jam").json()["text"].startswith("# title: Jam")
        server.feed(1, 3)
        wait(lambda: state(server)[1] == 1)


def test_the_trail_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_LARGEST", 100)
    audit = history.Audit(tmp_path)
    for number in range(14):
        audit.note("me", "put", f"q{number}", None, "text")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == sorted(["audit.jsonl", *(f"audit.{n}.jsonl" for n in range(1, 11))])
    assert json.loads((tmp_path / "audit.10.jsonl").read_text())["target"] == "q3"
    assert json.loads((tmp_path / "audit.jsonl").read_text())["target"] == "q13"


def test_who_is_the_name_of_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("bob: one\nann (read, queries, acknowledge): two\n")
    (tmp_path / "token").chmod(0o600)
    bob, ann = ({"Authorization": f"Bearer {token}"} for token in ("one", "two"))
    with served(tmp_path, 'token_file = "token"') as server:
        server.http.headers = bob
        server.http.put("/queries/jam", content=ONE)
        server.feed(0, 3)
        wait(lambda: state(server)[1] == 2)
        first = json.loads(server.http.get("/answers").text.splitlines()[0])["id"]
        server.http.headers = ann
        given = server.http.post(f"/answers/{first}/acknowledge", json={"note": "mine"}).json()
        assert given["acknowledged"]["who"] == "ann"
        monkeypatch.setattr(server.run, "restart", lambda name: None)  # as if it had failed
        assert server.http.post("/queries/jam/restart").status_code == 200
        (server.queries / "jam.rq").unlink()
        wait(lambda: server.http.get("/queries").json() == [])
    lines = trail(tmp_path)
    assert [(line["who"], line["what"], line["target"]) for line in lines] == [
        ("server", "start", "server"),
        ("bob", "put", "jam"),
        ("ann", "acknowledge", first),
        ("ann", "start", "jam"),
        ("file", "delete", "jam"),
    ]
    assert "mine" not in (tmp_path / "state" / "audit.jsonl").read_text()  # hashes only


def test_a_version_that_cannot_be_kept_is_an_error_with_its_file(tmp_path: Path) -> None:
    kept = history.Versions(tmp_path / "gone")
    with pytest.raises(RunError, match=r"cannot write .*versions/jam\.jsonl: No such file"):
        kept.add("jam", "ann", "SELECT ...")
