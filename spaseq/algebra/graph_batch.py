"""Graph events that CONSTRUCT makes of many answers, as columns (docs/meaning.md#construct), and
the triples that a template makes of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import combinations, pairwise
from re import match
from string import ascii_letters, digits
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spaseq.algebra.answer_batch import AnswerBatch, AnswerSequence
from spaseq.algebra.answers import Answer
from spaseq.algebra.construct import (
    Template,
    can_be_object,
    can_be_predicate,
    can_be_subject,
    event_iri,
    label_of,
)
from spaseq.algebra.joined_texts import (
    Part,
    PlacedTexts,
    bytes_of,
    joined,
    joined_runs,
)
from spaseq.algebra.nodes import PatternTerm, is_reserved
from spaseq.compiled.arrays import Bools, Int32s, Int64s
from spaseq.lang import ast
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.term_columns import (
    UNBOUND,
    TermColumn,
    TextArray,
    side_by_side,
    text_array,
)
from spaseq.rdf.columns.term_tables import ArrayTerms
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.terms.term import Triple, is_rdf_term

TripleColumns: TypeAlias = tuple[TermColumn, TermColumn, TermColumn]
"""Subjects, predicates and objects [n]."""

_SCHEME = "<[A-Za-z][A-Za-z0-9+.-]*:"
_PLAIN = f"{ascii_letters}{digits}._~/#-:+".encode()
"""Characters that are allowed at any place in an IRI behind its scheme."""

_SURE_IRI = r"^<[A-Za-z][A-Za-z0-9+.-]*:[A-Za-z0-9._~/#-]*>$"
_SURE_LITERAL = r'^"[\s\S]*[^>]$'
_ALLOWED = (
    (can_be_subject, _SURE_IRI),
    (can_be_predicate, _SURE_IRI),
    (can_be_object, f"(?:{_SURE_IRI})|(?:{_SURE_LITERAL})"),
)
"""For each place in a triple: which terms RDF allows there, and most of these at once."""

_answer = partial(tuple.__new__, Answer)


def column_of(answers: AnswerBatch, term: PatternTerm) -> TermColumn:
    """A term of a template for each answer."""
    if isinstance(term, str):
        return TermColumn(np.zeros(len(answers), np.int32), text_array([term]))
    if term.name in (*answers.names.singles, *answers.names.groups):
        return answers.column(term.name)
    return TermColumn.unbound(len(answers))


def are_allowed(triple: TripleColumns) -> Bools:
    """[n] whether the terms of a triple are bound, and allowed by RDF where they stand."""
    is_allowed: Bools = np.logical_and.reduce(
        [
            _allowed(column, *test_and_sure)
            for column, test_and_sure in zip(triple, _ALLOWED, strict=True)
        ]
    )
    return is_allowed


def event_batch(
    stream_counter: tuple[str, InstantCounter],
    time: Int64s,
    names: EventNames,
    triples: Sequence[TripleColumns],
    kept: Bools,
    joined: bool,
) -> EventBatch:
    """Events of a stream, given with its counter; `kept` [triples, n] says which triples they have.

    Unless they are `joined`, equal terms may have several codes.
    """
    stream, counter = stream_counter
    columns, n = [column for triple in triples for column in triple], len(time)
    if joined:
        whole = TermColumn.concat(columns)
        codes, terms = whole.codes, whole.terms
    else:
        codes, terms = side_by_side(columns)
    codes = codes.reshape(len(triples), 3, n)
    s, p, o = (codes[:, at].T[kept.T] for at in range(3))
    start = np.zeros(n + 1, np.int64)
    np.cumsum(kept.sum(axis=0), out=start[1:])
    return EventBatch(stream, time, counter.assign(time), names, start, s, p, o, ArrayTerms(terms))


def _are_sure_iris(texts: TextArray) -> bool:
    """Whether all texts are IRIs with the scheme of the first one, and plain characters only."""
    scheme = match(_SCHEME, texts[0].as_py()) if len(texts) else None
    if scheme is None or not pc.all(pc.starts_with(texts, scheme.group())).as_py():
        return False
    if not pc.all(pc.ends_with(texts, ">")).as_py():
        return False
    return bytes_of(texts)[0].tobytes().translate(None, _PLAIN) == b"<>" * len(texts)


def _are_sure_literals(texts: TextArray) -> bool:
    """Whether all texts are literals with the datatype or language of the first one, if allowed."""
    first = texts[0].as_py() if len(texts) else ""
    return (
        first.startswith('"')
        and is_rdf_term(first)
        and pc.all(pc.starts_with(texts, '"')).as_py()
        and pc.all(pc.ends_with(texts, _end_of(first))).as_py()
    )


def _end_of(literal: str) -> str:
    """The text after a literal's lexical form, with the quote before it."""
    return literal[literal.rindex('"') :]


