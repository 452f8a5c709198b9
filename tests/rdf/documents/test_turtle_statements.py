"""Turtle by the kernel: the triples of each syntax, in the parser's order; what it leaves."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from typing import Any, cast

import pyoxigraph as ox
import pytest

from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.documents import turtle_statements
from spaseq.rdf.documents.turtle_statements import TurtleStatements
from spaseq.rdf.terms.term import from_pyoxigraph
from tests.rdf.streams import XSD

PREFIXES = "@prefix : <http://e/> . PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def read(
    text: str | bytes, base: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[list[tuple[str, ...]], TurtleStatements]:
    """The triples that the kernel reads, and the statements, which know the rest."""
    data = text.encode() if isinstance(text, str) else text
    statements = TurtleStatements(io.BytesIO(data), base, limits, 0)
    found = []
    for texts, triples in statements:
        terms = texts.to_pylist()
        found += [tuple(terms[code] for code in triple) for triple in triples.tolist()]
    return found, statements


def numbered(triples: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Triples with blank nodes numbered in order of appearance."""
    labels: dict[str, str] = {}
    return [
        tuple(
            labels.setdefault(term, f"_:{len(labels)}") if term[:2] == "_:" else term
            for term in triple
        )
        for triple in triples
    ]


def parsed(text: bytes, base: str | None = None) -> list[tuple[str, ...]]:
    """The triples by pyoxigraph."""
    return [
        (str(q.subject), str(q.predicate), from_pyoxigraph(q.object))
        for q in ox.parse(text, ox.RdfFormat.TURTLE, base_iri=base)
    ]


@pytest.mark.parametrize(
    ("text", "triples"),
    [
        ("<http://e/a> a <urn:x> .", [("<http://e/a>", TYPE, "<urn:x>")]),
        (":a :p :b.c, : ; :q :d:e .", [
            ("<http://e/a>", "<http://e/p>", "<http://e/b.c>"),
            ("<http://e/a>", "<http://e/p>", "<http://e/>"),
            ("<http://e/a>", "<http://e/q>", "<http://e/d:e>"),
        ]),
        (":a :p 1 ; :q 1.50 ; :r -1e5 ; :s true .", [
            ("<http://e/a>", "<http://e/p>", f'"1"^^<{XSD}integer>'),
            ("<http://e/a>", "<http://e/q>", f'"1.50"^^<{XSD}decimal>'),
            ("<http://e/a>", "<http://e/r>", f'"-1e5"^^<{XSD}double>'),
            ("<http://e/a>", "<http://e/s>", f'"true"^^<{XSD}boolean>'),
        ]),
        (':a :p "x" , "y"@en-GB , "\\u00e9"^^xsd:string , "2"^^xsd:int .', [
            ("<http://e/a>", "<http://e/p>", '"x"'),
            ("<http://e/a>", "<http://e/p>", '"y"@en-gb'),
            ("<http://e/a>", "<http://e/p>", '"é"'),
            ("<http://e/a>", "<http://e/p>", f'"2"^^<{XSD}int>'),
        ]),
        (':a :p """two\n"lines\\"""" .', [
            ("<http://e/a>", "<http://e/p>", '"two\\n\\"lines\\""'),
        ]),
        ("_:x :p [ :q [ :r 1 ] ; :s _:x ] .", [
            ("_:0", "<http://e/r>", f'"1"^^<{XSD}integer>'),
            ("_:1", "<http://e/q>", "_:0"),
            ("_:1", "<http://e/s>", "_:2"),
            ("_:2", "<http://e/p>", "_:1"),
        ]),
        ("[ :p :a ] :q [] . [ :p :b ] . # end", [
            ("_:0", "<http://e/p>", "<http://e/a>"),
            ("_:0", "<http://e/q>", "_:1"),
            ("_:2", "<http://e/p>", "<http://e/b>"),
        ]),
        (":straße :größe :日本 .", [
            ("<http://e/straße>", "<http://e/größe>", "<http://e/日本>"),
        ]),
    ],
)  # fmt: skip
def test_the_kernel_reads(text: str, triples: list[tuple[str, ...]]) -> None:
    found, statements = read(PREFIXES + text)
    assert numbered(found) == triples
    assert statements.rest is None


