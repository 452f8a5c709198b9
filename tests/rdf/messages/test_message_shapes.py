"""Lines of JSON-LD that a known shape reads have the quads that the parser gives each by itself."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from hypothesis import given
from hypothesis import strategies as st

from spaseq import thresholds
from spaseq.limits import Limits
from spaseq.rdf.messages.message_lines import MARKED
from spaseq.rdf.messages.message_quads import LoggedLines
from spaseq.rdf.messages.message_shapes import (
    KnownShapes,
    MessageShape,
    learned,
    with_numbered_labels,
)
from tests.rdf.streams import TIME, XSD, Event, read, write
from tests.thresholds.forcing import forced

NS = "http://e/"
CONTEXT: dict[str, Any] = {
    "ex": "http://e/x/",
    "plain": f"{NS}plain",
    "double": {"@id": f"{NS}double", "@type": f"{XSD}double"},
    "decimal": {"@id": f"{NS}decimal", "@type": f"{XSD}decimal"},
    "integer": {"@id": f"{NS}integer", "@type": f"{XSD}integer"},
    "float": {"@id": f"{NS}float", "@type": f"{XSD}float"},
    "list": {"@id": f"{NS}list", "@container": "@list"},
    "date": {"@id": f"{NS}date", "@type": f"{XSD}dateTime"},
    "ref": {"@id": f"{NS}ref", "@type": "@id"},
    "kind": {"@id": f"{NS}kind", "@type": "@vocab"},
    "json": {"@id": f"{NS}json", "@type": "@json"},
    "german": {"@id": f"{NS}german", "@language": "de"},
    "many": {"@id": f"{NS}many", "@container": "@set"},
    "id": "@id",
    "type": "@type",
    "Car": f"{NS}types/Car",
}
KEYS = [*(set(CONTEXT) - {"ex", "Car", "id", "type"}), "unknown", "ex:compact", "http://e/whole"]
TEXTS = st.one_of(
    st.sampled_from(
        ["", "Car", "x", "a b", "5", "ex:a", "é", "\u00a0", "\ufffe", "\x7f", "\ud7ff"]
    ),
    st.sampled_from(['"', "\\", "%b", "%", "\t", "\U0001f600", "http://e/é", "a\\u0041", "true"]),
    st.text(max_size=5),
)
NUMBERS = st.one_of(
    st.sampled_from([0, -0.0, 0.0, 21.0, 0.05, -12.34, 1e3, 1e21, 1e-7, 999999999999999, 1.5e300]),
    st.integers(-(10**17), 10**17),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-1000, 1000, places=3).map(float),
)
ODD_IRIS = """
    http://e/a http://e/a/ http://e.org:80/a http://e/../a http://e/a#b http://e/a#b#c http://e/%41
    https://e http://e/a?b=c urn:a:b urn:a:b/c ex:a ex:b-1 ex:a/b _:b ex: Car rel ../up #frag
    http://e/a.b http://e/a. mailto:a@b ex://a http://e:x/