def _allowed(column: TermColumn, test: Callable[[str], bool], sure: str) -> Bools:
    """In which rows a term is bound and allowed."""
    used = column.compact()
    terms: TextArray = used.terms
    if _are_sure_iris(terms) or (test is can_be_object and _are_sure_literals(terms)):
        bound: Bools = used.codes != UNBOUND
        return bound
    fine: Any = pc.match_substring_regex(terms, sure).to_numpy(zero_copy_only=False).copy()
    unsure = np.flatnonzero(~fine)
    for code, text in zip(unsure.tolist(), terms.take(unsure).to_pylist(), strict=True):
        fine[code] = test(f'"{_end_of(text)}' if text[0] == '"' else text)
    is_allowed: Bools = np.append(fine, False)[used.codes]  # the last is that of unbound rows
    return is_allowed


@dataclass(frozen=True, slots=True, eq=False)
class GraphBatch(AnswerSequence):
    """n answers with their graph events; `Answer`s are made at their first use.

    Attributes:
        answers: the answers without graphs.
        events: the IRIs [n] of the graphs.
        triples: the triples of the template, for each answer.
        kept: bool [triples, n], whether the graph of an answer has a triple; it has at least one.
    """

    answers: AnswerBatch
    events: TextArray
    triples: Sequence[TripleColumns]
    kept: Bools

    def __len__(self) -> int:
        return len(self.answers)

    def part(self, begin: int, end: int) -> Self:
        rows = slice(begin, end)
        triples = [(s.take(rows), p.take(rows), o.take(rows)) for s, p, o in self.triples]
        events, answers = self.events.slice(begin, end - begin), self.answers.part(begin, end)
        return replace(
            self, answers=answers, events=events, triples=triples, kept=self.kept[:, rows]
        )

    def made(self) -> Iterator[Answer]:
        texts = [zip(*(each.texts() for each in triple), strict=True) for triple in self.triples]
        graphs: Iterator[tuple[Triple, ...]] = zip(*texts, strict=True)
        if not self.kept.all():
            masks = self.kept.T.tolist()
            graphs = (
                tuple([triple for triple, is_kept in zip(graph, mask, strict=True) if is_kept])
                for graph, mask in zip(graphs, masks, strict=True)
            )
        given = zip(self.answers, graphs, self.events.to_pylist(), strict=True)
        return (_answer((*answer[:6], graph, event)) for answer, graph, event in given)

    def batch(self, stream: str, counter: InstantCounter) -> EventBatch:
        """The graphs as events of a stream, which `counter` numbers."""
        names, time = EventNames(self.events), self.answers.end_times
        return event_batch((stream, counter), time, names, self.triples, self.kept, joined=True)


def makes_columns(template: Template, answers: AnswerBatch) -> bool:
    """Whether `graphs_of` can make the graphs of answers."""
    bound = {*answers.names.singles, *answers.names.groups}
    return (
        template.graph is None
        and not template.composed
        and not any(is_reserved(name) and name in bound for name in template.variables)
    )


