"""JSON with a context from outside: names of events, named contexts, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import spaseq
from spaseq.cli import main
from spaseq.errors import InputError, UsageError
from spaseq.limits import Limits
from spaseq.logs.messages import Message
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.runtime.live.stream_events import message_events
from spaseq.sources import source_of
from spaseq.sources.json_ld import JsonLd, json_ld_source, named_contexts
from tests.rdf.streams import TIME, XSD, Event, events_of

CONTEXT: dict[str, Any] = {
    "id": "@id",
    "at": {"@id": TIME[1:-1], "@type": f"{XSD}dateTime"},
    "speed": "http://e/speed",
}
OTHER = "https://contexts.example/road"


def at(second: int) -> str:
    return f"1970-01-01T00:00:0{second}Z"


def files(place: Path, *objects: Any, context: Any = CONTEXT) -> tuple[Path, Path]:
    (place / "s.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in objects))
    (place / "c.jsonld").write_text(json.dumps({"@context": context}))
    return place / "s.jsonl", place / "c.jsonld"


def read(
    place: Path, *objects: Any, context: Any = CONTEXT, limits: Limits | None = None, **named: Any
) -> tuple[list[Event], list[BadInput]]:
    data, own = files(place, *objects, context=context)
    others = {}
    for name, value in named.items():
        (place / f"{name}.jsonld").write_text(json.dumps(value))
        others[f"https://contexts.example/{name}"] = place / f"{name}.jsonld"
    options = StreamOptions("http://e/s", (), limits=limits or Limits())
    bad: list[BadInput] = []
    source = json_ld_source(JsonLd(data, own, others), options)
    return list(events_of(source.open(bad.append))), bad


def test_an_id_at_the_top_names_the_event(tmp_path: Path) -> None:
    events, bad = read(
        tmp_path,
        {"id": "http://e/1", "speed": 5, "at": at(1)},
        {"@id": "http://e/2", "speed": {"id": "http://e/x", "speed": 1}, "at": at(2)},
        {"speed": 5, "at": at(3)},
        {"id": "http://e/4", "at": at(4), "@graph": [{"id": "http://e/x", "speed": 5}]},
    )
    assert [(e.graph, e.time, len(e.triples)) for e in events] == [
        ("http://e/1", 1000, 2),
        ("http://e/2", 2000, 3),
        (None, 3000, 2),
        ("http://e/4", 4000, 1),
    ]
    assert bad == []


def test_bad_objects_among_good_ones(tmp_path: Path) -> None:
    good = {"id": "http://e/1", "speed": 5, "at": at(1)}
    refused = {"@context": OTHER, **good}
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    events, bad = read(tmp_path, good, refused, {**good, "speed": deep}, [good], {"id": 5}, good)
    assert len(events) == 2
    assert [one.line for one in bad] == [2, 3, 4, 5]
    assert f"the context {OTHER} is remote" in bad[0].reason


def test_named_contexts_come_from_files(tmp_path: Path) -> None:
    road = {"@context": [{"pace": "http://e/pace"}, "https://contexts.example/deeper"]}
    events, bad = read(
        tmp_path,
        {"@context": OTHER, "pace": 1, "speed": 2, "depth": 3, "at": at(1)},
        {"pace": 1, "speed": 2, "at": at(2)},
        {"@context": [OTHER, {"pace": "http://e/other"}], "pace": 1, "at": at(3)},
        road=road,
        deeper={"depth": "http://e/depth"},
    )
    predicates = [{p for _, p, _ in event.triples} - {TIME} for event in events]
    assert predicates == [
        {"<http://e/pace>", "<http://e/speed>", "<http://e/depth>"},
        {"<http://e/speed>"},
        {"<http://e/other>"},
    ]
    assert bad == []


def test_named_contexts_stay_small_and_end(tmp_path: Path) -> None:
    wide = {f"t{n}": f"http://e/{n}" for n in range(1000)}
    many = {"@context": ["https://contexts.example/wide"] * 1000, "at": at(1)}
    events, bad = read(tmp_path, many, wide=wide, limits=Limits(event_bytes=1 << 20))
    assert (events, len(bad)) == ([], 1)
    with pytest.raises(InputError, match="contains itself"):
        read(tmp_path, context="https://contexts.example/own", own="https://contexts.example/own")


@pytest.mark.parametrize(
    ("text", "reason"),
    [("{", "no JSON"), ('{"@context": "https://x/"}', "is remote"), ("[" * 10_000, "nested")],
)
def test_contexts_that_cannot_be_used(tmp_path: Path, text: str, reason: str) -> None:
    data, own = files(tmp_path, {})
    own.write_text(text)
    with pytest.raises(InputError, match=reason):
        json_ld_source(JsonLd(data, own), StreamOptions("http://e/s", ()))
    with pytest.raises(InputError, match="cannot read the context"):
        json_ld_source(JsonLd(data, tmp_path / "nowhere"), StreamOptions("http://e/s", ()))


def test_messages_of_a_broker(tmp_path: Path) -> None:
    _, own = files(tmp_path)
    source = json_ld_source(JsonLd("nats://h/s?stream=S", own), StreamOptions("http://e/s", ()))
    value = {"id": "http://e/1", "speed": 5, "at": at(1)}
    payloads = [json.dumps(value, indent=1).encode(), b"{", json.dumps(value).encode()]
    messages = [Message(payload, 0, n, "text/plain") for n, payload in enumerate(payloads, 1)]
    bad: list[BadInput] = []
    options = source.options  # type: ignore[attr-defined]
    events = list(events_of(message_events(messages, options, "nats://h", bad.append)))
    assert [event.graph for event in events] == ["http://e/1"] * 2
    assert [one.file for one in bad] == ["nats://h message 2"]


QUERY = """SELECT ?v WITHIN 1 MINUTES FROM STREAM S <http://e/s>
WHERE { SEQ(A) DEFINE GPM A ON S { ?x <http://e/speed> ?v } }"""


@pytest.mark.parametrize("runtime", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_runs(runtime: Any, tmp_path: Path) -> None:
    data, own = files(tmp_path, {"speed": 5, "at": at(1)}, {"speed": 6, "at": at(2)})
    found = spaseq.run(QUERY, {"S": JsonLd([data], own)}, runtime=runtime)
    assert [match.bindings["v"].to_python() for match in found] == [5, 6]


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--context", "S=c.jsonld"], 0, '"5"'),
        (["--context", "c.jsonld"], 2, "expected NAME=FILE"),
        (["--context", "S=nowhere"], 3, "cannot read the context nowhere"),
        (["--context-map", "http://x/=nowhere"], 3, "cannot read the context nowhere"),
        (["--context", "S=c.jsonld", "--context-map", "x"], 2, "expected IRI=FILE"),
        (["--context", "S=c.jsonld", "--context", "S=c.jsonld"], 2, "a context already"),
        (["--context", "S=c.jsonld", "--lift", "S=l.rq"], 2, "has a lift or a context"),
    ],
)
def test_command_line(
    options: list[str],
    status: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    files(tmp_path, {"speed": 5, "at": at(1)})
    (tmp_path / "q.rq").write_text(QUERY)
    (tmp_path / "l.rq").write_text("CONSTRUCT {} WHERE {}")
    with pytest.raises(SystemExit) as done:
        main(["run", "q.rq", "--stream", "S=s.jsonl", "--runtime", "local", *options])
    shown = capsys.readouterr()
    assert (done.value.code, words in shown.out + shown.err) == (status, True), shown.err


DOCUMENT = {
    "@context": ["https://contexts.example/road", {"v": "http://e/speed"}],
    "@graph": [
        {"id": f"http://e/{n}", "at": at(n), "@graph": [{"id": "http://e/x", "v": n}]}
        for n in (1, 2)
    ],
}


@pytest.mark.parametrize("ending", ["jsonld", "ndjsonld", "json"])
def test_documents_name_contexts_that_are_in_files(ending: str, tmp_path: Path) -> None:
    _, road = files(tmp_path)
    data = tmp_path / f"d.{ending}"
    data.write_text(json.dumps(DOCUMENT, indent=None if ending == "ndjsonld" else 1))
    found = spaseq.run(
        QUERY, {"S": data}, runtime="local", context_map={"https://contexts.example/road": road}
    )
    # In NDJSON-LD a line is one message, and each graph in it an event.
    assert [match.bindings["v"].to_python() for match in found] == [1, 2]


def refusals(data: Path, known: dict[str, Path]) -> list[str]:
    """Why nothing of a file becomes an event."""
    options = StreamOptions("http://e/s", (), contexts=named_contexts(known, Limits()))
    bad: list[BadInput] = []
    assert not list(events_of(source_of([str(data)], options).open(bad.append)))
    return [one.reason for one in bad]


@pytest.mark.parametrize("ending", ["jsonld", "ndjsonld"])
@pytest.mark.parametrize("others", [0, 1])
def test_other_remote_contexts_are_refused_with_what_to_write(
    ending: str, others: int, tmp_path: Path
) -> None:
    _, other = files(tmp_path)
    data = tmp_path / f"d.{ending}"
    data.write_text(json.dumps(DOCUMENT))
    known = dict([("https://contexts.example/other", other)] * others)
    (reason,) = refusals(data, known)
    assert "is remote, and nothing is fetched; give it in a file" in reason
    assert "(--context-map IRI=FILE, or context_map= in Python)" in reason
    if others or ending == "ndjsonld":
        assert "the context https://contexts.example/road is remote" in reason


@pytest.mark.parametrize("text", ["{", '{"a": ' + "[" * 5000 + "]" * 5000 + "}", "\udc80"])
def test_a_document_that_is_no_json_or_too_deep(text: str, tmp_path: Path) -> None:
    _, road = files(tmp_path)
    data = tmp_path / "d.jsonld"
    data.write_bytes(text.encode(errors="surrogateescape"))
    (reason,) = refusals(data, {"https://x.example/": road})
    assert "the rest of the file is not read" in reason


def test_messages_of_a_broker_name_contexts(tmp_path: Path) -> None:
    _, road = files(tmp_path)
    contexts = named_contexts({"https://contexts.example/road": road}, Limits())
    options = StreamOptions("http://e/s", (), contexts=contexts)
    payload = json.dumps({"@context": "https://contexts.example/road", "at": at(1), "speed": 5})
    bad: list[BadInput] = []
    given = [Message(payload.encode(), 0, 1, "application/ld+json")]
    events = list(events_of(message_events(given, options, "nats://h", bad.append)))
    assert [len(event.triples) for event in events] == [2]
    assert bad == []


def test_data_is_paths(tmp_path: Path) -> None:
    _, own = files(tmp_path)
    with pytest.raises(UsageError, match="comes from paths"):
        json_ld_source(JsonLd([5], own), StreamOptions("http://e/s", ()))  # type: ignore[list-item]
