"""Alerts on their way to receivers: templates, headers, and what fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spaseq.errors import UsageError
from spaseq.serve.assembly import parts_of
from spaseq.serve.configuration import read_configuration
from tests.connectors.hook import Hook
from tests.serve.servers import served, wait

QUERY = (
    "# title: Jam\n# severity: warning\nSELECT ?v WITHIN 1 HOURS FROM STREAM S <http://e/s> "
    "WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/p> ?v } }"
)


def test_a_webhook_gets_what_the_template_makes(tmp_path: Path) -> None:
    hook = Hook()
    (tmp_path / "own.txt.j2").write_text(
        "{{ query.title }} {{ vars.at }} {{ 6 // (answer.bindings.v|int - 1) }}"
    )
    sinks = f"""
[sinks.slack]
to = "http://127.0.0.1:{hook.port}/slack"
template = "slack"
[sinks.own]
to = "http://127.0.0.1:{hook.port}/own"
template = "own.txt.j2"
vars = {{ at = "A4" }}
headers = {{ X-Key = "k" }}
"""
    with served(tmp_path, stream=sinks) as server:
        server.http.put("/queries/jam", content=QUERY)
        server.feed(0, 4)
        wait(lambda: len(hook.requests) == 5)
        failed = tmp_path / "state" / "failed" / "own.jsonl"
        wait(failed.exists)
    hook.close()
    bodies = {path: [b for p, _, b in hook.requests if p == path] for path in ("/own", "/slack")}
    assert sorted(bodies["/own"]) == [b"Jam A4 -6", b"Jam A4 6"]  # 0 and 2; 1 divides by zero
    assert [json.loads(b)["text"] for b in bodies["/slack"]] == ["Jam"] * 3
    own = next(headers for path, headers, _ in hook.requests if path == "/own")
    assert (own["Content-Type"], own["X-Key"]) == ("text/plain; charset=utf-8", "k")
    (line,) = map(json.loads, failed.read_text().splitlines())
    assert "division" in line["reason"] and line["answer"]["query"] == "jam"


def test_a_template_that_loops_or_eats_memory_hurts_nobody_else(tmp_path: Path) -> None:
    hook = Hook()
    loop = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
    (tmp_path / "loop.txt.j2").write_text(loop)
    (tmp_path / "fat.txt.j2").write_text("{{ answer.id * 10**8 }}")
    sinks = "".join(
        f'[sinks.{name}]\nto = "http://127.0.0.1:{hook.port}/{name}"\nkeep = "4 SECONDS"\n{more}\n'
        for name, more in (
            ("loop", 'template = "loop.txt.j2"'),
            ("fat", 'template = "fat.txt.j2"'),
            ("good", 'method = "PUT"\ncontent_type = "application/x-own"'),
        )
    )

    def reasons(name: str) -> list[str]:
        path = tmp_path / "state" / "failed" / f"{name}.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line)["reason"] for line in lines]

    with served(tmp_path, stream=sinks) as server:
        server.http.put("/queries/jam", content=QUERY)
        server.feed(0, 4)
        wait(lambda: len(hook.requests) == 3)
        wait(lambda: len(reasons("fat")) == 3)
        wait(lambda: server.http.get("/health").status_code == 503)
        assert "loop" in server.http.get("/health").json()["problems"][0]
        wait(lambda: len(reasons("loop")) == 3)
    hook.close()
    assert {path for path, _, _ in hook.requests} == {"/good"}
    assert {h["Content-Type"] for _, h, _ in hook.requests} == {"application/x-own"}
    assert all("memory" in reason for reason in reasons("fat"))
    assert all("longer than 1 s" in reason for reason in reasons("loop"))


@pytest.mark.parametrize(
    ("sink", "reason"),
    [
        ('to = "out.jsonl"\ntemplate = "slack"', "not for files"),
        ('to = "http://e/?batch=5"\ntemplate = "slack"', "no batch"),
        ('to = "http://e/"\ntemplate = "bad.txt.j2"', "line 1"),
        ('to = "http://e/"\nmethod = "GET"', '"POST", "PUT"'),
        ('to = "mqtt://e/a"\nmethod = "PUT"', "has no option method"),
    ],
)
def test_sinks_with_mistakes(tmp_path: Path, sink: str, reason: str) -> None:
    (tmp_path / "bad.txt.j2").write_text("{% if %}")
    path = tmp_path / "spaseq.toml"
    path.write_text(f'[streams.S]\niri = "http://e/s"\n[sinks.ops]\n{sink}\n')
    with pytest.raises(UsageError, match=reason):
        parts_of(read_configuration(path, {}), tmp_path)
