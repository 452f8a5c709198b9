"""A test bench for queries: events in, answers out, the clock by hand.

`Harness` pushes events into one query and collects its answers. It needs no files, no JVM and no
test framework:

>>> query = '''
...   PREFIX : <http://example/>
...   SELECT ?road ?speed WITHIN 1 MINUTES PARTITION BY (?road) FROM STREAM Loops <http://example/s>
...   WHERE { SEQ(A; B)
...     DEFINE GPM A ON Loops { [] :road ?road ; :speed ?first }
...     DEFINE GPM B ON Loops { [] :road ?road ; :speed ?speed FILTER (?speed < ?first) } }'''
>>> with Harness(query) as bench:
...     bench.push("Loops", {":road": ":a1", ":speed": 30}, at=0)
...     bench.push("Loops", {":road": ":a1", ":speed": 20}, at=3)
...     assert bench.answers == []  # other events of that time may follow
...     bench.advance(10)
...     assert bench.answers == [{"road": "http://example/a1", "speed": 20}]

`letters`, `letter_query` and `words` try a sequence expression on events that are words:

>>> words(letter_query("A; B+; C"), letters("a1 b1 b2 c1"))
['a1 b1 b2 c1', 'a1 b1 c1']
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from spaseq.api.harness import Harness
from spaseq.sources.iterables import Event

__all__ = ["Harness", "letter_query", "letters", "words"]

STREAM = "http://example/letters"
"""The IRI of the stream of letters; a letter query calls it S."""

_WORD, _NODE = "http://example/word", "http://example/e"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def letters(text: str) -> list[Event]:
    """One event for each word of a text, a second apart, from the epoch on.

    An event has one triple, whose object is the word; the event's IRI ends in the word's place.

    >>> [event.time.second for event in letters("a1 b1 b2")]
    [0, 1, 2]
    """
    return [
        Event(f'<{_NODE}{n}> <{_WORD}> "{word}" .', _EPOCH + timedelta(seconds=n), f"{_NODE}{n}")
        for n, word in enumerate(text.split())
    ]


def letter_query(
    sequence: str, within: str = "1 HOURS", select: str = "", after_match: str = ""
) -> str:
    """A query over `letters`: each capital letter of a sequence is a GPM, without correlation.

    The GPM A matches the words that begin with `a`, and binds the word to `?wA`.

    Args:
        sequence: the inside of SEQ(...).
        within: the window.
        select: a selection strategy: ALL, NEXT, LAST, MAX or STRICT.
        after_match: what AFTER MATCH says, such as `SKIP PAST LAST EVENT`.

    >>> words(letter_query("A: B", select="LAST"), letters("a1 a2 b1"))
    ['a2 b1']
    """
    names = sorted(set(re.findall(r"\b[A-Z]\b", sequence)))
    gpms = "\n".join(
        f"  DEFINE GPM {name} ON S "
        f'{{ ?e{name} :word ?w{name} FILTER (STRSTARTS(?w{name}, "{name.lower()}")) }}'
        for name in names
    )
    skip = f" AFTER MATCH {after_match}" if after_match else ""
    return (
        f"PREFIX : <http://example/>\nSELECT {select} {' '.join(f'?w{name}' for name in names)} "
        f"WITHIN {within}{skip} FROM STREAM S <{STREAM}>\nWHERE {{ SEQ({sequence})\n{gpms} }}"
    )


def words(query: str, events: Iterable[Event]) -> list[str]:
    """The answers of a query over `letters`, each as the words of its events in order.

    >>> words(letter_query("A; B!; C"), letters("a1 b1 a2 c1"))
    ['a2 c1']
    """
    given = list(events)
    spoken = {event.iri: str(event.graph).split('"')[1] for event in given}
    with Harness(query) as bench:
        for event in given:
            bench.push_event(STREAM, event)
    return [" ".join(spoken[item.event] for item in match.trace) for match in bench.matches]
