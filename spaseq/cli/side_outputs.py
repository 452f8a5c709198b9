"""Bad input, late events and partial matches of a run: to files, to stderr, or to an early end."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TextIO

from spaseq.algebra.answers import PartialAnswer
from spaseq.cli.messages import tell
from spaseq.cli.option_groups import SideOptions
from spaseq.errors import InputError, RunError, SpaseqError
from spaseq.message_text import one_line
from spaseq.rdf.events.graph_times import NO_TIME
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.runtime.job.job import LateEvent, Stats
from spaseq.sinks.answer_json import partial_json
from spaseq.sinks.base import open_lines
from spaseq.sinks.jsonl import BadInputLines, LateEventLines
from spaseq.text_patterns import late_pattern

_TURTLE = late_pattern(r"\s*(@prefix|@base|prefix\s|base\s)", re.IGNORECASE)
_STRAY = late_pattern(r"\d+ triples? of the default graph that belongs? to no event")
_VARYING = late_pattern(r' \(column \d+\)$|"(?:[^"\\]|\\.)*"')
"""The parts in which reasons of one kind differ: columns and literals."""
_STATEMENT = late_pattern(r"(\S+) <([^>]*)> ")
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
            match = _STATEMENT.match(bad.text)
            if match is not None and match[1] in self.untimed_events:
                self.time_predicate = match[2]


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


_BAD, _LATE = 0, 1  # places among the files
_OPTIONS = ("--bad", "--late")
_SHOWN = 5  # number of items on stderr if no file receives them


class SideOutputs:
    """Takes bad input, late events and partial matches.

    With `strict` the first bad input or late event ends the run.
    """

    def __init__(self, options: SideOptions, append: bool = False) -> None:
        self._mode = os.O_APPEND if append else os.O_TRUNC
        self._paths = (options.bad, options.late, options.partial)
        self._strict = options.strict
        self._files: list[TextIO | None] = [None, None, None]
        self._shown = 0
        self._hidden: Counter[str] = Counter()  # by the option that would keep them
        self._reasons = BadReasons()
        self._lost = set[str]()  # fields
        self._over_limit: Counter[str] = Counter()  # by query

    def __enter__(self) -> SideOutputs:
        for i, path in enumerate(self._paths):
            if path is not None:
                self._files[i] = open_lines(path, self._mode)
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        for file in self._files:
            try:
                if file is not None:
                    file.close()
            except SpaseqError as failure:
                if error is None:
                    error = failure
                else:
                    tell(f"spaseq: {failure}")
        if kind is None and error is not None:
            raise error

    def files(self) -> dict[str, TextIO]:
        """The open files by absolute path."""
        pairs = zip(self._paths, self._files, strict=True)
        return {os.path.abspath(p): f for p, f in pairs if p is not None and f is not None}

    def on_bad(self, bad: BadInput) -> None:
        """Take a piece of input that cannot become an event."""
        where = bad.file if bad.line is None else f"{bad.file}:{bad.line}"
        file = self._files[_BAD]
        write = None if file is None else lambda: BadInputLines(file).write(bad)
        # Without a line number, the text says which event it is.
        which = f" ({bad.text})" if bad.line is None and bad.text else ""
        error = RunError if bad.over_limit else InputError
        new = self._reasons.take(bad) or bad.over_limit
        self._over_limit[bad.file] += bad.over_limit
        self._take(_BAD, write, f"{where}: {bad.reason}{which}", error, new)

    def on_lost(self, lost: BadInput) -> None:
        """Take values that a cast loses: bad input with `strict`, else shown once by field.

        A remark, which loses none, is never bad input.
        """
        if self._strict and (lost.lost is None or lost.lost[1]):
            self.on_bad(lost)
        elif lost.lost is not None and lost.lost[0] not in self._lost:
            self._lost.add(lost.lost[0])
            where = lost.file if lost.line is None else f"{lost.file}:{lost.line}"
            tell(f"spaseq: {one_line(f'{where}: {lost.reason}')}")

    def on_late(self, late: LateEvent) -> None:
        """Take an event behind its stream's watermark."""
        file = self._files[_LATE]
        write = (
            None
            if file is None
            else lambda: LateEventLines(file).write(
                late.stream, late.event, late.time, late.lateness_ms
            )
        )
        self._take(_LATE, write, f"late by {late.lateness_ms} ms: {late.event or late.stream}")

    def on_partial(self, query: str, partial: PartialAnswer) -> None:
        """Take a partial match of the query with this name."""
        file = self._files[2]
        if file is not None:
            file.write(partial_json(query, partial) + "\n")

    def report(self, only_bad: bool) -> None:
        """Report the number that was not shown, and what the bad inputs share."""
        if self._hidden:
            kept = " and ".join(f"{option} FILE" for option in sorted(self._hidden))
            keeps = "keeps" if len(self._hidden) == 1 else "keep"
            tell(f"... and {self._hidden.total():,} more; {kept} {keeps} them")
        for sentence in () if only_bad else self._reasons.advice(only_bad):
            tell(f"spaseq: {sentence}")

    def only_bad(self, stats: Stats, queries: Iterable[str]) -> bool:
        """Whether a run without answers has read bad input only.

        Its events cannot be read, or all of them exceed limits of each query.
        """
        if not stats.events:
            return stats.bad > 0
        return all(self._over_limit[name] >= stats.events for name in queries)

    def refuse(self, only_bad: bool) -> None:
        """End a run that read bad input only.

        Raises:
            InputError: with the cause of all bad input, or with the first reason.
        """
        if only_bad:
            advice = list(self._reasons.advice(True))
            advice = advice or [f"the first reason: {self._first_reason()}"]
            exceeds = any(self._over_limit.values())
            which = ": every event exceeds a limit" if exceeds else ", so no event was read"
            raise InputError("; ".join([f"all input is bad{which}", *advice]))

    def _first_reason(self) -> str:
        first = self._reasons.first
        return "unknown" if first is None else one_line(f"{first.file}: {first.reason}")

    def _take(
        self,
        output: int,
        write: Callable[[], None] | None,
        text: str,
        error: type[SpaseqError] = InputError,
        new: bool = True,
    ) -> None:
        file = self._files[output]
        if file is not None and write is not None:
            write()
            file.flush()
        else:
            shown = new and self._shown < _SHOWN
            self._shown += shown
            self._hidden.update(() if shown else (_OPTIONS[output],))
            if shown:
                tell(f"spaseq: {one_line(text)}")
        if self._strict:
            raise error(f"--strict: {one_line(text)}")
