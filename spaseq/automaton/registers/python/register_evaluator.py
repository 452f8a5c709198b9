"""The register evaluator: every partial match is a run with its bindings in registers.

It evaluates the whole language, conditions between events included (compare register match
automata). Events are worked off one instant of one partition at a time; runs are found by the
edge they wait at and by join key, and expire with the window. Second operands of `&` and AND see
the first one's bindings, so they are evaluated over the kept past when the first is complete.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.nfa import BracketLabel, Edge, TakeLabel
from spaseq.automaton.program.window import Counted
from spaseq.automaton.registers.python.candidate_queue import CandidateQueue
from spaseq.automaton.registers.python.event_history import EventHistory, between, bound, replay
from spaseq.automaton.registers.python.surroundings import surroundings
from spaseq.automaton.registers.python.taking import Taker
from spaseq.automaton.run.arena import NIL, Arena
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.partition_evaluator import PartitionMatch, RowsByGpm
from spaseq.automaton.run.runs import (
    BracketFrame,
    ChoicePoint,
    Groups,
    MeasuredInstant,
    Obligation,
    Outside,
    Row,
    Run,
    WaitingRun,
)
from spaseq.automaton.run.scoping import (
    ListNodes,
    TraceNodes,
    follow,
    trace_of,
    values_since,
)
from spaseq.automaton.run.waiting_runs import WaitingRuns, by_key


class RegisterEvaluator:
    """All run-time state of one partition; everything in it can be pickled for a snapshot."""

    __slots__ = (
        "_initial",
        "_instants",
        "_limit",
        "_lists",
        "_machine",
        "_past",
        "_position",
        "_taker",
        "_trace",
        "_waits",
        "last_time",
        "suppressed",
    )

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._trace: TraceNodes = Arena()
        self._lists: ListNodes = Arena()
        self._waits = WaitingRuns()
        self._past: EventHistory = []
        self._instants: list[tuple[Instant, int]] = []  # with their measures, if asked for
        self._position = 0  # events so far
        self.last_time = -(2**63)
        self.suppressed = 0  # the limit is applied to what is found here
        self._taker = Taker(machine, self._trace, self._lists)
        start = Run(machine.program.automaton.states[0], None, None, None, None, None, {}, None)
        self._wait(start, self._waits)
        self._initial = self._waits.added
        self._limit = 2 * self._initial + 1024

    # --- taking over from the compiled evaluator ------------------------------------------------

    def begin_at(self, events: int) -> None:
        """The partition has had so many events."""
        self._position = events

    def wait_at(self, edge: Edge, path: Sequence[tuple[Edge, Row]], origin: int) -> None:
        """Let a run wait at an edge that has taken some rows along others; `origin` is the measure
        of the first. Nothing is tested; what negated steps forbid has been, up to now."""
        run = Run(self._machine.program.automaton.states[0], None, None, None, None, None, {}, None)
        for taken, row in path:
            run = self._taken_before(run, taken, row, origin)
        assert run.last is not None
        self.last_time = max(self.last_time, run.last[0])
        groups = self._groups_after(run, edge)
        passed = tuple(Obligation(n, run.last, None) for n in edge.negations)
        self._add_wait(run, edge, groups, passed, self._waits)

    def _taken_before(self, run: Run, edge: Edge, row: Row, origin: int) -> Run:
        taking, label, values = self._machine.takes[edge.id], edge.label, row[4]
        assert isinstance(label, TakeLabel)
        groups = self._groups_after(run, edge)
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
            self._taker.bind(groups, taking.groups, values),
            self._trace.add((label.gpm, row, run.trace)),
        )

    def _groups_after(self, run: Run, edge: Edge) -> Groups | None:
        program = self._machine.program
        return follow(program, self._lists, edge.actions, run.groups, (), run.trace)[0]

    # --- one instant --------------------------------------------------------------------------

    def step(self, instant: Instant, rows: RowsByGpm, events: int) -> list[PartitionMatch]:
        """Work off the solutions of one instant.

        `events` is how many of the partition's events have this instant. Negations in last place
        are left to `pending`; all others have been checked.
        """
        moment = self._moment(instant, events)
        program = self._machine.program
        self.last_time = instant[0]
        if program.replayed:
            kept = {g: r for g, r in rows.items() if g in program.replayed}
            if kept or program.strict:
                self._past.append((instant, moment, kept))
        if self._machine.keep_instants:
            self._instants.append((instant, moment.reach))
        self._trace.mark(moment.start)
        self._lists.mark(moment.start)
        agenda = CandidateQueue()
        self._advance(self._waits, moment, rows, agenda)
        found = [f for run in agenda.complete for f in self._conclude(run, moment)]
        self._forget(moment)
        return found

    def _moment(self, instant: Instant, events: int) -> MeasuredInstant:
        before = self._position
        self._position += events
        if isinstance(self._machine.window, Counted):
            return MeasuredInstant(instant, before, self._position)
        return MeasuredInstant(instant, instant[0], instant[0])

    def _advance(
        self, waits: WaitingRuns, moment: MeasuredInstant, rows: RowsByGpm, agenda: CandidateQueue
    ) -> None:
        """Offer an instant's solutions to all that waits, and settle what follows from it."""
        arrivals: list[Run] = []
        for wait in waits.take_strict(moment.instant):
            label = wait.edge.label
            assert isinstance(label, TakeLabel)
            if label.gpm in rows and self._alive(wait.run, moment):
                arrivals.extend(self._taker.taken(wait, rows[label.gpm], moment))
        if waits.tables:
            for gpm, solutions in rows.items():
                for edge in self._machine.edges_of.get(gpm, ()):
                    if waits.tables.get(edge.id):
                        self._offer(waits, edge, solutions, moment, arrivals)
        for run in arrivals:
            self._arrive(run, waits, moment, agenda)
        while (entry := agenda.pop()) is not None:
            for run in self._accepted(*entry):
                self._arrive(run, waits, moment, agenda)

    def _offer(
        self,
        waits: WaitingRuns,
        edge: Edge,
        rows: list[Row],
        moment: MeasuredInstant,
        arrivals: list[Run],
    ) -> None:
        table = waits.tables[edge.id]
        for key, solutions in by_key(rows, self._machine.takes[edge.id].key).items():
            waiting = table.get(key)
            if not waiting:
                continue
            kept = []
            for wait in waiting:
                if not self._alive(wait.run, moment):
                    continue
                taken = self._taker.taken(wait, solutions, moment)
                arrivals.extend(taken)
                if not (taken and wait.once):
                    kept.append(wait)
            if kept:
                table[key] = kept
            else:
                del table[key]

    def _alive(self, run: Run, moment: MeasuredInstant) -> bool:
        """Whether a run can still become part of a match."""
        holds, origin, reach = self._machine.window.holds, run.origin, moment.reach
        # While the past is replayed, a moment may lie before what the run has taken already.
        if origin is not None and reach > origin and not holds(origin, reach):
            return False
        frame = run.frame
        if frame is None:
            return True
        if frame.conjunction and run.tau is not None and run.tau != moment.instant[0]:
            return False
        first = run.first or moment.instant
        while frame is not None and not frame.awaits_left:
            if frame.left is not None and frame.left.first is not None:
                first = min(first, frame.left.first)
            point = frame.point
            join = point.edge.join
            if join is not None and join.kind != ":":
                limit = point.earliest if join.kind == ";" else point.next
                if limit is not None and first > limit:
                    return False
            if point.run.first is not None:
                first = point.run.first
            frame = point.run.frame
        return True

    # --- arriving in a state --------------------------------------------------------------------

    def _arrive(
        self, run: Run, waits: WaitingRuns, moment: MeasuredInstant, agenda: CandidateQueue
    ) -> None:
        """A run has reached its state: it may be complete there, and it may go on."""
        if run.state.acceptances:
            if run.frame is None:
                agenda.complete.append(run)
            else:
                for end in run.state.acceptances:
                    self._operand_complete(self._ended(run, end.actions), waits, moment, agenda)
        self._wait(run, waits)

    def _ended(self, run: Run, actions: tuple[object, ...]) -> Run:
        if not actions:
            return run
        groups, obligations = follow(
            self._machine.program,
            self._lists,
            actions,  # type: ignore[arg-type]
            run.groups,
            run.obligations,
            run.trace,
        )
        return replace(run, groups=groups, obligations=obligations)

    def _wait(self, run: Run, waits: WaitingRuns) -> None:
        """Let a run wait at every edge of its state."""
        program = self._machine.program
        for edge in run.state.edges:
            groups, obligations = follow(
                program, self._lists, edge.actions, run.groups, run.obligations, run.trace
            )
            passed = tuple(Obligation(n, run.last, None) for n in edge.negations)
            if isinstance(edge.label, BracketLabel):
                self._open(run, edge, groups, obligations, passed, waits)
                continue
            self._add_wait(run, edge, groups, obligations + passed, waits)

    def _add_wait(
        self,
        run: Run,
        edge: Edge,
        groups: Groups | None,
        obligations: tuple[Obligation, ...],
        waits: WaitingRuns,
    ) -> None:
        assert isinstance(edge.label, TakeLabel)
        once = edge.join is not None and edge.join.kind == ";"
        wait = WaitingRun(run, edge, groups, obligations, once)
        if edge.join is not None and edge.join.kind == ",":
            waits.strict.append(wait)
        else:
            waits.add(wait, tuple([run.singles.get(v) for v in edge.label.key]))

    def _open(
        self,
        run: Run,
        edge: Edge,
        groups: Groups | None,
        obligations: tuple[Obligation, ...],
        passed: tuple[Obligation, ...],
        waits: WaitingRuns,
    ) -> None:
        """Start runs of a bracket's operands (of its first operand, for `&` and AND)."""
        label, outer = edge.label, run.frame
        assert isinstance(label, BracketLabel)
        after = run.last
        if after is None:
            after = outer.point.after if outer else run.outside.after if run.outside else None
        depth = outer.point.depth + 1 if outer else 0
        point = ChoicePoint(run, edge, groups, passed, depth, after)
        if edge.join is not None and edge.join.kind == ",":
            waits.points.append(point)
        conjunction = label.kind == "&" or (outer is not None and outer.conjunction)
        both = label.kind != "|"
        for operand in label.operands[: 1 if both else None]:
            frame = BracketFrame(point, operand, conjunction, awaits_left=both)
            start = replace(
                run,
                state=operand.states[0],
                frame=frame,
                first=None,
                last=None,
                groups=groups,
                obligations=obligations,
            )
            self._wait(start, waits)

    def _operand_complete(
        self, run: Run, waits: WaitingRuns, moment: MeasuredInstant, agenda: CandidateQueue
    ) -> None:
        frame = run.frame
        assert frame is not None
        if frame.awaits_left:
            self._second_operand(run, waits, moment, agenda)
        elif frame.left is None or frame.taken.isdisjoint(self._events_since(run, frame.left)):
            agenda.add(frame.point, run)

    def _second_operand(
        self, left: Run, waits: WaitingRuns, moment: MeasuredInstant, agenda: CandidateQueue
    ) -> None:
        """Evaluate the second operand with the first one's bindings: over the past, then on."""
        frame = left.frame
        assert frame is not None
        point, label = frame.point, frame.point.edge.label
        assert isinstance(label, BracketLabel)
        taken = self._events_since(left, point.run) if label.kind == "AND" else frozenset()
        operand = label.operands[1]
        second = BracketFrame(point, operand, frame.conjunction, left, taken)
        start = replace(left, state=operand.states[0], frame=second, first=None, last=None)
        local, inner = WaitingRuns(), CandidateQueue(point.depth + 1, agenda)
        self._wait(start, local)
        tau = left.tau if frame.conjunction else None
        for past, rows in replay(self._past, point.after, moment.instant, tau):
            self._advance(local, past, rows, inner)
        waits.merge(local)

    def _events_since(self, run: Run, before: Run) -> frozenset[tuple[int, Instant]]:
        """The events a run has taken since an earlier one that it goes on from."""
        events = set()
        node = run.trace
        while node not in (before.trace, NIL):
            _, row, node = self._trace[node]
            events.add((row[0], (row[1], row[2])))
        return frozenset(events)

    def _accepted(self, point: ChoicePoint, candidates: list[Run]) -> Iterator[Run]:
        """The candidates of a bracket that the operator before it pairs with its run."""
        spans = [(self._span(run), run) for run in candidates]
        join, before = point.edge.join, point.run.last
        if join is not None and before is not None:
            if join.gap_ms is not None:
                spans = [s for s in spans if s[0][0][0] - before[0] <= join.gap_ms]
            if join.kind == ",":
                spans = [s for s in spans if s[0][0] == point.next]
            elif join.kind == ";" and spans:
                earliest = min(first for (first, _), _ in spans)
                if point.earliest is None or earliest < point.earliest:
                    point.earliest = earliest
                spans = [s for s in spans if s[0][0] == point.earliest]
        for (first, last), run in spans:
            yield self._joined(point, run, first, last)

    def _span(self, run: Run) -> tuple[Instant, Instant]:
        """First and last instant of an operand's match, both operands of a conjunction taken."""
        assert run.first is not None and run.last is not None and run.frame is not None
        first, last, left = run.first, run.last, run.frame.left
        if left is not None:
            assert left.first is not None and left.last is not None
            return min(first, left.first), max(last, left.last)
        return first, last

    def _joined(self, point: ChoicePoint, run: Run, first: Instant, last: Instant) -> Run:
        """The run that waited for a bracket, having taken a match of it."""
        before = point.run
        passed = tuple(replace(o, before=first) for o in point.obligations)
        conjunction = before.frame is not None and before.frame.conjunction
        return replace(
            run,
            state=self._machine.target[point.edge.id],
            frame=before.frame,
            first=before.first or first,
            last=last,
            tau=last[0] if conjunction else None,
            obligations=run.obligations + passed,
        )

    # --- the past -------------------------------------------------------------------------------

    def _forget(self, moment: MeasuredInstant) -> None:
        horizon = moment.reach - self._machine.window.horizon
        self._trace.forget(horizon)
        self._lists.forget(horizon)
        past = self._past
        if past and len(past) % 256 == 0:
            # Negations in first and last place look back one window behind a window's close.
            keep = moment.reach - 2 * self._machine.window.horizon
            del past[: bisect_left(past, keep, key=lambda p: p[1].reach)]
        if len(self._instants) % 1024 == 1023:
            keep = moment.reach - 2 * self._machine.window.horizon
            del self._instants[: bisect_left(self._instants, keep, key=lambda i: i[1])]
        if self._waits.added > self._limit:
            self._sweep(moment)

    def _sweep(self, moment: MeasuredInstant) -> None:
        """Drop dead runs everywhere; amortised, as it waits until their number may have doubled."""
        waits, live = self._waits, 0
        for edge, table in list(waits.tables.items()):
            for key, waiting in list(table.items()):
                kept = [w for w in waiting if self._alive(w.run, moment)]
                live += len(kept)
                if kept:
                    table[key] = kept
                else:
                    del table[key]
            if not table:
                del waits.tables[edge]
        waits.added = live
        self._limit = 2 * live + 1024

    def is_idle(self, time: int) -> bool:
        """Whether nothing here can matter to events at `time` or later (time windows only)."""
        window = self._machine.window
        return not isinstance(window, Counted) and time - self.last_time > 2 * window.horizon

    def __getstate__(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__ if name != "_taker"}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._taker = Taker(self._machine, self._trace, self._lists)

    def live_runs(self) -> int:
        """How many runs wait (dead ones not yet swept included)."""
        return sum(1 for _ in self._waits)

    def consecutive(self, instants: Iterable[Instant]) -> bool:
        """Whether instants of events here follow each other without another one between."""
        mine = sorted(set(instants))
        start = bisect_left(self._instants, mine[0], key=lambda i: i[0])
        return [i for i, _ in self._instants[start : start + len(mine)]] == mine

    # --- complete matches ------------------------------------------------------------------------

    def _conclude(self, run: Run, moment: MeasuredInstant) -> Iterator[PartitionMatch]:
        """The matches that a complete run stands for: window and negations checked."""
        assert run.first is not None and run.last is not None and run.origin is not None
        window = self._machine.window
        if not window.holds(run.origin, moment.reach):
            return
        for end in run.state.acceptances:
            ended = self._ended(run, end.actions)
            lists = self._value_lists(ended)
            trace = tuple(reversed([*trace_of(self._trace, run.trace)]))
            pending = tuple(Obligation(n, run.last, None) for n in end.negations)
            close = None
            if pending:
                assert not isinstance(window, Counted)
                close = window.close(run.origin)
            found = PartitionMatch(
                run.first, run.last, run.origin, trace, ended.singles, lists, pending, close
            )
            if not any(self._violated(found, o) for o in ended.obligations):
                yield found

    def holds_pending(self, found: PartitionMatch) -> bool:
        """Whether the negations in last place of a match hold, its window having closed."""
        return not any(self._violated(found, o) for o in found.pending)

    def _violated(
        self, found: PartitionMatch, obligation: Obligation, around: Outside | None = None
    ) -> bool:
        """Whether a negated step matches where it must not.

        `around` is what the match itself sees outside, being one of a negated step.
        """
        self._machine.work.searches += 1
        negated = self._machine.program.negated[obligation.negation]
        past, window = self._past, self._machine.window
        after = bound(past, window, found, obligation)
        singles, outside = surroundings(
            self._machine, self._trace, found, obligation, around, after
        )
        start = Run(
            negated.automaton.states[0], None, None, None, None, None, singles, None,
            outside=outside,
        )  # fmt: skip
        local = WaitingRuns()
        self._wait(start, local)
        strict = self._machine.program.strict
        for moment, rows in between(past, window, found.origin, after, obligation.before):
            if rows or strict:
                agenda = CandidateQueue()
                self._advance(local, moment, rows, agenda)
                if any(self._stands(run) for run in agenda.complete):
                    return True
        return False

    def _stands(self, run: Run) -> bool:
        """Whether a match of a negated step survives the negated steps inside it."""
        for end in run.state.acceptances:
            ended = self._ended(run, end.actions)
            if not ended.obligations:
                return True
            assert run.first is not None and run.last is not None and run.origin is not None
            lists = self._value_lists(ended)
            trace = tuple(trace_of(self._trace, run.trace))
            found = PartitionMatch(run.first, run.last, run.origin, trace, ended.singles, lists)
            if not any(self._violated(found, o, run.outside) for o in ended.obligations):
                return True
        return False

    def _value_lists(self, run: Run) -> dict[str, tuple[str, ...]]:
        """All values of a run's group variables, in order."""
        lasts = run.groups.lists if run.groups else {}
        return {v: values_since(self._lists, last, 0) for v, last in lasts.items()}
