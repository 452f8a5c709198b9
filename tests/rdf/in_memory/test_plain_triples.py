"""The fast parser of plain N-Triples agrees with Oxigraph's parser."""

from __future__ import annotations

import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaseq.rdf.program_events import plain_triples
from spaseq.rdf.terms.term import RDF, XSD
from tests.sizes import sizes

IRIS = [
    "<http://e/s>",
    "<https://e.example:8080/a/b?c=d#f>",
    "<urn:x-y:1>",
    "<urn:isbn:0-19>",
    "<mailto:a@b>",
    "<http://e/a%20b>",
    "<http://e/ä>",
    "<relative>",
    "<http://e/a b>",
    "<http://e/#a#b>",
    "<http://e:port/>",
    "<HTTP://e/>",
]
TYPES = [f"<{XSD}{name}>" for name in ("string", "integer", "stringy")]
TYPES += [f"<{RDF}{name}>" for name in ("langString", "dirLangString", "HTML")]
LEXICAL = ["", "x", "ä", "\U0001f600", "\\t", "\\u0041", "\t", "\x7f", "\ufffe", '"', "a . b", "<"]
TAGS = ["@en", "@EN", "@en-gb", "@en-GB", "@e", "@en-", "@english", "@de-de-1996", "@-"]

iris = st.sampled_from(IRIS)
blanks = st.sampled_from(["_:a", "_:b1", "_:1", "_:b.c", "_:a_b", "_:ä", "_:A"])
literals = st.builds(
    lambda lexical, rest: f'"{lexical}"{rest}',
    st.sampled_from(LEXICAL),
    st.sampled_from(["", *TAGS, *(f"^^{t}" for t in TYPES + IRIS[:4])]),
)
spaces = st.sampled_from(["", " ", " ", "  ", "\t", "\x0b", "\u00a0"])
ends = st.sampled_from(["\n", "\n", "\r\n", "\r", "", " # comment\n", "\n\n"])
lines = st.tuples(
    st.sampled_from(["", "", "", " "]),
    st.one_of(iris, blanks),
    spaces,
    iris,
    spaces,
    st.one_of(iris, blanks, literals),
    spaces,
    st.sampled_from([".", ".", ".", "", ".."]),
    ends,
).map("".join)


def parsed(text: str) -> list[tuple[str, ...]] | None:
    try:
        quads = [*ox.parse(text, ox.RdfFormat.N_TRIPLES)]
    except (SyntaxError, ValueError):
        return None
    return [(str(q.subject), str(q.predicate), str(q.object)) for q in quads]


@sizes(300, 600, 1500)
def test_what_is_read_at_once_is_what_a_parser_reads(examples: int) -> None:
    @settings(max_examples=examples, database=None)
    @given(st.lists(lines, max_size=3).map("".join))
    def check(text: str) -> None:
        found = plain_triples(text)
        assert found is None or found == parsed(text)

    check()


@pytest.mark.parametrize("end", ["\n", ""])
def test_usual_triples_are_read_at_once(end: str) -> None:
    text = (
        f'<http://e/s> <http://e/p#q> "12.5"^^<{XSD}decimal> .\n'
        f'_:b1 <{RDF}type> "süß"@de .\n'
        f"<urn:uuid:1-2> <http://e/p>\t<https://e:80/?q=1#f>.{end}"
    )
    assert plain_triples(text) == parsed(text) is not None
    assert len(plain_triples(text) or ()) == 3
