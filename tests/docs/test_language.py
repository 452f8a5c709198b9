"""Every example of the language pages, run by the engine in process and by the brute-force oracle.

`tests.docs.language_page` reads the pages. What is compared:

- tables with the columns stream and answers: the engine's answers, in order, and the oracle's;
- tables of expressions and values: what SELECT computes;
- tables of refusals and warnings: the message of the error, or of the warning;
- files in fenced blocks, with a table of events or of complaints: what the reader makes of them;
- every fenced query, and every fragment of the grammar's tables: that it has no errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import rdflib
from rdflib.compare import isomorphic

import spaseq
from spaseq import Event, Match
from spaseq.cli import main
from tests.docs.language_page import (
    KB,
    NS,
    Example,
    Fence,
    Row,
    Section,
    Table,
    WordEvent,
    events_of,
    examples,
    expand,
    page,
)
from tests.oracle.oracle import evaluate
from tests.oracle.patterns import terms_as_written

EXAMPLES = list(examples())
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_SUFFIXES = {
    "nquads": ".nq",
    "trig": ".trig",
    "turtle": ".ttl",
    "json-ld": ".jsonld",
    "rdfm": ".rdfm",
}


def seconds(when: datetime) -> str:
    return f"{when.timestamp():g}"


# --- streams, queries and answers -----------------------------------------------------------------


def shown(trace: Iterable[tuple[str | None, str]], bindings: Iterable[tuple[str, str]]) -> str:
    """An answer as the page writes it; a trace is (event IRI, its time in seconds)."""
    names = [
        iri.removeprefix(f"{NS}event/") if iri and iri.startswith(f"{NS}event/") else f"@{time}"
        for iri, time in trace
    ]
    values = ", ".join(f"{variable} = {plain(term)}" for variable, term in bindings)
    return " ".join(names) + (f" → {values}" if values else "")


def plain(text: str) -> str:
    """The term of an N-Triples text without its datatype; numbers without trailing zeros, times
    as seconds, lists item by item."""
    if text.startswith("<"):
        return text[1:-1].removeprefix(NS)
    if text.startswith("_:"):
        return "_:"
    term = rdflib.util.from_n3(text)
    lexical = str(term)
    if lexical.startswith("["):
        items = re.findall(r'"(\w*)"', lexical)
        return f"[{' '.join(items)}]"
    datatype = str(getattr(term, "datatype", None) or "")
    if datatype.endswith("dateTime"):
        return seconds(datetime.fromisoformat(lexical.replace("Z", "+00:00")))
    computed = datatype.endswith(("decimal", "double")) and _NUMBER.fullmatch(lexical)
    return f"{float(lexical):g}" if computed else lexical


def streamset(words: str) -> dict[str, list[WordEvent]]:
    streams: dict[str, list[WordEvent]] = {"S": [], "T": []}
    for event in events_of(words):
        streams[event.stream].append(event)
    return streams


def matches_of(example: Example) -> list[Match]:
    """The engine's answers of the last query."""
    given: dict[str, Any] = {
        name: [Event(e.ntriples, e.time_ms, e.iri) for e in events]
        for name, events in streamset(example.stream).items()
        if any(f"STREAM {name} " in query for query in example.queries)
    }
    kb = {KB: rdflib.Graph().parse(data=example.kb)} if example.kb else None
    ontology = rdflib.Graph().parse(data=example.ontology) if example.ontology else None
    found = spaseq.run(
        list(example.queries),
        given,
        kb,
        runtime="local",
        ontology=ontology,
        entailment="rdfs" if ontology else None,
    )
    last = "query" if len(example.queries) == 1 else f"query{len(example.queries)}"
    return [match for match in found if match.query in (last, "http://example/" + last)]


def engine_answers(example: Example) -> list[tuple[str, str]]:
    return [
        (
            shown(
                ((t.event, seconds(t.time)) for t in match.trace),
                ((v, term.n3()) for v, term in match.bindings.items()) if named(example) else (),
            ),
            seconds(match.end),
        )
        for match in matches_of(example)
    ]


def oracle_answers(example: Example) -> list[tuple[str, str]]:
    with terms_as_written():
        triples = {
            f"{NS}{name}": [
                (e.time_ms, e.iri, list(rdflib.Graph().parse(data=e.ntriples, format="nt")))
                for e in events
            ]
            for name, events in streamset(example.stream).items()
        }
        kb = {KB: rdflib.Graph().parse(data=example.kb)} if example.kb else None
    return [
        (
            shown(
                ((item.event, f"{item.instant[0] / 1000:g}") for item in answer.trace),
                answer.bindings if named(example) else (),
            ),
            f"{answer.end[0] / 1000:g}",
        )
        for answer in evaluate(spaseq.parse(example.queries[-1]), triples, kb)
    ]


