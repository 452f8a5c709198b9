"""RDF Messages in all four syntaxes: which events a log has, and what a malformed message costs."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from spaseq.limits import Limits
from spaseq.rdf.inputs.stream_options import BadInput
from tests.rdf.streams import TIME, XSD, Event, at, read, write

VERSION = 'VERSION "1.2-messages"\n'
PREFIXES = f"PREFIX : <http://e/>\nPREFIX prov: <{TIME[1:-1].removesuffix('generatedAtTime')}>\n"


def quads(name: str, seconds: int) -> str:
    """An event as N-Quads: its graph and its time."""
    return f'<http://e/s> <http://e/p> "{name}" <http://e/{name}> .\n' + (
        f"<http://e/{name}> {TIME} {at(seconds)} .\n"
    )


def names(events: list[Event]) -> list[tuple[str | None, int]]:
    return [(event.graph, event.time) for event in events]


def reasons(bad: list[BadInput]) -> list[tuple[int | None, str]]:
    return [(one.line, one.reason) for one in bad]


@pytest.mark.parametrize("name", ["s.nq", "s.rdfm", "s.nq.gz", "s.trig"])
def test_a_message_is_an_event(tmp_path: Path, name: str) -> None:
    one, two = quads("a", 1), quads("b", 2)
    if name == "s.trig":
        one = PREFIXES + ':a { :s :p "a" } :a prov:generatedAtTime 1000 .\n'
        two = ':b prov:generatedAtTime 2000 . :b { :s :p "b" }\n'
    events, bad = read(write(tmp_path / name, f"{VERSION}{one}MESSAGE\n{two}MESSAGE\n"))
    assert names(events) == [("http://e/a", 1000), ("http://e/b", 2000)]
    assert events[1].triples == (("<http://e/s>", "<http://e/p>", '"b"'),)
    assert bad == []


@pytest.mark.parametrize(("name", "end"), [("s.nt", "MESSAGE\n"), ("s.ttl", "@message .\n")])
def test_a_message_without_graphs_is_an_event_without_a_name(
    tmp_path: Path, name: str, end: str
) -> None:
    text = VERSION + end.join(f'_:b {TIME} {at(n)} .\n_:b <http://e/p> "{n}" .\n' for n in (1, 2))
    events, bad = read(write(tmp_path / name, text))
    assert names(events) == [(None, 1000), (None, 2000)]
    assert [len(event.triples) for event in events] == [2, 2]
    assert bad == []


def test_the_order_within_a_message_has_no_meaning(tmp_path: Path) -> None:
    lines = (quads("a", 1) + quads("b", 2)).splitlines(keepends=True)
    text = VERSION + "".join(lines[i] for i in (1, 3, 0, 2)) + lines[0]
    events, bad = read(write(tmp_path / "s.nq", text))
    assert names(events) == [("http://e/a", 1000), ("http://e/b", 2000)]
    assert [len(event.triples) for event in events] == [1, 1]
    assert bad == []


def test_a_graph_in_two_messages_is_two_events(tmp_path: Path) -> None:
    text = VERSION + quads("a", 1) + "MESSAGE\n" + quads("a", 2)
    events, _ = read(write(tmp_path / "s.nq", text))
    assert names(events) == [("http://e/a", 1000), ("http://e/a", 2000)]


def test_empty_messages_are_no_events(tmp_path: Path) -> None:
    text = f"{VERSION}MESSAGE\n{quads('a', 1)}MESSAGE # two\nMESSAGE\n{quads('b', 2)}MESSAGE\n"
    events, bad = read(write(tmp_path / "s.nq", text))
    assert names(events) == [("http://e/a", 1000), ("http://e/b", 2000)]
    assert bad == []


def test_prefixes_and_the_base_hold_until_they_are_set_anew(tmp_path: Path) -> None:
    text = f"""@version "1.1-messages" .
{PREFIXES}BASE <http://one/>
:a {{ <s> :p :o . :a prov:generatedAtTime 1000 }}
@message # the dot may stand further below
.
:b {{ <s> :p :o . :b prov:generatedAtTime 2000 }} MESSAGE PREFIX : <http://f/> BASE <http://two/>
:c {{ <s> :p :o . :c prov:generatedAtTime 3000 }}
"""
    events, bad = read(write(tmp_path / "s.trig", text))
    assert bad == []
    assert names(events) == [("http://e/a", 1000), ("http://e/b", 2000), ("http://f/c", 3000)]
    assert [event.triples[0][0] for event in events] == [
        "<http://one/s>",
        "<http://one/s>",
        "<http://two/s>",
    ]


def test_the_word_is_a_delimiter_only_between_statements(tmp_path: Path) -> None:
    text = f'''{VERSION}{PREFIXES}PREFIX MESSAGE: <http://e/>
:a {{ :s :p "MESSAGE", """
MESSAGE
""", 'x'@message, <MESSAGE>, MESSAGE:MESSAGE . # MESSAGE
  :a prov:generatedAtTime 1000 }}
'''
    events, bad = read(write(tmp_path / "s.trig", text), base="http://b/")
    assert [len(event.triples) for event in events] == [6]
    assert bad == []


MALFORMED = [
    ':x { :s :p "y } :x prov:generatedAtTime 5 .',
    ':x { :s :p """y } :x prov:generatedAtTime 5 .',
    ":x { :s :p",
    ":x { :s :p :o . MESSAGE :s :p :q } :x prov:generatedAtTime 5 .",
    "@message :x :y :z .",
    ":x { :s nope:p :o }",
    ":x { :s :p " + "[ :p " * 300 + "] " * 300 + "}",
]


