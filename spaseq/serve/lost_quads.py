"""Posted N-Quads whose events have lost a quad to a malformed line: these are no events.

A malformed line belongs to the event whose quads it follows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from spaseq.rdf.lines.line_parser import parse_nquads_line
from spaseq.rdf.terms.term import iri_text


class Damage(NamedTuple):
    """What is left of a text.

    Attributes:
        text: without the quads of damaged events, and without most malformed lines, if many.
        events: the event that a malformed line belongs to, by the number of the line.
        dropped: how many malformed lines were left out.
    """

    text: bytes
    events: dict[int, str]
    dropped: int = 0


def without_damaged(
    text: bytes, suspects: Collection[int], time_predicate: str, most: int = 1000
) -> Damage:
    r"""N-Quads without the quads of events that have lost one; other lines keep their numbers.

    Args:
        text: the lines.
        suspects: the numbers, from 1, of all lines that are malformed, and perhaps of others.
        time_predicate: the predicate of the times of events.
        most: how many malformed lines are kept.

    >>> text = b'<s:> <p:> "1" <e:1> .\n<s:> <p:> .\n<s:> <p:> "2" <e:2> .'
    >>> without_damaged(text, {2}, "t:")
    Damage(text=b'\n<s:> <p:> .\n<s:> <p:> "2" <e:2> .', events={2: '<e:1>'}, dropped=0)
    """
    lines = text.split(b"\n")
    malformed = {
        n
        for n in suspects
        if 0 < n <= len(lines) and isinstance(parse_nquads_line(lines[n - 1]), str)
    }
    if not malformed:
        return Damage(text, {})
    runs, names = _runs(lines, malformed, iri_text(time_predicate))
    damaged = {runs[n - 1] for n in malformed} - {0}
    shown = sorted(malformed)[:most]
    kept = {number for number, run in enumerate(runs, 1) if run not in damaged} - malformed
    kept.update(shown)
    left = [line if number in kept else b"" for number, line in enumerate(lines, 1)]
    events = {n: names[runs[n - 1]] for n in shown if runs[n - 1] in damaged}
    return Damage(b"\n".join(left), events, len(malformed) - len(shown))


def _runs(
    lines: Sequence[bytes], malformed: Collection[int], time: str
) -> tuple[list[int], list[str]]:
    """The number of each line's event, 0 if it has none, and the events' names by number."""
    runs, names = [], [""]
    for number, line in enumerate(lines, 1):
        quads = () if number in malformed else parse_nquads_line(line)
        for s, p, _, graph in quads if not isinstance(quads, str) else ():
            name = graph or (s if p == time else "")
            if name != names[-1]:
                names.append(name)
        runs.append(len(names) - 1 if names[-1] else 0)
    return runs, names