def named(example: Example) -> bool:
    """Whether SELECT names variables, whose values the page then shows."""
    star = r"SELECT\s+(DISTINCT\s+)?((ALL|NEXT|LAST|MAX|STRICT)\s+)?\*"
    return re.search(star, example.queries[-1]) is None


def expected_of(example: Example, found: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The page's answers; where it says nothing of their ends, those that were found."""
    ends = example.ends if example.ends is not None else [end for _, end in found]
    if len(ends) != len(example.answers):
        ends = [""] * len(example.answers)
    return list(zip(example.answers, ends, strict=True))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.id)
def test_example(example: Example) -> None:
    found = engine_answers(example)
    assert found == expected_of(example, found)


def in_the_oracle(example: Example) -> bool:
    """Whether the oracle can say what the answers are: it knows SELECT, no ontology, and
    aggregates of variables only."""
    beyond = "CONSTRUCT", "SUM(?b * 10)"
    return example.ontology is None and not any(w in q for w in beyond for q in example.queries)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if in_the_oracle(e)], ids=lambda e: e.id)
def test_example_by_the_oracle(example: Example) -> None:
    found = oracle_answers(example)
    assert found == expected_of(example, found)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 150


def graphs() -> Iterator[tuple[Section, Fence, int]]:
    """Graphs that CONSTRUCT makes, by the number of the answer."""
    for section in page():
        for fence in section.fences("turtle"):
            if found := re.fullmatch(r"the graph of answer (\d+)", fence.title):
                yield section, fence, int(found[1])


@pytest.mark.parametrize(("section", "fence", "number"), list(graphs()), ids=str)
def test_constructed_graph(section: Section, fence: Fence, number: int) -> None:
    (example,) = [e for e in EXAMPLES if e.id.startswith(f"{section.title}, ")]
    graph = matches_of(example)[number - 1].graph
    assert graph is not None
    wanted = rdflib.Graph().parse(data=fence.text, format="turtle")
    assert isomorphic(rdflib.Graph() + graph, wanted), graph.serialize()


CALLS = [(s, t) for s in page() for t in s.tables() if t.columns == ("call", "returns")]


@pytest.mark.parametrize(("section", "table"), CALLS, ids=[s.title for s, _ in CALLS])
def test_calls(section: Section, table: Table) -> None:
    """Events that are pushed, the watermark, and the answers that each call returns."""
    engine = spaseq.Engine(section.fences("sparql")[-1].text)
    for row in table.rows:
        call, _, argument = row.plain("call").partition(" ")
        if call == "push":
            (event,) = events_of(argument)
            found = engine.push_many([("S", Event(event.ntriples, event.time_ms, event.iri))])
        else:
            found = engine.advance(int(argument) * 1000) if argument else engine.close()
        names = [shown(((t.event, seconds(t.time)) for t in m.trace), ()) for m in found]
        assert names == ([] if row.plain("returns") == "none" else [row.plain("returns")]), row


def test_the_query_that_is_written_out() -> None:
    (section,) = [s for s in page() if s.title == "Reading the examples"]
    (fence,) = section.fences("sparql")
    (table,) = [t for t in section.tables() if "answers" in t.columns]
    assert spaseq.parse(fence.text) == spaseq.parse(expand(table.rows[0].spans("query")))


# --- queries --------------------------------------------------------------------------------------


Check = Callable[[str], list[dict[str, str]]]


@pytest.fixture
def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Check:
    """What `spaseq check` finds in a query."""

    def run(text: str) -> list[dict[str, str]]:
        path = tmp_path / "query.rq"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SystemExit):
            main(["check", "--json", str(path)])
        found: list[dict[str, str]] = json.loads(capsys.readouterr().out)
        return found

    return run


QUERIES = [(s, f) for s in page() for f in s.fences("sparql")]


@pytest.mark.parametrize(("section", "fence"), QUERIES, ids=[f"{s.title}" for s, _ in QUERIES])
def test_query_has_no_errors(section: Section, fence: Fence, check: Check) -> None:
    spaseq.parse(fence.text)
    found = check(fence.text)
    warned = "warning" in fence.title
    assert {f["severity"] for f in found} <= ({"warning"} if warned else set()), found


