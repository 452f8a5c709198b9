"""Events from a program: graphs of several libraries, and N-Triples text, one by one or many at a
time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, Union

import numpy as np
import pyoxigraph as ox

from spaseq.compiled.arrays import Int32s, Int64s
from spaseq.errors import InputError
from spaseq.limits import DEFAULT_LIMITS, Limits
from spaseq.rdf.columns.event_batch import EventBatch, EventNames
from spaseq.rdf.columns.term_tables import ListedTerms
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.sizes import UNREADABLY_LONG, line_excess, long_event, nested_too_deep
from spaseq.rdf.inputs.stream_options import syntax_reason
from spaseq.rdf.lines.arenas import ArenaPool
from spaseq.rdf.lines.chunks import MAX_CHUNK_BYTES, chunk_of
from spaseq.rdf.lines.line_batches import LineBatches
from spaseq.rdf.lines.statements import StatementReader
from spaseq.rdf.terms.term import (
    LANG_STRING,
    RDF,
    XSD_STRING,
    Triple,
    from_pyoxigraph,
    from_rdflib,
    iri_text,
)
from spaseq.rdf.terms.triple_terms import is_triple_term
from spaseq.text_patterns import late_pattern, possessive

if TYPE_CHECKING:
    import rdflib

PlainTriple: TypeAlias = tuple[str, str, str]

# All quantifiers are possessive: each text has one reading, so backtracking cannot help.
_PATH = r"[A-Za-z0-9._~!$&'()*+,;=:@/-]*+"
_PORT = r"(?::[0-9]{1,4}+)?+"
_HTTP = rf"https?+://[A-Za-z0-9.-]++{_PORT}(?:/{_PATH})?+(?:\?{_PATH})?+(?:#{_PATH})?+"
_URN = rf"urn:[a-z0-9]{{2,32}}+:[A-Za-z0-9]{_PATH}"
_IRI = rf"<(?:{_HTTP}|{_URN})>"
_BLANK = r"_:[A-Za-z][A-Za-z0-9]*+"
_CHARACTERS = r'[^"\\\x00-\x1f\x7f\ud800-\udfff\ufffe\uffff]*+'
_NOT_WRITTEN = "|".join(map(re.escape, (f"{XSD_STRING}>", f"{LANG_STRING}>", f"{RDF}dir")))
_TYPED = rf"\^\^(?!<(?:{_NOT_WRITTEN})){_IRI}"
_LITERAL = rf'"{_CHARACTERS}"(?:{_TYPED}|@[a-z]{{2,3}}+(?:-[a-z]{{2}})?+)?+'
_OBJECT = rf"{_IRI}|{_LITERAL}|{_BLANK}"
_LINE = possessive(
    rf"^({_IRI}|{_BLANK})[ \t]++({_IRI})[ \t]++({_OBJECT})[ \t]*+\.[ \t]*+$", re.MULTILINE
)


def plain_triples(text: str) -> list[PlainTriple] | None:
    """The triples of N-Triples text in canonical form; None if the text is not plain.

    >>> plain_triples('<http://e/s> <http://e/p> "x"@en .')
    [('<http://e/s>', '<http://e/p>', '"x"@en')]
    >>> plain_triples('<http://e/s> <http://e/p> "\\\\t" .')
    """
    triples: list[PlainTriple] = _LINE.findall(text)
    lines = text.count("\n") + (text[-1:] != "\n")
    return triples if len(triples) == lines else None


class TextEvents:
    """Builds batches of one stream's events; compare `program_events.batch_from_events`.

    It keeps only triples whose predicate is one of `predicates` (IRIs; None keeps all).
    """

    def __init__(
        self,
        stream: str,
        counter: InstantCounter,
        predicates: tuple[str, ...] | None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._limits = limits
        self.predicates = None if predicates is None else frozenset(predicates)
        constants = tuple(map(iri_text, predicates or ()))
        self._reader = StatementReader(
            False, ArenaPool(1), constants, only_constants=predicates is not None, limits=limits
        )
        self._batches = LineBatches(stream, counter, batch_events=2**31, skip_time=False)

    def batch(self, events: Sequence[tuple[int, str | None, str]]) -> EventBatch:
        """A batch of one or more events (time in ms, graph IRI or None, N-Triples text).

        Raises:
            InputError: a text is not N-Triples, or exceeds a limit; or the texts are too large for
                one batch.
        """
        texts = [_encoded(event[2]) for event in events]
        if max(map(len, texts)) > self._limits.event_bytes:
            raise InputError(f"not a graph: {long_event(self._limits)}")
        if sum(map(len, texts)) > MAX_CHUNK_BYTES:
            raise InputError(f"more than {MAX_CHUNK_BYTES} bytes in one batch of events")
        starts = np.cumsum([0, *(len(text) + 1 for text in texts)])
        whole = np.frombuffer(b"\n".join([*texts, b""]), np.uint8)
        statements = self._reader.read(chunk_of(whole, self._reader.pool))
        for bad in statements.bad:
            raise InputError(f"not a graph: {bad.reason}: {bad.text}")
        rows = np.searchsorted(statements.at, starts)
        time = np.array([event[0] for event in events], np.int64)
        names = EventNames.of([event[1] for event in events])
        (batch,) = self._batches.batches(statements, 1, rows[:-1], rows[1:], time, names)
        return batch


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"not a graph: {error.reason}") from None


GraphLike: TypeAlias = Union["rdflib.Graph", str, Iterable[object]]

_UTF8_BYTES = 4
"""Most bytes of a character in UTF-8."""

_RANDOM_LABEL = late_pattern(r"_:(N[0-9a-f]{32}|[a-f][0-9a-f]{23,31})")
"""Random labels of rdflib and oxrdf."""


def batch_from_events(
    stream: str, events: Sequence[tuple[int, str | None, Sequence[Triple]]], counter: InstantCounter
) -> EventBatch:
    """A batch of events (time in ms, graph IRI or None, triples) in order of arrival.

    `counter` numbers the stream's events of equal time.
    """
    time = np.array([event[0] for event in events], np.int64)
    names = EventNames.of([event[1] for event in events])
    return batch_at(stream, time, counter.assign(time), names, [event[2] for event in events])


def batch_of_event(
    stream: str, time: int, k: int, name: str | None, triples: Sequence[Triple]
) -> EventBatch:
    """A batch of one event with a given k."""
    return FewEvents(stream, [(time, k, name, triples)]).columns()


def batch_at(
    stream: str, time: Int64s, k: Int32s, names: EventNames, triples: Sequence[Sequence[Triple]]
) -> EventBatch:
    """A batch of n events at the instants (time [n] in ms, k [n])."""
    graphs = [dict.fromkeys(graph) for graph in triples]  # distinct triples, in order
    start = np.zeros(len(graphs) + 1, np.int64)
    np.cumsum([len(graph) for graph in graphs], out=start[1:])
    codes: dict[str, int] = {}
    flat = [
        codes.setdefault(text, len(codes))
        for graph in graphs
        for triple in graph
        for text in triple
    ]
    columns = np.array(flat, np.int32).reshape(-1, 3)
    s, p, o = (np.ascontiguousarray(columns[:, i]) for i in range(3))
    return EventBatch(stream, time, k, names, start, s, p, o, ListedTerms(list(codes)))


_InstantEvent: TypeAlias = tuple[int, int, str | None, Sequence[Triple]]


class FewEvents(NamedTuple):
    """A few events of a stream: (time in ms, k, graph IRI or None, triples) of each."""

    stream: str
    events: Sequence[_InstantEvent]

    def columns(self) -> EventBatch:
        """The events as a batch."""
        time, k, names, graphs = zip(*self.events, strict=True)
        times, ks = np.array(time, np.int64), np.array(k, np.int32)
        return batch_at(self.stream, times, ks, EventNames.of(names), graphs)


def gathered(batches: Iterable[EventBatch], most: int) -> Iterator[EventBatch | FewEvents]:
    """The batches of a stream in order. Consecutive batches of at most `most` triples are joined.

    A batch is read before the next one is asked for, which may take its buffers. Batches whose
    triples are made on demand stay as they are.
    """
    few = list[_InstantEvent]()
    stream = ""
    for batch in batches:
        stream = batch.stream
        if type(batch) is EventBatch and len(batch.s) <= most:
            few += _events_of(batch)
            continue
        if few:
            yield FewEvents(stream, few)
            few = []
        yield batch
    if few:
        yield FewEvents(stream, few)


def _events_of(batch: EventBatch) -> Iterator[_InstantEvent]:
    terms, codes = batch.terms, (batch.s.tolist(), batch.p.tolist(), batch.o.tolist())
    triples = [(terms[s], terms[p], terms[o]) for s, p, o in zip(*codes, strict=True)]
    names, ends = batch.names(np.arange(len(batch))).texts(), batch.start.tolist()
    graphs = (triples[begin:end] for begin, end in pairwise(ends))
    return zip(batch.time.tolist(), batch.k.tolist(), names, graphs, strict=True)


def triples_of(graph: GraphLike, limits: Limits = DEFAULT_LIMITS) -> list[Triple]:
    """The triples of an rdflib graph, an N-Triples text, or an iterable of triples.

    A triple in an iterable is a pyoxigraph Triple or three terms, each an N-Triples text, an
    rdflib term or a pyoxigraph term. The result keeps the order of the input; an rdflib graph is
    sorted by text. Random blank node labels become canonical labels (RDFC-1.0), so that equal
    graphs give equal answers.

    Raises:
        InputError: the graph is not RDF, or exceeds a limit.
    """
    try:
        if isinstance(graph, str):
            _check_sizes(graph, limits)
            if (plain := plain_triples(graph)) is not None:
                return plain
        return _triples(graph, limits)
    except MemoryError:  # the parser's own bound
        raise InputError(f"not a graph: {UNREADABLY_LONG}") from None
    except (SyntaxError, ValueError, TypeError) as error:
        raise InputError(f"not a graph: {syntax_reason(error)}") from error


def _check_sizes(text: str, limits: Limits) -> None:
    """ValueError if N-Triples text exceeds the limit on events, lines or literals."""
    most = len(text) * _UTF8_BYTES
    if most <= limits.literal_bytes and most <= limits.line_bytes and most <= limits.event_bytes:
        return
    encoded = text.encode()
    if len(encoded) > limits.event_bytes:
        raise ValueError(long_event(limits))
    for line in encoded.splitlines():
        if (reason := line_excess(line, limits)) is not None:
            raise ValueError(reason)


def _parsed(text: str, limits: Limits) -> list[Triple]:
    """The triples of N-Triples text by a parser, once its nesting is known to be bounded."""
    if (reason := nested_too_deep(text, limits.nesting)) is not None:
        raise ValueError(reason)
    data = text if text.isascii() else text.encode()  # an error if it is not Unicode text
    return [_texts(quad) for quad in ox.parse(data, ox.RdfFormat.N_TRIPLES)]


def _triples(graph: GraphLike, limits: Limits) -> list[Triple]:
    if isinstance(graph, str):
        return _parsed(graph, limits)
    if isinstance(graph, bytes) or not isinstance(graph, Iterable):
        kind = type(graph).__name__
        raise TypeError(f"{kind} is neither N-Triples text, nor an rdflib graph, nor triples")
    given = list(graph)
    if not all(isinstance(t, (tuple, list, ox.Triple)) for t in given):
        raise ValueError("a triple is three terms")
    triples = [_triple(tuple(t)) for t in given]
    lines = "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    _check_sizes(lines, limits)
    parsed = plain_triples(lines) or _parsed(lines, limits)
    if len(parsed) != len(triples):
        raise ValueError("a term is not N-Triples text")
    if "_:" in lines and any(_has_random_label(t) for s, _, o in parsed for t in (s, o)):
        return _canonical(lines)
    return parsed if isinstance(graph, (list, tuple)) else sorted(parsed)


def _has_random_label(text: str) -> bool:
    if is_triple_term(text):
        return _RANDOM_LABEL.search(text) is not None
    return _RANDOM_LABEL.fullmatch(text) is not None


def _triple(terms: Sequence[object]) -> Triple:
    if len(terms) != 3:
        raise ValueError(f"a triple has three terms, not {len(terms)}")
    s, p, o = map(_text, terms)
    return s, p, o


def _text(term: object) -> str:
    """The N-Triples text of a term of any library; a text stays unchanged."""
    if type(term) is str:
        return term
    if isinstance(term, (ox.NamedNode, ox.BlankNode, ox.Literal)):
        return str(term)
    if isinstance(term, ox.Triple):
        return from_pyoxigraph(term)
    if type(term).__module__.startswith("rdflib"):
        return from_rdflib(term)
    if not isinstance(term, str):
        raise ValueError(f"{type(term).__name__} is not an RDF term")
    return str.__str__(term)


def _texts(quad: ox.Quad) -> Triple:
    """The terms of a quad without a graph. One text of all is faster; only objects have spaces."""
    s, p, o = str(quad).split(" ", 2)
    return s, p, o


def _canonical(lines: str) -> list[Triple]:
    """The triples with canonical blank node labels, sorted."""
    dataset = ox.Dataset(ox.parse(lines, ox.RdfFormat.N_TRIPLES))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return sorted(_texts(quad) for quad in dataset)
