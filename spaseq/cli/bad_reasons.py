"""What the bad input of a run has in common, said once: the cause and the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from spaseq.rdf.events.open_event import NO_TIME
from spaseq.rdf.inputs.bad_input import BadInput

_TURTLE = re.compile(r"\s*(@prefix|@base|prefix\s|base\s)", re.IGNORECASE)
_STRAY = re.compile(r"\d+ triples? of the default graph that belongs? to no event")
_VARYING = re.compile(r' \(column \d+\)$|"(?:[^"\\]|\\.)*"')
"""What differs between reasons of one kind: columns and literals."""
_STATEMENT = re.compile(r"(\S+) <([^>]*)> ")
_LINES = (".nq", ".nquads", ".nt", ".ntriples")
_MOST_FILES = 100


@dataclass(slots=True)
class _OfFile:
    """The bad input of one file."""

    count: int = 0
    turtle: bool = False
    untimed: int = 0
    strays: int = 0
    untimed_events: set[str] = field(default_factory=set)
    time_predicate: str | None = None

    def take(self, bad: BadInput) -> None:
        self.count += 1
        if _TURTLE.match(bad.text):
            self.turtle = True
        if bad.reason == NO_TIME:
            self.untimed += 1
            self.untimed_events = {bad.text}
        elif _STRAY.fullmatch(bad.reason):
            self.strays += 1
            found = _STATEMENT.match(bad.text)
            if found is not None and found[1] in self.untimed_events:
                self.time_predicate = found[2]


class BadReasons:
    """Collects bad input, file by file."""

    def __init__(self) -> None:
        self.first: BadInput | None = None
        self._files: dict[str, _OfFile] = {}
        self._kinds: set[tuple[str, str]] = set()

    def take(self, bad: BadInput) -> bool:
        """Note bad input; whether its file had no bad input of this kind before."""
        self.first = self.first or bad
        if bad.file in self._files or len(self._files) < _MOST_FILES:
            self._files.setdefault(bad.file, _OfFile()).take(bad)
        kind = bad.file, "stray" if _STRAY.fullmatch(bad.reason) else _VARYING.sub("", bad.reason)
        if kind in self._kinds or len(self._kinds) >= _MOST_FILES:
            return False
        self._kinds.add(kind)
        return True

    def advice(self, nothing_read: bool) -> Iterable[str]:
        """A sentence for each file whose cause is known. `nothing_read`: no event was read."""
        for name, file in self._files.items():
            if file.turtle and name.removesuffix(".gz").endswith(_LINES):
                yield (
                    f"{name} looks like Turtle or TriG, whatever its name says: name it .trig if "
                    "it has named graphs, else .ttl, and say --triples-per-event N"
                )
            elif nothing_read and file.untimed and 2 * (file.untimed + file.strays) > file.count:
                yield f"no event of {name} has a time: {_how_to_time(file.time_predicate)}"


def _how_to_time(predicate: str | None) -> str:
    if predicate is not None:
        return f"write --time-predicate {predicate}, if that is it"
    return "name the predicate of the times with --time-predicate IRI"
