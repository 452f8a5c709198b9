"""Documents that would exhaust the stack or the memory: each is bad input, and the events before
the hostile place are read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spaseq.limits import Limits
from spaseq.rdf.documents.brackets import syntax_of
from spaseq.rdf.events.graph_times import LOST_QUAD
from spaseq.rdf.inputs.formats import Format
from tests.hostile import run_bounded
from tests.rdf.streams import XSD, at, read, write

SECONDS = 120
PREFIXES = f"""@prefix : <http://e/> .
@prefix prov: <http://www.w3.org/ns/prov#> .
@prefix xsd: <{XSD}> .
"""
RDF = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/"'
    ' xmlns:prov="http://www.w3.org/ns/prov#">\n'
)
GOOD_NODE = (
    "<rdf:Description><e:p>x</e:p><prov:generatedAtTime "
    f'rdf:datatype="{XSD}long">7</prov:generatedAtTime></rdf:Description>\n'
)
NESTED = "nested more than 200 deep; that is the limit (--max-nesting)"
ENTITIES = "entity declarations are refused"


def trig(*texts: str) -> str:
    """An event for each text, the triples of its graph."""
    return PREFIXES + "".join(
        f":{i} prov:generatedAtTime {at(i)} . :{i} {{ {text} }}\n" for i, text in enumerate(texts)
    )


def jsonld(*values: str) -> str:
    """An event for each JSON text, the value of a property."""
    time = {"@value": "1970-01-01T00:00:01Z", "@type": XSD + "dateTime"}
    parts = [
        f'{{"@id": "http://e/{i}", "http://www.w3.org/ns/prov#generatedAtTime": '
        f'{json.dumps(time)}, "@graph": [{{"@id": "http://e/s", "http://e/p": {value}}}]}}'
        for i, value in enumerate(values)
    ]
    return "[" + ",\n".join(parts) + "]"


def rdfxml(text: str) -> str:
    """A good event of two triples, then a text."""
    return f"{RDF}{GOOD_NODE}{text}</rdf:RDF>"


def bounded(path: Path, **options: Any) -> tuple[list[str | None], list[tuple[int | None, str]]]:
    """The graphs of the events of a stream, and (line, reason) of its bad inputs, read in a process
    of 1 GiB."""
    done = run_bounded(
        "import json; from tests.rdf.streams import read; from spaseq.limits import Limits\n"
        f"events, bad = read({str(path)!r}, **{options!r})\n"
        "print(json.dumps([[e.graph for e in events], [[b.line, b.reason] for b in bad]]))",
        seconds=SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    events, bad = json.loads(done.stdout)
    return events, [(line, reason) for line, reason in bad]


def deep(opening: str, inside: str, closing: str, count: int = 20_000) -> str:
    return opening * count + inside + closing * count


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("s.trig", trig(":s :p 1", ":s :p 2", ":s :p " + deep("<<( :a :p ", ":o", " )>>")), 6),
        ("s.trig", trig(":s :p 1", ":s :p 2", deep("<< :a :p ", ":o", " >>") + " :p 1"), 6),
        ("s.trig", trig(":s :p 1", ":s :p 2", ":s :p 1 " + deep("{| :p 1 ", "", " |}")), 6),
        ("s.trig", trig(":s :p 1", ":s :p 2", ":s :p " + deep("( ", "", ")")), 6),
        ("s.trig", trig(":s :p 1", ":s :p 2", ":s :p " + deep("[ :p ", "1", "]")), 6),
        ("s.jsonld", jsonld("1", "2", deep('{"http://e/p":', "1", "}")), 3),
        ("s.jsonld", jsonld("1", "2", deep('{"@list":[', "1", "]}")), 3),
        ("s.jsonld", jsonld("1", "2", deep('{"@graph":', '{"http://e/p": 1}', "}")), 3),
        ("s.jsonld", jsonld("1", "2", deep('{"@context":{"a":', "1", "}}")), 3),
    ],
    ids=lambda value: value[-8:] if isinstance(value, str) and len(value) < 10 else "",
)
def test_deep_nesting_is_refused_before_the_parser_sees_it(
    tmp_path: Path, name: str, text: str, line: int
) -> None:
    events, bad = bounded(write(tmp_path / name, text))
    assert events[:1] == ["http://e/0"]
    assert bad[0] == (line, f"the rest of the file is not read: {NESTED}")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "text",
    [
        deep("<e:D><e:p>", "", "</e:p></e:D>"),
        "<e:D>" + deep('<e:p rdf:parseType="Resource">', "", "</e:p>") + "</e:D>",
        '<e:D><e:p rdf:parseType="Literal">' + deep("<a>", "", "</a>") + "</e:p></e:D>",
    ],
    ids=["elements", "resources", "XML literal"],
)
def test_deep_elements_are_refused(tmp_path: Path, text: str) -> None:
    path = write(tmp_path / "s.rdf", rdfxml(text))
    events, bad = bounded(path, triples_per_event=2)
    assert events == [None]
    assert bad[0] == (3, f"the rest of the file is not read: {NESTED}")


@pytest.mark.parametrize("depth", [7, 8])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.ttl", lambda n: PREFIXES + ":s :p " + deep("[ :p ", ":o", " ]", n) + " ."),
        ("s.ttl", lambda n: PREFIXES + ":s :p " + deep("<<( :a :p ", ":o", " )>>", n) + " ."),
        ("s.jsonld", lambda n: deep('{"http://e/p":', "1", "}", n)),
        ("s.rdf", lambda n: RDF + deep("<e:D>", "", "</e:D>", n - 1) + "</rdf:RDF>"),
    ],
    ids=["blank nodes", "triple terms", "objects", "elements"],
)
def test_the_limit_is_exact(
    tmp_path: Path, name: str, text: Callable[[int], str], depth: int
) -> None:
    path = write(tmp_path / name, text(depth))
    _, bad = read(path, triples_per_event=1, arrival_time=True, limits=Limits(nesting=7))
    assert any("nested more than 7 deep" in b.reason for b in bad) == (depth == 8)


def test_brackets_in_strings_iris_and_comments_do_not_count(tmp_path: Path) -> None:
    brackets = "[(<<(" * 100
    iri = "<http://e/" + "(" * 300 + ">"
    texts = (
        f':s :p "{brackets}", \'{brackets}\', """{brackets}"a""", \'\'\'{brackets}\'\'\' .',
        f"# {brackets}\n :s :p {iri}, " + '"\\"[[" .' * 1,
        ":s :p :a" + "\\(" * 300 + ", " + "(), [], " * 300 + "1",
    )
    events, bad = read(write(tmp_path / "s.trig", trig(*texts)))
    assert (len(events), bad) == (3, [])
    value = json.dumps("[{" * 300 + '\\"')
    events, bad = read(write(tmp_path / "s.jsonld", jsonld(value, "[" + "[]," * 300 + "1]")))
    assert (len(events), bad) == (2, [])
    text = (
        "<!-- " + "<a>" * 300 + " -->" + '<e:D e:p="' + "&lt;>" * 300 + '"/>'
        "<e:D><e:p><![CDATA[" + "<a>" * 300 + "]]></e:p></e:D>"
    )
    events, bad = read(write(tmp_path / "s.rdf", rdfxml(text)), triples_per_event=2)
    assert [b.reason for b in bad] == ["event without a timestamp"] * 2


