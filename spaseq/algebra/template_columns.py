"""The triples that a template makes of many answers, as columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from re import match
from string import ascii_letters, digits
from typing import Any, TypeAlias

import numpy as np
import pyarrow.compute as pc

from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.construct import can_be_object, can_be_predicate, can_be_subject
from spaseq.algebra.nodes import PatternTerm
from spaseq.compiled.arrays import Bools, Int64s
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
from spaseq.rdf.terms.term import is_rdf_term

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
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return bytes(data[int(ends[0]) : int(ends[-1])]).translate(None, _PLAIN) == b"<>" * len(texts)


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
    """What follows a literal's lexical form, with the quote before it."""
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