def graphs_of(answers: AnswerBatch, template: Template, query: str) -> GraphBatch:
    """The answers of the query with this name whose graphs have a triple; see `constructed`."""
    blank = [name for name in template.variables if is_reserved(name)]
    keys = _keys(query, answers) if blank else None
    texts = [] if keys is None else keys.to_pylist()
    labels = {name: TermColumn.of([label_of(key, name) for key in texts]) for name in blank}
    triples: list[TripleColumns] = []
    for pattern in template.triples:
        s, p, o = (
            labels[term.name]
            if isinstance(term, ast.Var) and term.name in labels
            else column_of(answers, term)
            for term in pattern.terms
        )
        triples.append((s, p, o))
    kept = np.stack([are_allowed(triple) for triple in triples])
    for (one, first), (other, second) in combinations(enumerate(triples), 2):
        kept[other] &= ~(kept[one] & _are_equal(first, second))
    rows = np.flatnonzero(kept.any(axis=0))
    if len(rows) < len(answers):
        answers, kept = answers.take(rows), kept[:, rows]
        triples = [(s.take(rows), p.take(rows), o.take(rows)) for s, p, o in triples]
        keys = None if keys is None else keys.take(pa.array(rows))
    if keys is None:
        keys = _keys(query, answers)
    events = joined([event_iri(template.stream, ""), keys], len(answers))
    return GraphBatch(answers, events, triples, kept)


def _are_equal(first: TripleColumns, second: TripleColumns) -> Bools:
    """[n] whether two triples are equal."""
    is_equal = np.ones(len(first[0]), np.bool_)
    for position in (1, 2, 0):  # predicates differ most often
        one, other = first[position], second[position]
        if len(one.terms) == len(other.terms) == 1 and one.terms[0] != other.terms[0]:
            return np.zeros(len(one), np.bool_)
        codes = TermColumn.concat([one, other]).codes
        is_equal &= codes[: len(one)] == codes[len(one) :]
    return is_equal


# --- keys -----------------------------------------------------------------------------------------

_DIGEST = 16  # bytes


def _keys(query: str, answers: AnswerBatch) -> TextArray:
    """A text that is unique to each answer of the query with this name; see `construct.key_of`."""
    data, ends = bytes_of(_order_keys(answers))
    begun = blake2b(f"{query}\0".encode(), digest_size=_DIGEST)
    text, digests = data.tobytes(), []
    for first, last in pairwise(ends.tolist()):
        digest = begun.copy()
        digest.update(text[first:last])
        digests.append(digest.digest())
    return _in_hexadecimal(b"".join(digests), _DIGEST)


def _order_keys(answers: AnswerBatch) -> TextArray:
    """`Answer.order_key` of all answers."""
    names, rows = answers.names, answers.rows
    if names.groups:
        return text_array([answer.order_key() for answer in answers])
    instants = _hexadecimal(rows.time, rows.k)
    count = len(names.streams)
    steps = text_array([f"{gpm}\1{stream}\1" for gpm in names.gpms for stream in names.streams])
    step = PlacedTexts(steps, rows.gpm.astype(np.int32) * count + rows.stream)
    parts: list[Part] = [
        PlacedTexts(instants, answers.last.astype(np.int32)),
        PlacedTexts(instants, answers.first.astype(np.int32)),
        *joined_runs(joined([instants, step], len(rows)), answers.trace, ""),
        "\0",
    ]
    for name in names.singles:
        terms = PlacedTexts.of(answers.column(name))
        bound = np.where(terms.places >= 0, np.int32(0), np.int32(UNBOUND))
        parts += [_where(f"{name}\1", bound), terms, _where("\1", bound)]
    return joined([*parts, "\0"], len(answers))


def _where(text: str, places: Int32s) -> PlacedTexts:
    return PlacedTexts(text_array([text]), places)


def _hexadecimal(time: Int64s, k: Int32s) -> TextArray:
    """Instants [n] as 24 digits each, which order as these do."""
    digits = np.empty(len(time), [("time", ">u8"), ("k", ">u4")])
    digits["time"] = time.astype(np.uint64) + np.uint64(2**63)
    digits["k"] = k
    return _in_hexadecimal(digits.tobytes(), digits.itemsize)


def _in_hexadecimal(data: bytes, size: int) -> TextArray:
    """The digits of each `size` bytes."""
    ends, text = np.arange(0, 2 * len(data) + 1, 2 * size), data.hex().encode()
    return pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(text))
