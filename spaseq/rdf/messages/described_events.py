"""Documents that describe events in one graph: which triples belong to which event."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from spaseq.limits import Limits
from spaseq.rdf.columns.event_batch import DEFAULT_GRAPH
from spaseq.rdf.documents.document_events import document_statements
from spaseq.rdf.documents.document_lines import DocumentLines
from spaseq.rdf.inputs.contexts import NO_CONTEXTS, JsonLdContexts
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import REST, BadInput
from spaseq.rdf.messages.message_lines import MessageLines, Report
from spaseq.rdf.terms.term import RDF, Triple
from spaseq.records import record

TYPE = f"<{RDF}type>"

_JSON = re.compile(rb"\s*(?:\{|\[\s*(?:\{|\]\s*\Z))")
_QUADS = re.compile(
    rb"\s*(?:\#[^\n]*\n\s*)*(?:<[^>]*>|_:\S+)\s*<[^>]*>\s*"
    rb'(?:<[^>]*>|_:\S+|"(?:[^"\\\n]|\\.)*"(?:\^\^<[^>]*>|@[\w-]+)?)\s*(?:<[^>]*>|_:\S+)\s*\.'
)
_XML = re.compile(rb"\s*<(?:\?xml|rdf:RDF|!DOCTYPE)")


@record
class DescribedEvent:
    """An event: its name and its triples, and the literal of its time; all as N-Triples texts.

    `name` is an IRI or a blank node; `time` is None if the document says none.
    """

    name: str
    time: str | None
    triples: list[Triple]

    def nquads(self, time_predicate: str) -> str:
        """The event as N-Quads, with its time in the default graph."""
        time = "" if self.time is None else f"{self.name} <{time_predicate}> {self.time} .\n"
        return time + "".join(f"{s} {p} {o} {self.name} .\n" for s, p, o in self.triples)


@dataclass(slots=True)
class Description:
    """The quads of a document, by subject and by graph.

    Attributes:
        about: the triples of each subject, in order.
        graphs: the triples of each named graph.
    """

    about: dict[str, list[Triple]] = field(default_factory=dict)
    graphs: dict[str, list[Triple]] = field(default_factory=dict)

    def objects(self, subject: str, predicate: str) -> list[str]:
        """The objects of a subject's predicate."""
        return [o for _, p, o in self.about.get(subject, ()) if p == predicate]

    def closure(self, names: Iterable[str]) -> list[Triple]:
        """The triples of some subjects, and of the blank nodes below them; each subject once."""
        triples, seen, waiting = list[Triple](), set[str](), list(names)[::-1]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            said = self.about.get(name, ())
            triples += said
            waiting += [o for _, _, o in said if o[0] == "_"]
        return triples


def described(
    data: bytes,
    report: Report,
    base: str | None,
    limits: Limits,
    contexts: JsonLdContexts = NO_CONTEXTS,
    form: Format | None = None,
    united: bool = True,
) -> Description | None:
    """The quads of a document; None if it cannot be read to its end, which is reported.

    Args:
        data: the document.
        report: called for what cannot be read.
        base: of relative IRIs.
        limits: bounds.
        contexts: that JSON-LD may name, or has.
        form: the format; None to find out.
        united: whether triples of named graphs are taken as if they stood outside.
    """
    form = form or format_of_text(data)
    if form is Format.JSONLD and contexts.own is not None:
        data = _with_context(data, contexts.own)
        contexts = JsonLdContexts(None, contexts.named)
    description = Description()
    bad = list[BadInput]()
    document = DocumentLines(io.BytesIO(data), form, base, limits, contexts)
    for read in document_statements(document, "", limits, bad.append):
        terms, about = list(read.terms), description.about
        columns = (read.s.tolist(), read.p.tolist(), read.o.tolist(), read.g.tolist())
        for s, p, o, g in zip(*columns, strict=True):
            triple = terms[s], terms[p], terms[o]
            if g == DEFAULT_GRAPH or united:
                about.setdefault(triple[0], []).append(triple)
            else:
                description.graphs.setdefault(terms[g], []).append(triple)
    for each in bad:
        report(each.line, each.reason.removeprefix(REST), each.text)
    return None if bad else description


def format_of_text(data: bytes) -> Format:
    """The format of an RDF document, by its begin."""
    head = data[: 1 << 14].removeprefix(b"\xef\xbb\xbf")
    if _JSON.match(head):
        return Format.JSONLD
    if _XML.match(head):
        return Format.RDFXML
    return Format.NQUADS if _QUADS.match(head) else Format.TRIG


def _with_context(data: bytes, context: str) -> bytes:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return data  # the parser says what is wrong
    items = value if isinstance(value, list) else [value]
    whole = items[0] if len(items) == 1 and isinstance(items[0], dict) else {"@graph": items}
    return json.dumps({**whole, "@context": json.loads(context)}).encode()


def message_of(events: Iterable[DescribedEvent], time_predicate: str, line: int) -> MessageLines:
    """The quads of events as one message, each event in its graph."""
    return MessageLines("".join(each.nquads(time_predicate) for each in events).encode(), [line])