@pytest.mark.parametrize("malformed", MALFORMED)
def test_a_malformed_message_costs_only_itself(tmp_path: Path, malformed: str) -> None:
    def event(name: str, time: int) -> str:
        return f":{name} {{ :s :p :o . :{name} prov:generatedAtTime {time} }}\nMESSAGE\n"

    text = f"{VERSION}{PREFIXES}{event('a', 1)}{malformed}\nMESSAGE\n{event('b', 2)}"
    events, bad = read(write(tmp_path / "s.trig", text))
    assert names(events) == [("http://e/a", 1), ("http://e/b", 2)]
    assert bad and {one.line for one in bad} <= {6, 7}


def test_a_malformed_line_costs_its_message(tmp_path: Path) -> None:
    text = f"{VERSION}{quads('a', 1)}MESSAGE\n{quads('x', 5)}oops\nMESSAGE\n{quads('b', 2)}"
    events, bad = read(write(tmp_path / "s.nq", text))
    assert names(events) == [("http://e/a", 1000), ("http://e/b", 2000)]
    assert [one.line for one in bad] == [7]


def test_what_belongs_to_no_event_is_reported(tmp_path: Path) -> None:
    text = f"""{VERSION}{quads("a", 1)}<http://e/a> {TIME} {at(2)} .
<http://e/b> {TIME} {at(2)} .
<http://e/s> <http://e/p> "x" .
MESSAGE
<http://e/s> <http://e/p> "x" .
MESSAGE
<http://e/s> <http://e/p> "x" <http://e/c> .
"""
    events, bad = read(write(tmp_path / "s.nq", text))
    assert names(events) == [("http://e/a", 1000)]
    assert reasons(bad) == [
        (1, "second timestamp of an event, which has the first"),
        (1, "timestamp of a graph without triples in its message"),
        (1, "1 triple of the default graph that belongs to no event"),
        (8, "event without a timestamp"),
        (10, "event without a timestamp"),
    ]


def test_a_label_stands_for_another_node_in_each_message(tmp_path: Path) -> None:
    text = VERSION + "MESSAGE\n".join(
        f'_:g {TIME} {at(n)} _:g .\n_:b <http://e/p> "{n}" _:g .\n' for n in (1, 2)
    )
    events, bad = read(write(tmp_path / "s.nq", text))
    assert names(events) == [(None, 1000), (None, 2000)]
    assert bad == []


def test_only_an_announcement_or_the_name_allows_messages(tmp_path: Path) -> None:
    text = quads("a", 1) + "MESSAGE\n" + quads("b", 2)
    events, bad = read(write(tmp_path / "s.nq", text))
    assert (len(events), sorted(one.line or 0 for one in bad)) == (0, [1, 3, 4])
    events, bad = read(write(tmp_path / "s.rdfm", text))
    assert (len(events), bad) == (2, [])


def test_an_event_beyond_the_limit_costs_only_itself(tmp_path: Path) -> None:
    large = "".join(quads("x", 5) for _ in range(50))
    text = f"{VERSION}{quads('a', 1)}MESSAGE\n{large}MESSAGE\n{quads('b', 2)}"
    events, bad = read(write(tmp_path / "s.nq", text), limits=Limits(event_bytes=1000))
    assert [event.graph for event in events] == ["http://e/a", "http://e/b"]
    assert reasons(bad) == [(4, "an event of more than 1000 bytes, the limit (--max-event)")]


def test_a_prefix_cannot_make_a_message_exceed_the_limit(tmp_path: Path) -> None:
    long = "http://e/" + "x" * 10_000
    text = f"{VERSION}PREFIX p: <{long}>\n{PREFIXES}:x {{ :s :p " + ", ".join(
        f"p:{n}" for n in range(2000)
    )
    text += " }\nMESSAGE\n:a { :s :p :o . :a prov:generatedAtTime 1 }"
    events, bad = read(write(tmp_path / "s.trig", text), limits=Limits(event_bytes=1 << 20))
    assert names(events) == [("http://e/a", 1)]
    assert len(bad) == 1 and "--max-event" in bad[0].reason


def test_a_long_literal_costs_its_triple(tmp_path: Path) -> None:
    long = f'<http://e/s> <http://e/q> "{"y" * 200}" <http://e/a> .\n'
    text = f"{VERSION}{long}{quads('a', 1)}MESSAGE\n{quads('b', 2)}"
    events, bad = read(write(tmp_path / "s.nq", text), limits=Limits(literal_bytes=100))
    assert [len(event.triples) for event in events] == [1, 1]
    assert len(bad) == 1 and "--max-literal" in bad[0].reason


def test_messages_before_damage_count(tmp_path: Path) -> None:
    text = (VERSION + "MESSAGE\n".join(quads(f"e{n}", n % 50) for n in range(4000))).encode()
    packed = gzip.compress(text)
    path = tmp_path / "s.nq.gz"
    path.write_bytes(packed[: len(packed) // 2])
    events, bad = read(path)
    assert 0 < len(events) < 4000
    assert "the rest of the file is not read" in bad[-1].reason


def test_repeated_triples_count_once(tmp_path: Path) -> None:
    once = '<http://e/s> <http://e/p> "x" <http://e/a> .\n'
    text = f'{VERSION}{once}{once}<http://e/a> {TIME} "1"^^<{XSD}integer> .\n'
    events, _ = read(write(tmp_path / "s.nq", text))
    assert [len(event.triples) for event in events] == [1]
