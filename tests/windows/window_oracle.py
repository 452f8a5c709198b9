"""Windows by brute force, from the page alone: every window event, and the solutions on each.

Sequences are the other oracle's: a window is a stream whose solutions are given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rdflib.term import Identifier

from spaseq.lang import ast
from spaseq.lang.parser import parse
from tests.oracle.answers import Answer
from tests.oracle.model import Bindings, Event, Map, Streamset, events_of
from tests.oracle.oracle import QueryRun
from tests.oracle.partial import Partial, partials_of
from tests.oracle.patterns import terms_as_written

Solutions = Callable[["WindowEvent", Mapping[str, Identifier]], list[dict[str, Identifier]]]
"""The solutions of a pattern on a window event, given earlier bindings."""

S, T, KB = "http://e/s", "http://e/t", "http://e/kb"


@dataclass(frozen=True)
class WindowEvent(Event):
    """A window event with the events in it."""

    content: tuple[Event, ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Extent:
    """RANGE `range` (ms) or `count` events, SLIDE, the first close; or a session."""

    kind: str  # panes, each, session
    range: int = 0
    slide: int = 0
    origin: int = 0
    count: int = 0

    @property
    def text(self) -> str:
        match self.kind:
            case "panes":
                begin = "" if not self.origin else ' FROM "1970-01-01T00:00:00.500Z"'
                return f"RANGE {self.range} MILLISECONDS SLIDE {self.slide} MILLISECONDS{begin}"
            case "session":
                return f"SESSION {self.range} MILLISECONDS"
            case _ if self.count:
                return f"RANGE {self.count} EVENTS EACH EVENT"
            case _:
                return f"RANGE {self.range} MILLISECONDS EACH EVENT"


@dataclass(frozen=True)
class Level:
    """A GPM on a window: its pattern as text and as a function, and what it binds."""

    name: str
    window: str
    change: str  # "", NEW or GONE
    text: str
    variables: tuple[str, ...]
    solutions: Solutions


@dataclass(frozen=True)
class Case:
    """A query over windows."""

    windows: Mapping[str, tuple[tuple[str, ...], Extent]]  # the streams by name, and the extent
    levels: tuple[Level, ...]
    plain: Mapping[str, tuple[str, str]]  # GPMs on streams: stream and pattern, by name
    sequence: str
    within: str
    partition: bool

    def query(self) -> str:
        """The query of the engine."""
        key = " KEY { ?key :r ?r }" if self.partition else ""
        windows = [
            f"FROM WINDOW {name} ON {', '.join(streams)} {extent.text}{key}"
            for name, (streams, extent) in self.windows.items()
        ]
        gpms = [f"DEFINE GPM {g.name} ON {g.change} {g.window} {g.text}" for g in self.levels]
        known = [f"FROM NAMED <{KB}>"] if any("GRAPH" in g.text for g in self.levels) else []
        return self._text([*_STREAMS, *known, *windows], gpms)

    def for_oracle(self) -> str:
        """The same, with streams in place of windows; window events come later."""
        streams = [f"FROM STREAM {name} <{name}>" for name in self.windows]
        counted = [line for name, line in zip("ST", _STREAMS, strict=True) if self._counts(name)]
        gpms = []
        for level in self.levels:
            names = [*level.variables, *(["r"] if self.partition else [])]
            values = " ".join(f"?{v}" for v in names)
            gpms.append(f"DEFINE GPM {level.name} ON {level.window} {{ VALUES ({values}) {{ }} }}")
        return self._text([*counted, *streams], gpms)

    def _counts(self, stream: str) -> bool:
        """Whether a stream is one of the query: not one that only windows read."""
        windowed = any(stream in streams for streams, _ in self.windows.values())
        return not windowed or any(stream == own for own, _ in self.plain.values())

    def _text(self, froms: Sequence[str], gpms: Sequence[str]) -> str:
        plain = [f"DEFINE GPM {n} ON {s} {p}" for n, (s, p) in self.plain.items()]
        partition = "PARTITION BY (?r)" if self.partition else ""
        lines = ["PREFIX : <http://e/>", f"SELECT * {self.within} {partition}", *froms]
        return "\n".join([*lines, f"WHERE {{ SEQ({self.sequence})", *gpms, *plain, "}"])


_STREAMS = [f"FROM STREAM S <{S}>", f"FROM STREAM T <{T}>"]


def expected(case: Case, streams: Streamset) -> list[Answer]:
    """The answers of a case."""
    with terms_as_written():
        return _WindowRun(_query(case), case, streams).answers()


def expected_partials(case: Case, streams: Streamset) -> list[Partial]:
    """The partial matches of a case."""
    query = _query(case)
    return partials_of(query, lambda upto: _WindowRun(query, case, streams, upto))


def _query(case: Case) -> ast.Query:
    query = parse(case.for_oracle())
    if query.window is None:
        query = replace(query, window=ast.TimeWindow(ast.TimeSpan(0, "SECONDS")))
    return query


def window_events(name: str, extent: Extent, events: Sequence[Event]) -> list[WindowEvent]:
    """All window events over some events, in order."""
    ordered = sorted(events, key=lambda e: (e.instant, e.stream))
    match extent.kind:
        case "panes":
            return list(_panes(name, extent, ordered))
        case "session":
            return list(_sessions(name, extent, ordered))
        case _:
            return list(_each(name, extent, ordered))


def _made(name: str, time: int, k: int, begin: int, content: Sequence[Event]) -> WindowEvent:
    return WindowEvent(name, (time, k), f"{begin} {len(content)}", None, tuple(content))  # type: ignore[arg-type]


def _panes(name: str, extent: Extent, events: Sequence[Event]) -> Iterator[WindowEvent]:
    if not events:
        return

    def content(close: int) -> list[Event]:
        return [e for e in events if close - extent.range <= e.instant[0] < close]

    first, last = events[0].instant[0], events[-1].instant[0]
    start = (first - extent.range - extent.slide - extent.origin) // extent.slide - 1
    stop = (last + 2 * extent.range + 2 * extent.slide - extent.origin) // extent.slide + 1
    for number in range(start, stop + 1):
        close = extent.origin + number * extent.slide
        if content(close) or content(close - extent.slide):
            yield _made(name, close, -1, close - extent.range, content(close))


def _each(name: str, extent: Extent, events: Sequence[Event]) -> Iterator[WindowEvent]:
    for i, event in enumerate(events):
        time = event.instant[0]
        before = events[: i + 1]
        held = before[-extent.count :] if extent.count else before
        if not extent.count:
            held = [e for e in before if time - e.instant[0] <= extent.range]
        k = sum(e.instant[0] == time for e in events[:i])
        yield _made(name, time, k, held[0].instant[0], held)


def _sessions(name: str, extent: Extent, events: Sequence[Event]) -> Iterator[WindowEvent]:
    piece: list[Event] = []
    for event in events:
        if piece and event.instant[0] - piece[-1].instant[0] >= extent.range:
            yield _made(name, piece[-1].instant[0] + extent.range, -1, piece[0].instant[0], piece)
            piece = []
        piece.append(event)
    if piece:
        yield _made(name, piece[-1].instant[0] + extent.range, -1, piece[0].instant[0], piece)


class _WindowRun(QueryRun):
    def __init__(
        self, query: ast.Query, case: Case, streams: Streamset, upto: int | None = None
    ) -> None:
        super().__init__(query, streams, {}, upto=upto)
        self.case = case
        self.every = events_of(streams)
        self.given = {level.name: level for level in case.levels}
        self.history: dict[str, list[WindowEvent]] = {}  # of the partition
        self.key: Map = Map()

    def partitions(self) -> Iterator[tuple[Map, list[Event]]]:
        usual = dict(super().partitions()) if not self.case.partition else self._members()
        for key in sorted({*usual, *self._window_keys()}, key=str):
            self.key = key
            self.history = {
                name: window_events(name, extent, self._held(streams, key))
                for name, (streams, extent) in self.case.windows.items()
            }
            made = [event for events in self.history.values() for event in events]
            yield key, sorted([*usual.get(key, []), *made], key=lambda e: (e.instant, e.stream))

    def _members(self) -> dict[Map, list[Event]]:
        members: dict[Map, list[Event]] = {}
        streams = {{"S": S, "T": T}[stream] for stream, _ in self.case.plain.values()}
        for event in self.events:
            if event.stream in streams and any(_values(event)):
                for key in _keys(event):
                    members.setdefault(key, []).append(event)
        return members

    def _window_keys(self) -> set[Map]:
        if not self.case.partition:
            return {Map()}
        return {key for event in self.every for key in _keys(event)}

    def _held(self, streams: Sequence[str], key: Map) -> list[Event]:
        iris = {{"S": S, "T": T}[name] for name in streams}
        events = [e for e in self.every if e.stream in iris]
        return [e for e in events if not self.case.partition or key in _keys(e)]

    def solve(self, event: Event, name: str, mu: Bindings) -> frozenset[Map]:
        if name not in self.given:
            return super().solve(event, name, mu)
        level = self.given[name]
        assert isinstance(event, WindowEvent)
        found = self._found(level, event, mu.values)
        return frozenset(
            Map({**solution, **self.key})
            for solution in found
            if all(mu.values.get(v, x) == x for v, x in solution.items())
        )

    def _found(
        self, level: Level, event: WindowEvent, values: Mapping[str, Identifier]
    ) -> set[Map]:
        if not level.change:
            return set(map(Map, level.solutions(event, values)))
        now = set(map(Map, level.solutions(event, self.key)))
        history = self.history[level.window]
        place = next(i for i, own in enumerate(history) if own.instant == event.instant)
        before: set[Map] = set()
        if place:
            before = set(map(Map, level.solutions(history[place - 1], self.key)))
        return now - before if level.change == "NEW" else before - now


def _keys(event: Event) -> set[Map]:
    return {Map({"r": o}) for _, p, o in event.graph if str(p) == "http://e/r"}


def _values(event: Event) -> list[Identifier]:
    return [o for _, p, o in event.graph if str(p) == "http://e/v"]
