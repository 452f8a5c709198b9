"""The register evaluator: every partial match is a run with its bindings in registers.

It evaluates the whole language, conditions between events included. It processes one instant of
one partition at a time. Runs are found by the edge at which they wait and by join key, and expire
with the window.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.nfa import Acceptance, BracketLabel, Edge, TakeLabel
from spaseq.automaton.program.window import Counted
from spaseq.automaton.registers.python.brackets import CandidateQueue
from spaseq.automaton.registers.python.event_history import EventHistory
from spaseq.automaton.registers.python.negation_checks import NegationChecks
from spaseq.automaton.registers.python.run_stepping import RunStepper, start_of
from spaseq.automaton.run.arena import Arena
from spaseq.automaton.run.live_states import StateKey, StatePlaces
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import PartitionMatch, RowsByGpm
from spaseq.automaton.run.runs import (
    Candidate,
    Duty,
    Groups,
    MeasuredInstant,
    Row,
    Run,
    TakenPath,
    WaitingRun,
)
from spaseq.automaton.run.scoping import (
    ListNodes,
    TakeEnv,
    TraceNodes,
    bind,
    follow,
    trace_of,
)
from spaseq.automaton.run.waiting_runs import WaitingRuns


def shares_no_event(path: Sequence[tuple[Edge, Edge, Row]]) -> bool:
    """Whether a run, given as in `RegisterEvaluator.wait_at`, respects the events it must not
    share.
    """
    return not any(
        path[place - back][2][0] == row[0]
        for place, (_, edge, row) in enumerate(path)
        for back in edge.apart
    )


def path_after(path: TakenPath, edge: Edge, inner: Edge, row: Row) -> TakenPath:
    """The path of a run once it takes a row along an edge; `inner` is the edge in its bracket."""
    bracket = () if edge.id == inner.id else ((edge, None),)
    return (*path, *bracket, (inner, row))


class RegisterEvaluator:
    """All run-time state of one partition; it can be pickled for a snapshot."""

    __slots__ = (
        "_checks",
        "_history",
        "_instants",
        "_limit",
        "_lists",
        "_machine",
        "_position",
        "_stepper",
        "_trace",
        "_waiting",
        "last_time",
    )

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._trace: TraceNodes = Arena()
        self._lists: ListNodes = Arena()
        self._waiting = WaitingRuns()
        self._history: EventHistory = []
        self._instants: list[tuple[Instant, int]] = []  # with their measures, for SELECT STRICT
        self._position = 0  # events so far
        self.last_time = -(2**63)
        self._set_up()
        self._stepper.wait(start_of(machine.program.automaton), self._waiting)
        self._limit = 2 * self._waiting.added + 1024

    def _set_up(self) -> None:
        """Make the stateless objects."""
        shared = self._machine, self._trace, self._lists, self._history
        self._stepper = RunStepper(*shared)
        self._checks = NegationChecks(*shared, self._stepper)

    # --- judging matches, and taking over from the compiled evaluator -----------------------------

    def look_back(self, history: EventHistory) -> None:
        """Use a history that another object has kept."""
        self._history = history
        self._set_up()

    def judged(
        self, path: Sequence[tuple[Edge, Edge, Row]], origin: int
    ) -> Iterator[PartitionMatch]:
        """The matches of a complete run that its negated steps and loops allow.

        It is given like a run in `wait_at`.
        """
        if shares_no_event(path):
            yield from self._allowed(self._run(path, origin))

    def begin_at(self, events: int) -> None:
        """Start as if the partition had had a number of events."""
        self._position = events

    def remember(self, gpm: int, row: Row) -> None:
        """Add a solution of a negated step to the history, for windows of time."""
        instant, time = (row[1], row[2]), row[1]
        if not self._history or self._history[-1][0] != instant:
            self._history.append((instant, MeasuredInstant(instant, time, time), {}))
        rows = self._history[-1][2]
        assert isinstance(rows, dict)
        rows.setdefault(gpm, []).append(row)
        self.last_time = max(self.last_time, time)

    def wait_at(
        self,
        edge: Edge,
        path: Sequence[tuple[Edge, Edge, Row]],
        origin: int,
        may_leave: bool = False,
        candidate: Candidate | None = None,
    ) -> None:
        """Let a run wait at an edge, given its edges and rows.

        For an alternative, the edge of its bracket comes first, then the edge inside. `origin` is
        the measure of the first row. Nothing is tested: the compiled evaluator has tested
        conditions, negated steps and loops up to now. `may_leave`: the run may leave its greedy
        loop in any case. It may belong to a `candidate`.
        """
        run = self._run(path, origin).as_candidate(candidate)
        self._stepper.wait_along(edge, run, self._waiting, may_leave)

    def closing(
        self,
        end: Acceptance,
        path: Sequence[tuple[Edge, Edge, Row]],
        origin: int,
        may_leave: bool,
    ) -> PartitionMatch:
        """A match that waits for the close of its window, given like a run in `wait_at`."""
        window, run = self._machine.window, self._run(path, origin)
        assert not isinstance(window, Counted)
        match = self._checks.match_of(self._stepper.ended(run, end.actions))
        match.pending = () if may_leave else self._stepper.duties(run, end)
        match.close = window.close(origin)
        return match

    def _run(self, path: Sequence[tuple[Edge, Edge, Row]], origin: int) -> Run:
        run = start_of(self._machine.program.automaton)
        for step, inner, row in path:
            run = self.with_row(run, step, inner, row, origin)
        assert run.last is not None
        self.last_time = max(self.last_time, run.last[0])
        return run

    def with_row(self, run: Run, edge: Edge, inner: Edge, row: Row, origin: int) -> Run:
        """The run after a run has taken a row; like `wait_at`, it tests nothing."""
        taking, label, values = self._machine.takes[inner.id], inner.label, row[4]
        assert isinstance(label, TakeLabel)
        groups, obligations = self._after(run, edge)
        obligations += self._stepper.duties(run, edge)
        bound = {v: x for c, v in taking.singles if (x := values[c]) is not None}
        instant = row[1], row[2]
        return Run(
            self._machine.target[edge.id],
            None,
            run.first or instant,
            instant,
            origin,
            None,
            {**run.singles, **bound},
            bind(self._lists, groups, taking.groups, values),
            self._trace.add((label.gpm, row, run.trace)),
            tuple(o.passed(instant) if o.before is None else o for o in obligations),
            lasts=run.lasts_after(inner, instant),
            path=path_after(run.path, edge, inner, row) if self._machine.keeps_paths else (),
        )

    def groups_after(self, run: Run, edge: Edge) -> Groups | None:
        """The group variables of a run that follows an edge."""
        return self._after(run, edge)[0]

    def seen(self, run: Run, groups: Groups | None, inner: Edge, row: Row) -> TakeEnv:
        """The variables that the FILTERs of `inner` see while a run takes a row, until the next
        call.
        """
        return self._stepper.taker.seen(run, groups, inner, row)

    def _after(self, run: Run, edge: Edge) -> tuple[Groups | None, tuple[Duty, ...]]:
        """The group variables, and the obligations of UNTIL, of a run that follows an edge."""
        program, obligations, seen = self._machine.program, run.obligations, run.seen_by(edge)
        return follow(program, self._lists, edge.actions, run.groups, obligations, seen)

    # --- one instant ------------------------------------------------------------------------------

    def step(self, instant: Instant, rows: RowsByGpm, events: int) -> list[PartitionMatch]:
        """Process the solutions of one instant.

        `events` is the number of the partition's events at this instant, which is later than all
        before. Negations in last place are left to `pending`; all others have been checked. The
        limit on partial matches, if there is one, gets the number of new ones.
        """
        moment = self._moment(instant, events)
        program = self._machine.program
        self.last_time = instant[0]
        if program.replayed:
            kept = {g: r for g, r in rows.items() if g in program.replayed}
            if kept or program.strict:
                self._history.append((instant, moment, kept))
        if self._machine.checks_strict:
            self._instants.append((instant, moment.reach))
        self._trace.mark(moment.start)
        self._lists.mark(moment.start)
        queue, before, waiting = CandidateQueue(), self._trace.end, self._waiting
        added = waiting.added
        self._stepper.advance(waiting, moment, rows, queue)
        if self._machine.waiting is not None:
            # A run in a bracket may also be the match of the first operand.
            self._machine.waiting.room -= 2 * (waiting.added - added + len(waiting.strict))
        if self._trace.end > before:
            self._machine.counts.take_nodes(self._trace.since(before))
        matches = [m for run in queue.complete for m in self._matches(run, moment)]
        self._forget(moment)
        return matches

    def _moment(self, instant: Instant, events: int) -> MeasuredInstant:
        """The next instant with its measures for the window."""
        before = self._position
        self._position += events
        if isinstance(self._machine.window, Counted):
            return MeasuredInstant(instant, before, self._position)
        return MeasuredInstant(instant, instant[0], instant[0])

    def _matches(self, run: Run, moment: MeasuredInstant) -> Iterator[PartitionMatch]:
        """The matches of a complete run that its window and its negated steps allow."""
        assert run.last is not None and run.origin is not None
        if not self._machine.window.holds(run.origin, moment.reach):
            return
        if not self._machine.checks_strict or self._is_consecutive(run):
            yield from self._allowed(run)

    def _allowed(self, run: Run) -> Iterator[PartitionMatch]:
        """The matches of a complete run that its negated steps allow."""
        window = self._machine.window
        for end in self._stepper.ends(run):
            ended = self._stepper.ended(run, end.actions)
            match = self._checks.match_of(ended)
            match.pending = self._stepper.duties(run, end)
            if match.pending:
                assert run.origin is not None
                assert not isinstance(window, Counted)
                match.close = window.close(run.origin)
            if not any(self._checks.is_violated(match, o) for o in ended.obligations):
                yield match

    def _is_consecutive(self, run: Run) -> bool:
        """Whether the partition has no other instant between the first and the last of a run.

        The run ends now.
        """
        mine = sorted({(row[1], row[2]) for _, row in trace_of(self._trace, run.trace)})
        return [instant for instant, _ in self._instants[-len(mine) :]] == mine

    def holds_pending(self, match: PartitionMatch) -> bool:
        """Whether the negations in last place of a match hold; its window has closed."""
        return not any(self._checks.is_violated(match, o) for o in match.pending)

    # --- memory -----------------------------------------------------------------------------------

    def _forget(self, moment: MeasuredInstant) -> None:
        """Drop data that has left the window, some of it only occasionally."""
        horizon = self._machine.window.horizon
        self._trace.forget(moment.reach - horizon)
        self._lists.forget(moment.reach - horizon)
        # Negations in first and last place look back one window from the close of another.
        keep = moment.reach - 2 * horizon
        history = self._history
        if history and len(history) % 256 == 0:
            del history[: bisect_left(history, keep, key=lambda p: p[1].reach)]
        if len(self._instants) % 1024 == 1023:
            oldest = moment.reach - horizon
            del self._instants[: bisect_left(self._instants, oldest, key=lambda i: i[1])]
        if self._waiting.added > self._limit:
            self._sweep(moment)

    def _sweep(self, moment: MeasuredInstant) -> None:
        """Drop all dead runs.

        The next sweep waits until their number may have doubled, so the cost is amortised.
        """
        waiting, live = self._waiting, 0
        for edge, table in list(waiting.tables.items()):
            for key, waits in list(table.items()):
                kept = [w for w in waits if self._stepper.is_alive(w.run, moment)]
                live += len(kept)
                if kept:
                    table[key] = kept
                else:
                    del table[key]
            if not table:
                del waiting.tables[edge]
        waiting.added = live
        self._limit = 2 * live + 1024

    def is_idle(self, time: int) -> bool:
        """Whether no data here can affect events at `time` or later (windows of time only)."""
        window = self._machine.window
        return not isinstance(window, Counted) and time - self.last_time > 2 * window.horizon

    def live_runs(self, now: Instant) -> int:
        """Number of waiting runs, without runs that have left the window."""
        return len({number for wait in self._alive(now) for number in _waiting(wait.run)})

    def live_runs_by(self, variable: str, now: Instant) -> Counter[str | None]:
        """As `live_runs`, by the term of a single variable."""
        by_run = dict[int, str | None]()
        for wait in self._alive(now):
            by_run.update(dict.fromkeys(_waiting(wait.run), value_of(wait.run, variable)))
        return Counter(by_run.values())

    def drop(self, variable: str, terms: Collection[str | None]) -> None:
        """Remove waiting runs that bind a single variable to some terms."""
        for table in self._waiting.tables.values():
            for key, waits in table.items():
                table[key] = [wait for wait in waits if value_of(wait.run, variable) not in terms]

    def live_states(
        self, places: StatePlaces, counts: Callable[[Run], bool] = lambda run: True
    ) -> Counter[StateKey]:
        """Number of counted runs that wait in each state, without runs outside the window."""
        by_run = dict[int, list[StateKey]]()
        for wait in self._alive((self.last_time, 0)):
            if wait.edge.id in places.source and counts(wait.run):
                by_run.update(_places(wait.run, wait.edge, places))
        return Counter(key for keys in by_run.values() for key in keys)

    def _alive(self, now: Instant) -> Iterator[WaitingRun]:
        """The waiting runs that may still become part of a match after an instant."""
        reach = self._position if isinstance(self._machine.window, Counted) else now[0]
        moment = MeasuredInstant(now, reach, reach)
        return (wait for wait in self._waiting if self._stepper.is_alive(wait.run, moment))

    def __getstate__(self) -> dict[str, object]:
        made_again = ("_checks", "_stepper")
        return {name: getattr(self, name) for name in self.__slots__ if name not in made_again}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._set_up()


def value_of(run: Run, variable: str) -> str | None:
    """The term of a single variable, which a run before a bracket may have bound."""
    text = run.singles.get(variable)
    while text is None and run.frame is not None:
        run = run.frame.point.run
        text = run.singles.get(variable)
    return text


def _waiting(run: Run) -> Iterator[int]:
    """The ids of the partial matches that wait as a run; see `_places`."""
    frame = run.frame
    left = None if frame is None else frame.left
    if left is not None:
        yield id(left)
    if run.first is not None:
        yield id(run)
    elif frame is not None and left is None:
        yield from _waiting(frame.point.run)


def _places(run: Run, edge: Edge, places: StatePlaces) -> Iterator[tuple[int, list[StateKey]]]:
    """(id of a run, its states) of the partial match that waits as a run at an edge.

    A run that has begun no operand of a bracket counts as the run before the bracket.
    """
    frame = run.frame
    left = None if frame is None else frame.left
    if frame is not None and left is not None:
        assert isinstance(frame.point.edge.label, BracketLabel)
        yield id(left), places.ends(frame.point.edge.label.operands[0])
    if run.first is not None:
        yield id(run), [places.source[edge.id]]
    elif frame is not None and left is None:
        yield from _places(frame.point.run, frame.point.edge, places)
