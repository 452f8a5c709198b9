"""NOW(): the end of the match, or in a FILTER the time of the step's own event."""

from __future__ import annotations

import pytest

import spaseq
from spaseq import Event
from spaseq.api.push import Engine
from tests.docs.language_page import NS, events_of, expand
from tests.language.test_tables import RUNTIMES

PREFIX = "PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"

# (query and additions to its GPMs, stream, answers: the seconds of ?n, or the events of the trace)
CASES = [
    # In SELECT it is the end of the match.
    (["SELECT (NOW() AS ?n) SEQ(A; B)"], "a@1 b@4 b@7", ["4"]),
    (["SELECT (NOW() AS ?n) SEQ(A: B)"], "a@1 b@4 b@7", ["4", "7"]),
    (["SELECT (NOW() AS ?n) SEQ(A; B+; C)"], "a@1 b@2 b@5 c@9.5", ["9.5", "9.5"]),
    (["SELECT (NOW() AS ?n) SEQ((A AND B))"], "b@2 a@3", ["3"]),
    (["SELECT (NOW() - TIMESTAMP(A) AS ?n) SEQ(A; B)"], "a@1 b@4.25", ["PT3.25S"]),
    # ... for a negation in last place the close of the window, even if the stream ends before.
    (["SELECT (NOW() AS ?n) WITHIN 10 SECONDS SEQ(A; B!)"], "a@1 c@2", ["11"]),
    (["SELECT (NOW() AS ?n) WITHIN 10 SECONDS TUMBLING SEQ(A; B!)"], "a@11 c@30", ["20"]),
    (["SELECT (NOW() AS ?n) WITHIN 10 SECONDS SEQ(B!; A)"], "a@1 c@2", ["1"]),
    # In HAVING it is the same.
    (['SELECT (NOW() AS ?n) SEQ(A: B) HAVING (NOW() - TIMESTAMP(A) > "PT3S"^^xsd:dayTimeDuration)'],
     "a@1 b@4 b@7", ["7"]),
    (["SELECT (NOW() AS ?n) WITHIN 10 SECONDS SEQ(A; B!) HAVING (SECONDS(NOW()) > 11)"],
     "a@1 c@2 a@3", ["13"]),
    # In a FILTER it is the time of the step's own event.
    (["SEQ(A)", "A: FILTER(SECONDS(NOW()) > 2)"], "a1 a2 a3 a4", ["a4"]),
    (["SEQ(A; B)", 'B: FILTER(NOW() - TIMESTAMP(A) >= "PT2S"^^xsd:dayTimeDuration)'],
     "a1 b1 b2 b3", ["a1 b2"]),
    (["SEQ(A: B)", 'B: FILTER(NOW() <= TIMESTAMP(A) + "PT2S"^^xsd:dayTimeDuration)'],
     "a1 b1 b2 b3", ["a1 b1", "a1 b2"]),
    (["SEQ(A; B+; C)", "B: FILTER(SECONDS(NOW()) != 2)"], "a1 b1 b2 b3 c1",
     ["a1 b1 b3 c1", "a1 b1 c1"]),
    (["SEQ((A AND B))", "B: FILTER(SECONDS(NOW()) = 1)"], "a1 b1 b2", ["a1 b1"]),
    # ... of a negated step's event too.
    (["SEQ(A; B!; C)", "B: FILTER(SECONDS(NOW()) = 1)"], "a1 b1 c1 a2 b2 c2", ["a2 c2"]),
    # Anywhere in a GPM.
    (["SELECT ?n SEQ(A)", "A: BIND(SECONDS(NOW()) AS ?n)"], "a1 a2 a3", ["0", "1", "2"]),
    (["SELECT ?n SEQ(A; B)", "A: BIND(NOW() AS ?n)"], "a1@3 b1@5", ["3"]),
    (["SEQ(A)", "A: OPTIONAL { :it :b ?b FILTER(SECONDS(NOW()) > 1) } FILTER(!BOUND(?b))"],
     "a1b1 a2b1 a3b1", ["a1b1", "a2b1"]),
    (["SEQ(A)", "A: FILTER EXISTS { :it :b ?b FILTER(SECONDS(NOW()) > ?b) }"],
     "a1b0 a2b2 a3b1", ["a3b1"]),
    (["SEQ(A)", "A: FILTER EXISTS { SELECT (SECONDS(NOW()) AS ?a) { } }"], "a1 a2 a2 a0", []),
    (["SEQ(A)", "A: { SELECT ?b { :it :b ?b FILTER(SECONDS(NOW()) > ?b) } }"],
     "a1b0 a2b2 a3b1", ["a3b1"]),
    (["SEQ(A)", "A: { FILTER(SECONDS(NOW()) > 0) }"], "a1 a2", ["a2"]),
]  # fmt: skip


def _answers(spans: list[str], words: str, runtime: str) -> list[str]:
    query, events = PREFIX + expand(spans), events_of(words)
    if runtime == "pushed":
        engine = Engine(query)
        found = [m for e in events for m in engine.push(f"{NS}{e.stream}", e.ntriples, e.time_ms)]
        found += engine.close()
    else:
        streams: dict[str, list[Event]] = {"S": [], "T": []}
        for e in events:
            streams[e.stream].append(Event(e.ntriples, e.time_ms))
        found = list(spaseq.run(query, streams, runtime=runtime))
    names = {e.time_ms: e.name for e in events}
    return [_shown(match, names, "?n" in spans[0]) for match in found]


def _shown(match: spaseq.Match, names: dict[int, str], value: bool) -> str:
    """The value of ?n, a dateTime as its seconds; or the names of the trace's events."""
    if not value:
        return " ".join(names[round(1000 * t.time.timestamp())] for t in match.trace)
    n = match.bindings["n"]
    if n.endswith("dateTime>"):
        return f"{n.to_python().timestamp():g}"
    return n.split('"')[1]


@pytest.mark.each_once
@pytest.mark.parametrize("runtime", [*RUNTIMES, "pushed"])
@pytest.mark.parametrize(("spans", "words", "expected"), CASES)
def test_now(spans: list[str], words: str, expected: list[str], runtime: str) -> None:
    assert _answers(spans, words, runtime) == expected