"""
IRIS = st.one_of(
    st.sampled_from(ODD_IRIS.split()),
    st.from_regex(r"http://e/[a-z0-9./#~_-]{0,6}", fullmatch=True),
)
VALUES: dict[str, tuple[st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "text": (st.sampled_from(["a", "b c", "2020-01-01T00:00:00Z", "Stra\u00dfe"]), TEXTS),
    "number": (st.sampled_from([0, 7, -12, 21.5, 0.25, 3.0]), NUMBERS),
    "iri": (st.sampled_from(["http://e/a1", "http://e/b2/c", "http://f.org/x#y"]), IRIS),
    "prefixed": (st.sampled_from(["ex:a", "ex:b_2"]), IRIS),
    "flag": (st.just(True), st.sampled_from([True, False, None])),
}
"""By kind: values as most lines have them, and all others."""


def parsed(text: bytes) -> bytes:
    quads = ox.parse(text, ox.RdfFormat.JSON_LD, base_iri="http://base/d/")
    found = ox.serialize(quads, format=ox.RdfFormat.N_QUADS)
    assert found is not None
    return found


def numbered(line: bytes) -> bytes:
    """The quads of a line, with the labels that its event has."""
    return with_numbered_labels(parsed(line))


@st.composite
def nodes(draw: st.DrawFn, depth: int = 2) -> Callable[[st.DrawFn], dict[str, Any]]:
    """A function that draws nodes with the same keys, and values of the same kinds."""
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=4, unique=True))
    of_key: dict[str, Callable[[st.DrawFn], Any]] = {}
    for key in keys:
        if depth and draw(st.integers(0, 3)) == 0:
            of_key[key] = draw(nodes(depth - 1))
            continue
        kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=2))
        wrap = draw(st.sampled_from(["", "", "", "@id", "@value", "list"]))
        of_key[key] = lambda draw, kinds=kinds, wrap=wrap: _value(draw, kinds, wrap)
    if draw(st.booleans()):
        of_key[draw(st.sampled_from(["type", "@type"]))] = lambda draw: _one(draw, "iri")
    named = draw(st.sampled_from(["@id", "id", "@id", ""]))
    named_by = draw(st.sampled_from(["iri", "prefixed"]))

    def node(draw: st.DrawFn) -> dict[str, Any]:
        own = {named: _one(draw, named_by)} if named else {}
        return {**own, **{key: value(draw) for key, value in of_key.items()}}

    return node


def _one(draw: st.DrawFn, kind: str) -> Any:
    usual, other = VALUES[kind]
    return draw(usual if draw(st.integers(0, 9)) else other)


def _value(draw: st.DrawFn, kinds: list[str], wrap: str) -> Any:
    values = [_one(draw, kind) for kind in kinds]
    if wrap == "list":
        return values
    return values[0] if not wrap else {wrap: values[0]}


@st.composite
def messages(draw: st.DrawFn) -> list[bytes]:
    """Lines of which several may have one shape."""
    node = draw(nodes())
    context: Any = dict(CONTEXT)
    if draw(st.integers(0, 4)) == 0:
        context["http:" if draw(st.booleans()) else "ex:a"] = "http://other/"
    if draw(st.booleans()):
        context["@vocab"] = "http://vocab/"
    is_named = draw(st.booleans())
    ensured = draw(st.booleans())
    lines = []
    for _ in range(draw(st.integers(2, 5))):
        value = node(draw)
        if is_named:
            top = {"@id": _one(draw, "iri"), "plain": _one(draw, "text")}
            value = {**top, "@graph": [value]}
        line = json.dumps({"@context": context, **value}, ensure_ascii=ensured)
        lines.append(line.encode("utf-8", "surrogatepass"))
    return lines


known: list[int] = []


def check(lines: list[bytes]) -> None:
    for first in lines:
        try:
            shape = learned(first, json.loads(first), parsed)
        except (SyntaxError, ValueError):
            continue
        if shape is None:
            continue
        for line in lines:
            quads = shape.quads(line)
            known.append(quads is not None and line != first)
            if quads is not None:
                assert quads == numbered(line), (first, line)


@given(messages())
def test_what_a_shape_reads_is_what_the_parser_reads(lines: list[bytes]) -> None:
    check(lines)


def test_shapes_have_read_other_lines_than_their_own() -> None:
    test_what_a_shape_reads_is_what_the_parser_reads()
    assert sum(known) > len(known) // 20, (sum(known), len(known))


# --- lines that almost have a shape -------------------------------------------------------------

NEARLY: dict[str, Any] = {
    "@context": CONTEXT,
    "@id": "http://e.org/a/b#c",
    "@type": "Car",
    "plain": "a b",
    "unknown": 3,
    "double": 0.5,
    "decimal": 7,
    "ex:compact": [1, -2.25, "x", {"@id": "urn:e:b", "plain": True}],
    "ref": "ex:a",
    "date": "2020-01-01T00:00:00Z",
    "german": {"@value": "Stra\u00dfe"},
    "many": 'a "b" \\ \n\t \u0001',
    "json": {"a": 1},
}
PIECES = [
    *(
        b'"',
        b"\\",
        b"\\u0041",
        b"\\n",
        b"\n",
        b"\x7f",
        b"\xc3\xa9",
        b"\xc3",
        b"\xa9",
        b"\xef\xbf\xbe",
    ),
    *(
        b"\xef\xbf\xbd",
        b"\xed\xa0\x80",
        b"\xf0\x9f\x98\x80",
        b"\xf4\x90\x80\x80",
        b"\xc0\x80",
        b"\0",
    ),
    *(
        b" ",
        b"\t",
        b"\r",
        b",",
        b":",
        b"/",
        b"#",
        b".",
        b"..",
        b"-",
        b"_",
        b"+",
        b"0",
        b"1",
        b"9",
        b"00",
    ),
    *(
        b"e",
        b"E5",
        b".0",
        b".50",
        b"e0",
        b"{",
        b"}",
        b"[",
        b"]",
        b"null",
        b"true",
        b"\\u007F",
        b"\\ud83d\\uDE00",
        b"\\ud83d",
        b"\\uFFFE",
        b"\\u0000",
        b"\\/",
        b"\\b",
        b"@",
        b"_:",
        b"%",
        b"",
    ),
    *(
        b'"plain": 1, ',
        b'"@id": "_:b", ',
        b'"@type": "@id", ',
        b"http://",
        b"ex:",
        b"9" * 15,
        b"?",
        b"<",
    ),
]

NEARLY_LINE = json.dumps(NEARLY, ensure_ascii=False).encode()
BEGIN = NEARLY_LINE.index(b'"@id": "http://e.org')
INSIDE = [
    place
    for m in re.finditer(rb'(?<=: )"?[^",}]+', NEARLY_LINE[BEGIN:])
    for place in range(*m.span())
]
"""Places behind the context, and those of them inside of values."""


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(NEARLY_LINE) - BEGIN) | st.sampled_from(INSIDE),
            st.integers(0, 2),
            st.sampled_from(PIECES) | st.sampled_from([b"a", b"b", b"7", b"Z"]),
        ),
        min_size=1,
        max_size=2,
    )
)
def test_a_line_that_is_changed_at_some_places_is_what_the_parser_reads(
    changes: list[tuple[int, int, bytes]],
) -> None:
    shape, changed = shape_of(NEARLY_LINE), NEARLY_LINE
    for place, count, piece in changes:
        at = BEGIN + place
        changed = changed[:at] + piece + changed[at + count :]
    quads = shape.quads(changed)
    nearly.append(quads is not None)
    if quads is not None:
        assert quads == numbered(changed), changed


nearly: list[bool] = []


def test_some_of_these_lines_have_the_shape_and_others_not() -> None:
    test_a_line_that_is_changed_at_some_places_is_what_the_parser_reads()
    assert 10 < sum(nearly) < len(nearly) - 10, (sum(nearly), len(nearly))


@cache
def shape_of(line: bytes) -> MessageShape:
    found = learned(line, json.loads(line), parsed)
    assert found is not None
    return found


NUMBER_KEYS = "plain", "double", "decimal", "integer", "float"
NUMBER_LINE = json.dumps({"@context": CONTEXT, **dict.fromkeys(NUMBER_KEYS, 0)}).encode()
NUMBER_LINE = NUMBER_LINE.replace(b": 0", b": %b")


@given(
    st.from_regex(r"-?[0-9]{1,8}(\.[0-9]{0,9})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
    | st.from_regex(r"-?(0|[1-9][0-9]{0,17})", fullmatch=True)
    | st.from_regex(r"-?0\.0{0,12}[0-9]{0,4}0{0,2}", fullmatch=True),
    st.integers(0, 4),
)
def test_numbers_are_written_as_the_parser_writes_them(text: str, place: int) -> None:
    texts = [b"1.5", b"2.5", b"3", b"4", b"5"]
    shape = shape_of(NUMBER_LINE % (*texts,))
    texts[place] = text.encode()
    line = NUMBER_LINE % (*texts,)
    quads = shape.quads(line)
    numbers.append(quads is not None)
    if quads is not None:
        assert quads == numbered(line), text


numbers: list[bool] = []


def test_most_of_these_numbers_are_read() -> None:
    test_numbers_are_written_as_the_parser_writes_them()
    assert sum(numbers) > len(numbers) // 4, (sum(numbers), len(numbers))


READ = "0 7 -7 21.0 21.50 -0.5 0.000 1000.0 123456789012345 13.404954123456 0.00000000000001 100"
NOT_READ = "-0 -0.0 -0.00 1e0 1E5 1234567890123456 1.123456789012345 01 1. .5 + true null {}"


def test_which_numbers_are_read() -> None:
    shape = shape_of(NUMBER_LINE % (b"1.5", b"2.5", b"3", b"4", b"5"))
    for text in READ.split():
        assert shape.quads(NUMBER_LINE % (text.encode(), b"1", b"2", b"3", b"4")) is not None, text
    for text in NOT_READ.split():
        assert shape.quads(NUMBER_LINE % (text.encode(), b"1", b"2", b"3", b"4")) is None, text


def test_lines_with_many_shapes_and_long_quads_are_read_in_order() -> None:
    """Shapes that come and go, and quads for which there is no room at first."""
    known = KnownShapes()
    lines = [
        b'{"http://e/p%d": %d, "http://e/q": "%b"}' % (i % 40, i, b"x" * (i * 97 % 3000))
        for i in range(400)
    ]
    lines[7::50] = [b'{"http://e/p": {"http://e/q": 1}}'] * len(lines[7::50])
    for line in lines[:40]:
        if b'p": {' not in line:
            known.add(shape_of(line))
    text = b" \n".join(b"  " + line for line in lines)
    log = LoggedLines.of(bytearray(text), 1, Limits())
    done, read = 0, 0
    while done < len(log):
        for first, end, quads in known.spans(log, done, 3):
            assert first == done
            if quads is not None:
                assert quads.text == MARKED.join(map(numbered, lines[first:end]))
                assert [*quads.lines] == [*range(first + 1, end + 1)]
                read += end - first
            done = end
    assert 200 < read < 392  # of 40 shapes 32 are known


def test_a_line_or_its_quads_may_be_too_long() -> None:
    line = b'{"@id": "http://e/%b", "http://e/p": 1, "http://e/q": 2}'
    known = KnownShapes()
    known.add(shape_of(line % b"a"))
    texts = [line % (b"a" * size) for size in (1, 10, 400, 1000)]
    limits = Limits(event_bytes=500)
    log = LoggedLines.of(bytearray(b"\n".join(texts)), 1, limits)
    found = [(first, end, quads is not None) for first, end, quads in known.spans(log, 0, 9)]
    assert found == [(0, 2, True), (2, 4, False)]


# --- files ----------------------------------------------------------------------------------------

TIMES = {"time": {"@id": TIME[1:-1], "@type": f"{XSD}dateTime"}}
OTHERS = [
    {"@context": {**TIMES, "speed": f"{NS}pace"}},
    {"@context": {**TIMES, "speed": f"{NS}speed", "of": {"@id": f"{NS}of", "@type": "@id"}}},
    {},
    {"time": "1970-01-01T00:00:01Z", "speed": {"of": "http://e/1"}},  # with a blank node
    {"time": "1970-01-01T00:00:01Z", "@context": {"speed": f"{NS}haste"}, "speed": 1},
    {"speed": 3},
]
"""Contexts of later lines, and lines of other shapes; the last one has no time."""


@st.composite
def logs(draw: st.DrawFn) -> str:
    """Lines of two shapes, among which others stand."""
    lines = [json.dumps(OTHERS[1])]
    for second in range(draw(st.integers(3, 12))):
        at = {"time": f"1970-01-01T00:00:{second:02}Z"}
        kind = draw(st.integers(0, 6))
        if kind < 3:
            lines.append(json.dumps({**at, "speed": draw(NUMBERS)}))
        elif kind < 5:
            graph = [{"@id": _one(draw, "iri"), "of": "http://e/road", "speed": draw(TEXTS)}]
            lines.append(json.dumps({"@id": _one(draw, "iri"), **at, "@graph": graph}))
        elif kind < 6:
            lines.append(json.dumps(draw(st.sampled_from(OTHERS))))
        else:
            lines.append(draw(st.sampled_from(["{", "[1]", '{"time": }', "", '{"speed": 1} 2'])))
    return "\n".join(lines) + "\n"


def events_of(
    text: str, words: str, base: str | None = "http://base/d/"
) -> tuple[list[Event], list[Any]]:
    """The events of a file and the reports, with forced thresholds."""
    before = thresholds.use(forced(words))
    try:
        with tempfile.TemporaryDirectory() as directory:
            path = write(Path(directory) / "s.ndjsonld", text)
            events, bad = read(path, base=base)
            return events, [(each.line, each.reason, each.text) for each in bad]
    finally:
        thresholds.use(before)


@given(logs())
def test_a_file_has_the_same_events_whether_shapes_are_learned_or_not(text: str) -> None:
    learning, bad = events_of(text, "shape_messages=least")
    others, also_bad = events_of(text, "shape_messages=never")
    assert [without_labels(e) for e in learning] == [without_labels(e) for e in others]
    assert bad == also_bad


def test_references_come_back_after_one_that_was_relative_to_nothing() -> None:
    """Without a base, a relative IRI gives no triple, and an absolute one at its place does."""
    lines = [{**OTHERS[1]}]
    for second, of in enumerate(("here", "there", "http://e/road")):
        lines.append({"@id": "http://e/s", "time": f"1970-01-01T00:00:0{second}Z", "of": of})
    text = "\n".join(map(json.dumps, lines))
    events, _ = events_of(text, "shape_messages=least", base=None)
    assert [len(event.triples) for event in events] == [1, 1, 2]


def without_labels(event: Event) -> Any:
    """An event whose blank nodes have one name; it has at most one."""
    names = (t.split(" ") if t[:2] == "_:" else [t] for triple in event.triples for t in triple)
    texts = sorted("_:" if own[0][:2] == "_:" else own[0] for own in names)
    return event.time, event.graph, texts
