"""Answers as rows that are equal in all copies: those of the oracle, and lines of a run."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rdflib import XSD

from spaseq.lang import ast
from spaseq.rdf.terms.term import CDT_LIST, list_items, list_lexical
from tests.construct.reference import construct, renamed, texts
from tests.oracle.answers import AFTER_ALL, Answer
from tests.oracle.comparison import by_value
from tests.oracle.copies.files import Written, copy_of
from tests.oracle.copies.layouts import Layout
from tests.oracle.draw_events import NS
from tests.oracle.oracle import evaluate
from tests.oracle.partial import Partial, partials
from tests.oracle.strategies import Case

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
OWN = re.compile(rf"({re.escape(NS)}k[12])-(\d+)")
NAMED = re.compile(r'\{"query": "([^"]*)", ')
MOMENT = re.compile(rf'"(.*)"\^\^<{XSD.dateTime}>')

Row = Hashable


class Wrong(Exception):
    """An answer that no copy can have."""


@dataclass(frozen=True)
class Expected:
    """The answers of one copy, in order: as rows, and with what orders them among other copies'.

    A key is ((end in ms, whether it is a close), [(event without the copy, GPM, stream)]). Answers
    of CONSTRUCT and partial matches have none, and are compared copy by copy.
    """

    rows: list[Row]
    keys: list[tuple[Any, ...]]


def later(case: Case, ms: int) -> Case:
    """The case with all events later."""
    return replace(
        case,
        streams={
            iri: [(time + ms, name, triples) for time, name, triples in events]
            for iri, events in case.streams.items()
        },
    )


def expected(query: ast.Query, case: Case, ms: int) -> Expected:
    """The oracle's answers on the case with all events later, told as of the case itself."""
    moved = later(case, ms)
    if isinstance(query.form, ast.Construct):
        made = texts(construct(query, moved.streams, moved.kb))
        rows: list[Row] = [(time - ms, tuple(renamed(graph))) for time, graph in made]
        return Expected(rows, [])
    found = evaluate(query, moved.streams, moved.kb)
    return Expected([_row(a, ms) for a in found], [_key(a, ms) for a in found])


def expected_partials(query: ast.Query, case: Case, ms: int) -> Expected:
    """The oracle's partial matches on the case with all events later."""
    moved = later(case, ms)
    found = partials(query, moved.streams, moved.kb)
    return Expected([_partial_row(p, ms) for p in found], [])


def _row(a: Answer, ms: int) -> Row:
    bindings = tuple(sorted((v, _told(v, x, ms)) for v, x in a.bindings))
    trace = tuple((i.gpm, i.stream, (i.event or "").removeprefix(NS)) for i in a.trace)
    return a.first[0] - ms, a.end[0] - ms, bindings, trace


def _partial_row(p: Partial, ms: int) -> Row:
    closing = None if p.closing is None else p.closing[0] - ms
    return _row(p.answer, ms), p.reached, tuple(p.waiting), closing


def _key(a: Answer, ms: int) -> tuple[Any, ...]:
    trace = [((i.event or "").removeprefix(NS), i.gpm, i.stream) for i in a.trace]
    return (a.end[0] - ms, a.end[1] == AFTER_ALL), trace


def _told(variable: str, text: str, ms: int) -> Hashable:
    """A term; a moment is told as of the case."""
    if found := MOMENT.fullmatch(text):
        return "moment", _ms(found[1]) - ms
    if text.endswith(f"^^<{CDT_LIST}>"):
        lexical = text[1 : text.rindex('"^^')]
        return tuple(list_items(lexical.replace('\\"', '"').replace("\\\\", "\\")))
    return by_value(text) if variable.startswith("e") else text


def _ms(text: str) -> float:
    return (datetime.fromisoformat(text) - EPOCH) / timedelta(milliseconds=1)


# --- a run's lines --------------------------------------------------------------------------------