@pytest.mark.parametrize(
    "statement",
    [
        "<rel> :p :b .",
        ":a :p ( 1 2 ) .",
        ":a :p 'x' .",
        ":a :p <<( :a :p :b )>> .",
        ":a :p :b {| :q 1 |} .",
        ":a :p :b\\,c .",
        ":a :p 1.e5 .",
        ':a :p "x"@en--ltr .',
        "@version '1.2' .",
        ":a :p .",
        ":a ; :p :b .",
        ":a :p :b ]",
        "[] .",
        "unknown:a :p :b .",
        ':a :p "line\nend" .',
        ':a :p "\\q" .',
        "_:a _:p _:b .",
        '"x" :p :b .',
        ":a :p :b",
    ],
)
def test_it_leaves_the_rest_from_a_statement_on(statement: str) -> None:
    found, statements = read(f"{PREFIXES}:a :p :b .\n\n  {statement}\n:c :p :d .")
    assert found == [("<http://e/a>", "<http://e/p>", "<http://e/b>")]
    assert statements.rest is not None
    directives, _, rest = statements.rest.read().decode().partition("\n")
    assert "PREFIX xsd:" in directives
    assert rest.lstrip().startswith(statement)
    assert statements.lines + 1 + rest[: rest.index(statement)].count("\n") == 3


def test_a_limit_leaves_the_statement_that_exceeds_it() -> None:
    text = PREFIXES + ':a :p "1234" . :a :p "12345", 123456 .'
    assert len(read(text)[0]) == 3
    assert len(read(text, limits=Limits(literal_bytes=6))[0]) == 1
    nested = PREFIXES + ":a :p [ :p [ :p 1 ] ] ."
    assert len(read(nested, limits=Limits(nesting=2))[0]) == 3
    assert not read(nested, limits=Limits(nesting=1))[0]
    assert not read(PREFIXES + "#" * 50 + "\n:a :p 1 .", limits=Limits(event_bytes=50))[0]


def test_long_prefixes_need_more_room_than_the_text() -> None:
    names = "".join(f":{i} : : .\n" for i in range(3000))
    found, _ = read(f"@prefix : <http://e/{'x' * 4000}/> .\n{names}")
    assert [s[-6:].lstrip("x/") for s, _, _ in found] == [f"{i}>" for i in range(3000)]


def test_a_new_prefix_and_base_take_the_place_of_the_old_ones() -> None:
    found, statements = read(
        ":a :p :b . @prefix : <x/> . @base <y/> . PREFIX :<z/> :a :p 1. <r> :p 2 .".replace(
            ":a", "@prefix : <http://one/> . :a", 1
        ),
        base="http://two/",
    )
    assert [s for s, _, _ in found] == ["<http://one/a>", "<http://two/y/z/a>"]
    assert statements.rest is not None
    last = parsed(statements.rest.read(), "http://two/")
    assert [s for s, _, _ in last] == ["<http://two/y/r>"]


def texts(seed: int) -> Iterator[bytes]:
    """Documents at random."""
    pick = random.Random(seed)

    def one(words: str) -> str:
        return pick.choice(words.split(" "))

    def node(depth: int) -> str:
        if pick.random() < 0.2 and depth < 4:
            return f"[ {properties(depth + 1) if pick.random() < 0.8 else ''}]"
        return one(":a :b.c p:d <http://e/é> _:x _:y.z : :%41 p:ä")

    def literal() -> str:
        body = "".join(one('a é \\n \\" \\u00e9 ; . [ # \\\\') for _ in range(pick.randrange(4)))
        quoted = pick.choice(['"%s"', '"""%s\n""" ', '"""%s"x\r\n"""']) % body
        return quoted.rstrip() + pick.choice(["", "@en", "@de-AT", "^^p:t", "^^<urn:t>"])

    def value(depth: int) -> str:
        kind = pick.random()
        if kind < 0.5:
            return node(depth)
        return (
            literal() if kind < 0.8 else one("1 -2.5 3e4 true ( ) 'x'" if kind > 0.98 else "1 .5")
        )

    def properties(depth: int) -> str:
        pairs = []
        for _ in range(pick.randrange(1, 4)):
            values = (value(depth) for _ in range(pick.randrange(1, 3)))
            pairs.append(f"{one('a :p p:q')} {' , '.join(values)}")
        return pick.choice([" ; ", ";\n", "\t; ; "]).join(pairs) + pick.choice(["", " ;"])

    for _ in range(150):
        statements = (f"{node(0)} {properties(0)} .\n" for _ in range(pick.randrange(1, 8)))
        yield f"{PREFIXES}@prefix p: <http://p/#> .\n{''.join(statements)}".encode()


@pytest.mark.parametrize("seed", range(4))
def test_the_triples_are_those_of_pyoxigraph_in_its_order(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = 0
    for text in texts(seed):
        monkeypatch.setattr(
            turtle_statements, "CHUNK_BYTES", random.Random(text).randrange(99, 999)
        )
        found, statements = read(text)
        try:
            expected = parsed(text)
        except SyntaxError as error:
            assert statements.rest is not None
            with pytest.raises(SyntaxError) as raised:
                parsed(statements.rest.read())
            assert cast("Any", raised.value).lineno + statements.lines == error.lineno
            continue
        rest = [] if statements.rest is None else parsed(statements.rest.read())
        assert numbered(found + rest) == numbered(expected)
        compared += len(found)
    assert compared > 500
