"""Lines of JSON-LD that a known shape reads have the quads that the parser gives each by itself."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyoxigraph as ox
from hypothesis import given
from hypothesis import strategies as st

from spaseq import thresholds
from spaseq.rdf.messages.message_shapes import learned
from tests.rdf.streams import TIME, XSD, Event, read, write
from tests.thresholds.forcing import forced

NS = "http://e/"
CONTEXT: dict[str, Any] = {
    "ex": "http://e/x/",
    "plain": f"{NS}plain",
    "double": {"@id": f"{NS}double", "@type": f"{XSD}double"},
    "decimal": {"@id": f"{NS}decimal", "@type": f"{XSD}decimal"},
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
                assert quads == parsed(line), (first, line)


@given(messages())
def test_what_a_shape_reads_is_what_the_parser_reads(lines: list[bytes]) -> None:
    check(lines)


def test_shapes_have_read_other_lines_than_their_own() -> None:
    test_what_a_shape_reads_is_what_the_parser_reads()
    assert sum(known) > len(known) // 20, (sum(known), len(known))


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


def events_of(text: str, words: str) -> tuple[list[Event], list[Any]]:
    """The events of a file and the reports, with forced thresholds."""
    before = thresholds.use(forced(words))
    try:
        with tempfile.TemporaryDirectory() as directory:
            path = write(Path(directory) / "s.ndjsonld", text)
            events, bad = read(path, base="http://base/d/")
            return events, [(each.line, each.reason, each.text) for each in bad]
    finally:
        thresholds.use(before)


@given(logs())
def test_a_file_has_the_same_events_whether_shapes_are_learned_or_not(text: str) -> None:
    learning, bad = events_of(text, "shape_messages=least")
    others, also_bad = events_of(text, "shape_messages=never")
    assert [without_labels(e) for e in learning] == [without_labels(e) for e in others]
    assert bad == also_bad


def without_labels(event: Event) -> Any:
    """An event whose blank nodes have one name; it has at most one."""
    names = (t.split(" ") if t[:2] == "_:" else [t] for triple in event.triples for t in triple)
    texts = sorted("_:" if own[0][:2] == "_:" else own[0] for own in names)
    return event.time, event.graph, texts