def lines_by_query(path: Path) -> dict[str, list[str]]:
    """The lines of a run's answers by the query's name, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            named = NAMED.match(line)
            if named is None:
                raise Wrong(f"no answer of a query: {line}")
            found[named[1]].append(line)
    return found


@dataclass(frozen=True)
class Reader:
    """Reads the lines of a run's answers as (copy, row)."""

    layout: Layout
    written: Written
    tumbling: bool

    def rows(self, lines: Iterable[str], partial: bool) -> list[tuple[int, Row]]:
        """The rows of a query's lines, answers or partial matches, in order."""
        told = self._partial if partial else self._answer
        return [told(json.loads(line)) for line in lines]

    def _answer(self, answer: dict[str, Any]) -> tuple[int, Row]:
        trace = [(i["gpm"], i["stream"], *copy_of(i["event"])) for i in answer["trace"]]
        copies = {copy for _, _, _, copy in trace}
        if len(copies) != 1:
            raise Wrong(f"events of several copies: {answer}")
        for item in answer["trace"]:
            if (int(_ms(item["time"])), item["k"]) != self.written.places[item["event"]]:
                raise Wrong(f"another time or k than {self.written.places[item['event']]}: {item}")
        copy = copies.pop()
        offset, end = self.layout.offset(copy), _ms(answer["end"])
        at_close = self.tumbling and answer["end"] != answer["trace"][-1]["time"]
        end -= self.layout.coarse(copy) if at_close else offset
        if "graph" in answer:
            return copy, (end, tuple(renamed(self._graph(answer["graph"], copy))))
        bindings = tuple(
            sorted(
                (v, _told(v, self._own(_text(term), copy), offset))
                for v, term in answer["bindings"].items()
            )
        )
        start = _ms(answer["start"]) - offset
        return copy, (start, end, bindings, tuple((g, s, e) for g, s, e, _ in trace))

    def _partial(self, answer: dict[str, Any]) -> tuple[int, Row]:
        copy, row = self._answer(answer)
        closed = answer["closed"]
        if closed is not None:
            closed = _ms(closed)
            closed -= self.layout.coarse(copy) if self.tumbling else self.layout.offset(copy)
        return copy, (row, answer["reached"], tuple(answer["waiting"]), closed)

    def _graph(self, graph: Iterable[dict[str, Any]], copy: int) -> Iterator[tuple[str, str, str]]:
        for t in graph:
            s, p, o = (self._own(_text(t[n]), copy) for n in ("subject", "predicate", "object"))
            yield s, p, o

    def _own(self, text: str, copy: int) -> str:
        """A term with the case's key in the place of the copy's own."""
        if not self.layout.own_keys or NS not in text:
            return text
        if any(int(number) != copy for _, number in OWN.findall(text)):
            raise Wrong(f"a key of another copy than {copy}: {text}")
        return OWN.sub(r"\1", text)


def _text(term: Any) -> str:
    """A term of SPARQL's JSON results as N-Triples text."""
    if isinstance(term, list):
        items = list_lexical([None if item is None else _text(item) for item in term])
        term = {"type": "literal", "value": items, "datatype": str(CDT_LIST)}
    match term["type"]:
        case "uri":
            return f"<{term['value']}>"
        case "bnode":
            return f"_:{term['value']}"
        case "triple":
            places = ("subject", "predicate", "object")
            return f"<<( {' '.join(_text(term['value'][place]) for place in places)} )>>"
    text = term["value"].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    if "datatype" in term:
        return f'"{text}"^^<{term["datatype"]}>'
    return f'"{text}"@{term["xml:lang"]}' if "xml:lang" in term else f'"{text}"'


# --- all copies -----------------------------------------------------------------------------------


def wanted(
    first: Expected, others: Expected, layout: Layout, written: Written, tumbling: bool
) -> list[tuple[int, Row]]:
    """The rows of all copies, in the order in which a run gives them."""
    if layout.separate and layout.apart > 0 and _in_turn(first, others, layout):
        return [
            (copy, row) for copy in range(layout.count) for row in (others if copy else first).rows
        ]
    found = []
    for copy in range(layout.count):
        of = others if copy else first
        offset, coarse = layout.offset(copy), layout.coarse(copy)
        for index, ((end, at_close), trace) in enumerate(of.keys):
            places = [(written.places[f"{NS}{event}-{copy}"], g, s) for event, g, s in trace]
            late = end + (coarse if tumbling and at_close else offset)
            last = (late, AFTER_ALL) if at_close else (late, places[-1][0][1])
            found.append((last, places[0][0], places, index, copy, of.rows[index]))
    found.sort(key=lambda each: each[:5])
    return [(copy, row) for *_, copy, row in found]


def _in_turn(first: Expected, others: Expected, layout: Layout) -> bool:
    """Whether every answer of a copy comes before those of the next one."""
    if not layout.base:
        return True
    ends = [end for of in (first, others) for (end, _), _ in of.keys]
    return not others.keys or max(ends) < layout.apart + min(ends)


def by_copy(rows: Sequence[tuple[int, Row]]) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = defaultdict(list)
    for copy, row in rows:
        found[copy].append(row)
    return found
