"""NDJSON-LD: contexts that hold for later lines, hostile lines, and what they cost."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.limits import Limits
from tests.hostile import run_bounded
from tests.rdf.streams import TIME, XSD, read, write

CONTEXT = {
    "time": {"@id": TIME[1:-1], "@type": f"{XSD}dateTime"},
    "speed": "http://e/speed",
    "name": "http://e/name",
}


def line(number: int, **more: Any) -> dict[str, Any]:
    return {"time": f"1970-01-01T00:00:0{number}Z", "speed": number, **more}


def lines(*objects: Any) -> str:
    return "".join(json.dumps(one) + "\n" for one in objects)


def test_each_line_is_an_event(tmp_path: Path) -> None:
    text = lines({"@context": CONTEXT, **line(1)}, {"@context": CONTEXT, **line(2)})
    events, bad = read(write(tmp_path / "s.ndjsonld", text))
    assert [(event.time, event.graph, len(event.triples)) for event in events] == [
        (1000, None, 2),
        (2000, None, 2),
    ]
    assert bad == []


def test_a_context_alone_holds_for_the_lines_after_it(tmp_path: Path) -> None:
    other = {**CONTEXT, "speed": "http://e/pace"}
    text = lines({"@context": CONTEXT}, line(1), {}, {"@context": other}, line(2), line(3))
    events, bad = read(write(tmp_path / "s.ndjsonld.gz", text))
    predicates = [{p for _, p, _ in event.triples} - {TIME} for event in events]
    assert predicates == [{"<http://e/speed>"}, {"<http://e/pace>"}, {"<http://e/pace>"}]
    assert bad == []


def test_a_local_context_comes_on_top_and_does_not_stay(tmp_path: Path) -> None:
    local = line(1, **{"@context": {"name": "http://e/label"}}, name="A")
    text = lines({"@context": CONTEXT}, local, line(2, name="B"))
    events, _ = read(write(tmp_path / "s.ndjsonld", text))
    assert ["<http://e/label>" in {p for _, p, _ in event.triples} for event in events] == [
        True,
        False,
    ]


def test_a_named_graph_names_the_event(tmp_path: Path) -> None:
    graph = {"@id": "http://e/1", TIME[1:-1]: 5, "@graph": [{"@id": "http://e/s", "http://e/p": 1}]}
    events, bad = read(write(tmp_path / "s.ndjsonld", lines(graph)))
    assert [(event.graph, event.time) for event in events] == [("http://e/1", 5)]
    assert bad == []


@pytest.mark.parametrize(
    "malformed",
    [
        "[]",
        "",
        '{"a": ',
        '{"@context": "https://schema.org/", "name": "x"}',
        '{"@context": "https://schema.org/"}',
        '{"@context": 7}',
        '{"@id": "http://e/s", "http://e/p": ' + '{"http://e/p": ' * 300 + "1" + "}" * 301,
        '{"@context": ' + "[" * 300 + "]" * 300 + "}",
    ],
)
def test_a_malformed_line_costs_only_itself(tmp_path: Path, malformed: str) -> None:
    text = lines({"@context": CONTEXT}, line(1)) + malformed + "\n" + lines(line(2))
    events, bad = read(write(tmp_path / "s.ndjsonld", text))
    assert [event.time for event in events] == [1000, 2000]
    assert [one.line for one in bad] == [3]


@pytest.mark.parametrize("opening", ['{"http://e/p":', "[", '{"@context":', '{"@list":['])
def test_nesting_never_ends_the_process(tmp_path: Path, opening: str) -> None:
    deep = '{"http://e/p":' + opening * 200_000
    path = write(tmp_path / "s.ndjsonld", deep + "\n" + lines({"@context": CONTEXT, **line(1)}))
    found = run_bounded(
        "from tests.rdf.streams import read\n"
        f"events, bad = read({str(path)!r})\n"
        "print(len(events), [one.line for one in bad])\n"
    )
    assert found.stdout.split("\n")[0] == "1 [1]"


ODD_LINES = [
    *('{"http://e/p": 1}, {"http://e/p": 2}', '{"http://e/p": 1}], "http://e/q": [{}'),
    *('{"http://e/p": [1', '{"http://e/q": 2}]}', '{"http://e/q": [1]}, {"http://e/p": [2'),
    *('{"http://e/p": 1}} {', '{"http://e/p": NaN}', '{"http://e/p": 1', "{}"),
    json.dumps({"@graph": [{"@id": "http://e/s", **line(3)}]}),
    json.dumps({"@context": {"all": "@graph"}, "all": [{"@id": "http://e/s", **line(4)}]}),
    json.dumps({"@id": "http://e/g", "@graph": [{"@id": "_:b", **line(5)}], **line(5)}),
    json.dumps({"@id": "_:b", **line(6), "http://e/p": {"@id": "_:b"}}),
    json.dumps({"@context": {"u": "http://e/u/", "@vocab": "http://e/v/"}, "u:p": 1, **line(7)}),
    json.dumps({**line(8), "name": "x" * 70_000}),
    json.dumps({**line(9), "name": [["y"]], "http://e/deep": {"http://e/p": {"http://e/p": 1}}}),
]


@given(st.lists(st.sampled_from(ODD_LINES), min_size=2, max_size=9))
def test_lines_mean_beside_others_what_they_mean_alone(odd: list[str]) -> None:
    """Lines that are parsed together, which some of them would close, open or rename."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        context = lines({"@context": CONTEXT})
        found = read(write(directory / "all.ndjsonld", context + "\n".join(odd)))
        alone = [
            read(write(directory / f"{i}.ndjsonld", context + text)) for i, text in enumerate(odd)
        ]
    wanted = [event for events, _ in alone for event in events]
    assert [(e.time, e.graph, e.triples) for e in found[0]] == [
        (e.time, e.graph, e.triples) for e in wanted
    ]
    reasons = [(i + 2, one.reason) for i, (_, bad) in enumerate(alone) for one in bad]
    assert sorted((one.line, one.reason) for one in found[1]) == reasons


def test_a_long_vocabulary_makes_no_large_event(tmp_path: Path) -> None:
    names = {f"p{i}": i for i in range(1000)}
    long = {"@context": {"@vocab": f"http://e/{'v' * 10_000}/"}, "@id": "http://e/s", **names}
    path = write(tmp_path / "s.ndjsonld", lines({"@context": CONTEXT}, long, line(1)))
    events, bad = read(path, limits=Limits(event_bytes=1_000_000))
    assert [event.time for event in events] == [1000]
    reason = "an event of more than 1000000 bytes, the limit (--max-event)"
    assert [(one.line, one.reason) for one in bad] == [(2, reason)]


def test_the_time_of_an_event_without_a_name_stays_as_written(tmp_path: Path) -> None:
    written = "1970-01-01T02:00:01.500+02:00"
    (event,), bad = read(
        write(tmp_path / "s.ndjsonld", lines({"@context": CONTEXT, **line(1), "time": written}))
    )
    assert (event.time, event.graph, bad) == (1500, None, [])
    assert f'"{written}"^^<{XSD}dateTime>' in {o for _, _, o in event.triples}