DEFINITIONS = "".join(
    f'<!ENTITY l{i} "{"".join(f"&l{i - 1};" for _ in range(10)) or "lol"}">' for i in range(10)
)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "declared",
    [
        f"<!DOCTYPE x [{DEFINITIONS}]>",
        '<!DOCTYPE x [<!ENTITY l9 "lol">]>',
        '<!DOCTYPE x [<!ENTITY % l9 "lol"> %l9;]>',
        '<!DOCTYPE x [<!-- <!ENTITY l9 "lol"> -->]>',
        '<!DOCTYPE x SYSTEM ">" [ <!ENTITY l9 "lol">]>',
        '<!doctype x [ <!ELEMENT a (b)>\n\n<!ENTITY l9 "lol"> ]>',
        '<!DOCTYPE x [<!ENTITY l9 SYSTEM "file:///etc/hostname">]>',
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_entity_declarations_are_refused(tmp_path: Path, declared: str, encoding: str) -> None:
    text = declared + rdfxml("<e:D><e:p>&l9;</e:p></e:D>")
    path = write(tmp_path / "s.rdf", text.encode(encoding))
    events, bad = bounded(path, triples_per_event=2)
    assert events == []
    assert [reason for _, reason in bad if encoding == "utf-16" or ENTITIES in reason]


def test_a_declaration_after_the_first_element_is_refused(tmp_path: Path) -> None:
    text = rdfxml('<!DOCTYPE x [<!ENTITY l9 "lol">]><e:D><e:p>&l9;</e:p></e:D>')
    events, bad = read(write(tmp_path / "s.rdf", text), triples_per_event=2)
    assert len(events) == 1
    assert "a document type declaration after the first element" in bad[0].reason


def test_a_declaration_that_two_reads_divide_is_refused(tmp_path: Path) -> None:
    for shift in range(40):
        start = f"<!--{' ' * ((1 << 16) - 40 + shift)}-->"
        text = start + '<!DOCTYPE x [<!ENTITY l "lol">]>' + rdfxml("")
        events, bad = read(write(tmp_path / "s.rdf", text), triples_per_event=2)
        assert events == []
        assert ENTITIES in bad[0].reason


def test_an_external_entity_or_document_type_reads_no_file(tmp_path: Path) -> None:
    secret = write(tmp_path / "secret", '<!ENTITY a "SECRET">SECRET')
    for declared in (
        f'<!DOCTYPE x SYSTEM "{secret.as_uri()}">',
        f'<!DOCTYPE x [<!ENTITY a SYSTEM "{secret.as_uri()}">]>',
        f'<!DOCTYPE x [<!ENTITY % a SYSTEM "{secret.as_uri()}"> %a;]>',
    ):
        text = declared + rdfxml("<e:D><e:p>&a;</e:p></e:D>")
        events, bad = read(write(tmp_path / "s.rdf", text), triples_per_event=2)
        assert bad
        assert "SECRET" not in repr((events, bad))


def test_a_document_type_without_entities_is_read(tmp_path: Path) -> None:
    text = '<?xml version="1.0"?><!DOCTYPE rdf:RDF SYSTEM "x.dtd">' + rdfxml("")
    events, bad = read(write(tmp_path / "s.rdf", text), triples_per_event=2)
    assert (len(events), bad) == (1, [])


# --- sizes ----------------------------------------------------------------------------------------

BIG = 17 << 20
LITERAL = "a literal, name or comment over 16 MiB, which is not read (--max-literal)"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "head", "unit", "reason"),
    [
        ("s.trig", trig(":s :p 1", ":s :p 2") + ':s :p "', "a", LITERAL),
        ("s.trig", trig(":s :p 1", ":s :p 2") + ':s :p """', 'a"', LITERAL),
        ("s.trig", trig(":s :p 1", ":s :p 2") + "#", "a", LITERAL),
        ("s.trig", trig(":s :p 1", ":s :p 2") + "<http://", "a", LITERAL),
        ("s.trig", trig(":s :p 1", ":s :p 2") + "@prefix ", "a", "a name or number of more than"),
        ("s.trig", trig(":s :p 1", ":s :p 2"), "\n", "no event ends within 10000000 bytes"),
        ("s.trig", trig(":s :p 1", ":s :p 2"), "@prefix : <http://e/> .\n", "no event ends within"),
        ("s.trig", trig(":s :p 1", ":s :p 2"), "\0", "a name or number of more than"),
        ("s.jsonld", jsonld("1", "2")[:-1] + ',{"http://e/p":"', "a", LITERAL),
        ("s.jsonld", jsonld("1", "2")[:-1] + ',{"http://e/p":', "1", "a name or number of more"),
        ("s.jsonld", jsonld("1", "2")[:-1] + ",", " ", "no event ends within"),
        ("s.jsonld", jsonld("1", "2")[:-1] + ',{"http://e/p":[1', ",1", "more than 156250 values"),
        ("s.jsonld", jsonld("1", "2")[:-1] + ',{"http://e/p":[1', ",{}", "more than 156250 values"),
    ],
)
def test_a_document_without_an_end_is_read_with_little_memory(
    tmp_path: Path, name: str, head: str, unit: str, reason: str
) -> None:
    text = head + unit * (BIG // len(unit))
    path = write(tmp_path / f"{name}.gz", text)
    events, bad = bounded(path, limits=Limits(event_bytes=10_000_000))
    assert events[:1] == ["http://e/0"]
    assert any(reason in why for _, why in bad), bad


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<e:D><e:p>" + "a" * BIG, LITERAL),
        ("<!--" + "a" * BIG, LITERAL),
        ('<e:D e:p="' + "a" * BIG, LITERAL),
        ("<a" + "a" * BIG, LITERAL),
        ("<e:D><e:p><![CDATA[" + "]" * BIG, LITERAL),
        ('<e:D><e:p rdf:parseType="Literal">' + "<a/>" * 200_000, "more than 156250 values"),
        ('<e:D><e:p rdf:parseType="Collection">' + "<e:D/>" * 200_000, "more than 156250 values"),
    ],
    ids=["text", "comment", "attribute", "tag", "CDATA", "XML literal", "collection"],
)
def test_an_element_without_an_end_is_read_with_little_memory(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = write(tmp_path / "s.rdf.gz", RDF + GOOD_NODE + text)
    events, bad = bounded(path, triples_per_event=2, limits=Limits(event_bytes=10_000_000))
    assert len(events) >= 1
    assert any(reason in why for _, why in bad), bad


def test_an_event_that_is_too_large_is_bad_and_the_next_is_read(tmp_path: Path) -> None:
    large = ":s :p " + ", ".join(str(i) for i in range(30_000))
    path = write(tmp_path / "s.trig", trig(":s :p 1", large, ":s :p 2"))
    events, bad = read(path, limits=Limits(event_bytes=500_000))
    assert [e.graph for e in events] == ["http://e/0", "http://e/2"]
    reason = "an event of more than 500000 bytes, the limit (--max-event)"
    assert [b.reason for b in bad] == [reason]
    assert len(read(path)[0]) == 3


def test_a_large_event_of_triples_is_bad_and_the_next_is_read(tmp_path: Path) -> None:
    def event(n: int) -> str:
        values = ", ".join(str(i) for i in range(29_999))
        return f":s :p {values} ; prov:generatedAtTime {at(n)} .\n"

    path = write(tmp_path / "s.ttl", PREFIXES + event(1) + event(2))
    events, bad = read(path, triples_per_event=30_000, limits=Limits(event_bytes=500_000))
    assert events == []
    assert len(bad) == 2
    assert len(read(path, triples_per_event=30_000)[0]) == 2


def test_a_literal_that_is_too_long_costs_its_event_only(tmp_path: Path) -> None:
    limits = Limits(literal_bytes=100)
    text = trig(":s :p 1", f':s :p "{"é" * 51}", 2', f':s :p <<( :a :p "{"a" * 101}" )>>, 3')
    events, bad = read(write(tmp_path / "s.trig", text), limits=limits)
    assert [len(e.triples) for e in events] == [1]
    assert sorted(b.reason for b in bad) == [
        "a literal of 101 bytes; the limit is 100 (--max-literal)",
        "a literal of 102 bytes; the limit is 100 (--max-literal)",
        LOST_QUAD,
        LOST_QUAD,
    ]
    text = rdfxml(f"<e:D><e:p>{'a' * 101}</e:p></e:D>" + GOOD_NODE)
    events, bad = read(write(tmp_path / "s.rdf", text), triples_per_event=2, limits=limits)
    assert [len(e.triples) for e in events] == [2, 2]
    assert "a literal of 101 bytes" in bad[0].reason


def test_the_time_for_nested_elements_is_linear_in_their_number(tmp_path: Path) -> None:
    def seconds(count: int) -> float:
        nested = deep("<e:D><e:p>", "", "</e:p></e:D>", 90)
        path = write(tmp_path / "s.rdf", RDF + nested * count + "</rdf:RDF>")
        start = time.process_time()
        _, bad = read(path, triples_per_event=180, arrival_time=True)
        assert not [b for b in bad if "nested" in b.reason]
        return time.process_time() - start

    seconds(1)
    # quadratic: 64 times the time for 8 times the elements
    assert seconds(400) < 32 * min(seconds(50) for _ in range(3))


@given(st.text(alphabet='""[]{}ab,:\\', max_size=20))
def test_brackets_of_json_are_those_outside_strings(text: str) -> None:
    signs, inside, escaped, start = "", False, False, 0
    for place, sign in enumerate(text):
        if inside:
            inside, escaped = escaped or sign != '"', not escaped and sign == "\\"
        elif sign == '"':
            inside, start = True, place
        else:
            signs += {"[": "(", "{": "(", "]": ")", "}": ")"}.get(sign, "")
    end = start if inside else len(text)
    assert syntax_of(Format.JSONLD).of(text.encode()) == (signs.encode(), end)
