"""Small streams and queries over them, and the report on the steps."""

from __future__ import annotations

import re
from collections.abc import Mapping

from spaseq.compile import check_query
from spaseq.diagnosis.observed import Observed, Observer
from spaseq.diagnosis.question import Question
from spaseq.diagnosis.report import Cause
from spaseq.diagnosis.steps import StepReport, step_report
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.resolve import resolve
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.program_events import batch_from_events
from spaseq.rdf.terms.term import XSD

NS = "http://example/"
STREAM = NS + "letters"


def observed(query: str, text: str) -> Observed:
    """What the events of a text show.

    Each word is an event, one second after the word before; `.` is a second without an event, and a
    word with `&` before it has the time of the word before. A word is `a` or `a=1,s=red`: a
    property with a value, or without one. A value is a number or a name.
    """
    checked = check_query(query)
    assert checked.query is not None and checked.plan is not None, checked.errors
    observer = Observer(
        Question.of(resolve(checked.query, checked.source), checked.plan), KnowledgeBase.empty()
    )
    streams: dict[str, list[tuple[int, str, list[tuple[str, str, str]]]]] = {}
    now = -1
    for number, word in enumerate(text.split()):
        now += not word.startswith("&")
        if word == ".":
            continue
        stream, _, body = word.removeprefix("&").rpartition("/")
        iri = STREAM if not stream else f"{NS}{stream}"
        triples = [_triple(pair) for pair in body.split(",")]
        streams.setdefault(iri, []).append((now * 1000, f"<{NS}e{number}>", triples))
    for iri, events in streams.items():
        observer.take([batch_from_events(iri, events, InstantCounter())], iri)
    return observer.observed()


def _triple(pair: str) -> tuple[str, str, str]:
    name, _, value = pair.partition("=")
    if re.fullmatch(r"-?[0-9.]+", value or "1"):
        kind = "decimal" if "." in value else "integer"
        term = f'"{value or 1}"^^<{XSD}{kind}>'
    else:
        term = f"<{NS}{value}>"
    return f"<{NS}x>", f"<{NS}{name}>", term


def query_of(
    sequence: str,
    gpms: Mapping[str, str] | None = None,
    head: str = "WITHIN 1 HOURS",
    tail: str = "",
) -> str:
    """A query; the GPM of each capital letter matches its small letter unless it is given."""
    names = sorted({*re.findall(r"\b[A-Z]\b", sequence)})
    patterns = {
        name: f"[] :{name.lower()} ?{name.lower()}{number}" for number, name in enumerate(names)
    }
    patterns |= gpms or {}
    select = "" if head.startswith("SELECT") else "SELECT * "
    lines = [
        f"PREFIX : <{NS}>",
        f"{select}{head} FROM STREAM S <{STREAM}>",
        f"WHERE {{ SEQ({sequence})",
        *(f"  DEFINE GPM {name} ON S {{ {pattern} }}" for name, pattern in patterns.items()),
        "}" + tail,
    ]
    return "\n".join(lines)


def steps_of(query: str, text: str) -> StepReport:
    """The report on the steps of a query."""
    return step_report(observed(query, text))


def cause_of(query: str, text: str) -> Cause:
    """The only cause."""
    (cause,) = steps_of(query, text).causes
    return cause