def rows(*columns: str) -> list[tuple[Section, Row]]:
    """The rows of all tables with these columns."""
    tables = [(s, t) for s in page() for t in s.tables() if {*columns} <= {*t.columns}]
    return [(section, row) for section, table in tables for row in table.rows]


def ids(cases: list[tuple[Section, Row]]) -> list[str]:
    return [f"{section.title}, line {row.line}" for section, row in cases]


REFUSALS, WARNINGS = rows("query", "error"), rows("query", "warning")


@pytest.mark.parametrize(("section", "row"), REFUSALS, ids=ids(REFUSALS))
def test_refusal(section: Section, row: Row, check: Check) -> None:
    found = check(expand(row.spans("query")))
    errors = [f["message"] for f in found if f["severity"] == "error"]
    assert any(row.plain("error") in message for message in errors), errors


@pytest.mark.parametrize(("section", "row"), WARNINGS, ids=ids(WARNINGS))
def test_warning(section: Section, row: Row, check: Check) -> None:
    found = check(expand(row.spans("query")))
    assert {f["severity"] for f in found} == {"warning"}, found
    assert any(row.plain("warning") in f["message"] for f in found), found


FORMS = rows("form", "example")


@pytest.mark.parametrize(("section", "row"), FORMS, ids=ids(FORMS))
def test_form_has_no_errors(section: Section, row: Row, check: Check) -> None:
    for short in row.spans("example"):
        text = expand([short if "SEQ" in short else f"{short} SEQ(A; B)"])
        assert [f for f in check(text) if f["severity"] == "error"] == []


EXPRESSIONS = rows("expression", "value")


@pytest.mark.parametrize(("section", "row"), EXPRESSIONS, ids=ids(EXPRESSIONS))
def test_expression(section: Section, row: Row) -> None:
    (expression,) = row.spans("expression")
    text = expand([f"SELECT ({expression} AS ?value) SEQ(A)"])
    graph = events_of("a7@3")[0]
    xsd = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
    streams: dict[str, Any] = {"S": [Event(graph.ntriples, graph.time_ms, graph.iri)], "T": []}
    (match,) = spaseq.run(xsd + text, streams, runtime="local")
    value = match.bindings.get("value")
    if row.plain("value") == "error":
        assert value is None
        return
    (wanted,) = rdflib.Graph().parse(data=f"@prefix {xsd[7:-1]} . [] a {row.plain('value')} .")
    assert value is not None
    assert value.to_rdflib().eq(wanted[2]), value.n3()
    assert value.to_rdflib().datatype == wanted[2].datatype


# --- files ----------------------------------------------------------------------------------------


def file_tables() -> Iterator[tuple[Section, list[Fence], Table]]:
    """Tables of events or complaints, with the files before them."""
    for section in page():
        files: list[Fence] = []
        for block in section.blocks:
            if isinstance(block, Fence) and block.language in _SUFFIXES:
                files.append(block)
            elif isinstance(block, Table) and block.columns[0] in ("event", "line"):
                yield section, files, block
                files = [] if block.columns[0] == "event" else files


FILES = list(file_tables())


@pytest.mark.parametrize(
    ("section", "fences", "table"), FILES, ids=[f"{s.title}, line {t.line}" for s, _, t in FILES]
)
def test_files(section: Section, fences: list[Fence], table: Table, tmp_path: Path) -> None:
    size = None
    for number, fence in enumerate(fences):
        name = re.match(r"[\w-]+\.\w+", fence.title)
        file = name[0] if name else f"{number}{_SUFFIXES[fence.language]}"
        (tmp_path / file).write_text(fence.text + "\n", encoding="utf-8")
        if found := re.search(r"(\d+) triples per event", fence.title):
            size = int(found[1])
    query = f"SELECT * WITHIN 1 HOURS FROM STREAM S <{NS}S> {{ SEQ(E) DEFINE GPM E ON S {{ }} }}"
    bad: list[Any] = []
    matches = spaseq.run(
        query,
        {"S": tmp_path},
        runtime="local",
        triples_per_event=size,
        on_bad=bad.append,
    )
    traced = [t for m in matches for t in m.trace]
    if table.columns[0] == "line":
        wanted = [(int(r.plain("line")), r.plain("complaint")) for r in table.rows]
        assert [(b.line, b.reason) for b in bad] == wanted
        return
    events = [((t.event or "none").removeprefix(NS), f"({seconds(t.time)}, {t.k})") for t in traced]
    assert events == [(r.plain("event"), r.plain("instant")) for r in table.rows]
