"""Steps of waiting runs: an instant is offered to them, runs arrive in states and wait again.

The second operand of `&` and AND sees the bindings of the first. So it is evaluated over the event
history once the first is complete, and then over the following events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TypeAlias

from spaseq.algebra.answers import Instant
from spaseq.automaton.program.counters import Action
from spaseq.automaton.program.nfa import (
    Acceptance,
    Automaton,
    BracketLabel,
    Edge,
    GreedyExit,
    TakeLabel,
)
from spaseq.automaton.registers.python.brackets import (
    CandidateQueue,
    accepted,
    are_disjoint,
    choice_point,
    events_since,
    may_be_accepted,
)
from spaseq.automaton.registers.python.event_history import EventHistory, between, replay
from spaseq.automaton.registers.python.taking import Taker
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.matches import NO_VALUES, RowsByGpm
from spaseq.automaton.run.runs import (
    BracketFrame,
    Candidate,
    ChoicePoint,
    Duty,
    Groups,
    LeftLoop,
    MeasuredInstant,
    Obligation,
    Outside,
    Rivals,
    Row,
    Run,
    WaitingRun,
)
from spaseq.automaton.run.scoping import ListNodes, TraceNodes, follow, may_follow
from spaseq.automaton.run.waiting_runs import WaitingRuns, by_key

Moments: TypeAlias = Iterator[tuple[MeasuredInstant, RowsByGpm]]
"""Instants of the event history, in order, with their solutions."""


def start_of(
    automaton: Automaton, singles: Mapping[str, str] = NO_VALUES, outside: Outside | None = None
) -> Run:
    """A run that has taken nothing; one of a negated step sees the match around it."""
    return Run(automaton.states[0], None, None, None, None, None, singles, None, outside=outside)


class RunStepper:
    """Steps sets of waiting runs whose traces and lists of values are in two arenas."""

    __slots__ = ("_history", "_lists", "_machine", "_together", "_trace", "taker")

    def __init__(
        self, machine: Machine, trace: TraceNodes, lists: ListNodes, history: EventHistory
    ) -> None:
        self._machine, self._trace, self._lists = machine, trace, lists
        self._history = history
        self._together: list[WaitingRun] = []  # for a solution of the instant that is being offered
        self.taker = Taker(machine, trace, lists)

    # --- one instant ------------------------------------------------------------------------------

    def advance(
        self, waiting: WaitingRuns, moment: MeasuredInstant, rows: RowsByGpm, queue: CandidateQueue
    ) -> None:
        """Offer the solutions of an instant to all waiting runs, until no run can continue.

        Runs that accept in an outermost automaton are in `queue.complete` then.
        """
        arrivals: list[Run] = []
        if waiting.strict or waiting.points:
            for wait in waiting.take_strict(moment.instant):
                label = wait.edge.label
                assert isinstance(label, TakeLabel)
                if label.gpm in rows and self.is_alive(wait.run, moment):
                    taken = self.taker.taken(wait, rows[label.gpm], moment)
                    arrivals += self.taker.going_on(wait.edge, taken)
        tables, earliest = waiting.tables, self._machine.window.earliest(moment.reach)
        for gpm, solutions in rows.items() if tables else ():
            edges: Collection[int] = self._machine.edges_of.get(gpm, ())
            few, many = (tables, edges) if len(tables) < len(edges) else (edges, tables)
            for edge in [number for number in few if number in many]:
                arrivals += self._offer(waiting, edge, solutions, moment, earliest)
        held: list[Run] = []  # complete candidates
        while arrivals:
            for run in arrivals:
                if self._is_complete(run):
                    held.append(run)
                else:
                    self._arrive(run, waiting, moment, queue)
            together, self._together = self._together, []
            arrivals = [
                run
                for wait in together
                if isinstance(label := wait.edge.label, TakeLabel)
                for run in self.taker.going_on(
                    wait.edge, self.taker.taken(wait, rows.get(label.gpm, ()), moment)
                )
            ]
        while (entry := queue.pop()) is not None:
            for run in accepted(*entry, self._machine.target):
                if self._is_complete(run):
                    held.append(run)
                else:
                    self._arrive(run, waiting, moment, queue)
        for run in self._not_forestalled(held):
            self._arrive(run, waiting, moment, queue)

    def _offer(
        self,
        waiting: WaitingRuns,
        edge: int,
        rows: list[Row],
        moment: MeasuredInstant,
        earliest: int,
    ) -> list[Run]:
        """Offer the solutions of an instant to the runs at one edge; return the runs that follow.

        `earliest` is the least measure of a first event whose window has not passed.
        """
        table, arrivals = waiting.tables[edge], list[Run]()
        for key, solutions in by_key(rows, self._machine.takes[edge].key).items():
            waits = table.get(key)
            if not waits:
                continue
            kept = []
            for wait in waits:
                run = wait.run
                if run.origin is not None and run.origin < earliest:
                    continue
                if run.frame is not None and not self._may_go_on(run, run.frame, moment):
                    continue
                if run.candidate is not None and run.candidate.is_forestalled:
                    continue
                taken = self.taker.taken(wait, solutions, moment)
                arrivals += self.taker.going_on(wait.edge, taken)
                if not (taken and wait.once):
                    kept.append(wait)
            if kept:
                table[key] = kept
            else:
                del table[key]
        if not table:
            del waiting.tables[edge]
        return arrivals

    def _is_complete(self, run: Run) -> bool:
        """Whether a run is a whole candidate: a counted loop may need further repetitions."""
        program, state = self._machine.program, run.state
        if not state.completes or not program.bounds:
            return state.completes
        ways = [edge.actions for edge in state.edges if not edge.within]
        ways += [end.actions for end in state.acceptances]
        return any(may_follow(program, actions, run.groups) for actions in ways)

    def _not_forestalled(self, complete: Sequence[Run]) -> list[Run]:
        """The runs that no other candidate forestalls, of all that an instant completes."""
        runs = [run for run in complete if not self._passes_over(run)]
        candidates = [(run, run.candidate) for run in runs if run.candidate is not None]
        for _, candidate in candidates:
            candidate.complete()
        return [run for run, candidate in candidates if not candidate.is_forestalled]

    def _passes_over(self, run: Run) -> bool:
        """Whether a complete candidate passes over a step behind `;`, so it does not count."""
        assert run.origin is not None
        left = [o for o in run.obligations if isinstance(o, LeftLoop) and o.exit.forestalls]
        return any(next(self.going_on(o, run.origin), None) is not None for o in left)

    def is_alive(self, run: Run, moment: MeasuredInstant) -> bool:
        """Whether a run can still become part of a match."""
        # In a replay of the event history, a moment may lie before events of the run.
        if run.origin is not None and run.origin < self._machine.window.earliest(moment.reach):
            return False
        if run.candidate is not None and run.candidate.is_forestalled:
            return False
        return run.frame is None or self._may_go_on(run, run.frame, moment)

    def _may_go_on(self, run: Run, frame: BracketFrame, moment: MeasuredInstant) -> bool:
        """Whether the bracket of a run can still be matched."""
        if frame.conjunction and run.tau is not None and run.tau != moment.instant[0]:
            return False
        return may_be_accepted(run, moment.instant)

    # --- the event history ------------------------------------------------------------------------

    def going_on(self, left: LeftLoop, origin: int) -> Iterator[Run]:
        """The runs that repeat a greedy loop once more before the next step begins.

        If no loop has been left, they take the step behind `;` that is passed over. `origin` is the
        measure of the match's first event.
        """
        program, before = self._machine.program, left.run
        automaton = program.further[left.exit]
        moments = self.moments(automaton, origin, before.last, left.end)
        if moments is None:
            return
        once_more = program.once_more(left.exit)
        groups, obligations = follow(
            program, self._lists, once_more, before.groups, left.until, before
        )
        start = replace(
            before, state=automaton.states[0], frame=None, groups=groups, obligations=obligations
        )
        yield from self.found(start, moments)

    def moments(
        self, automaton: Automaton, origin: int, after: Instant | None, end: Instant | None
    ) -> Moments | None:
        """The instants between two others that concern an automaton; None if there are none."""
        machine = self._machine
        gpms, strict = machine.gpms_of[automaton.id], machine.program.strict
        moments = (
            (moment, rows)
            for moment, rows in between(self._history, machine.window, origin, after, end)
            if strict or not gpms.isdisjoint(rows)
        )
        first = next(moments, None)
        return None if first is None else chain((first,), moments)

    def found(self, start: Run, moments: Moments) -> Iterator[Run]:
        """The complete runs from a start over some instants of the event history."""
        waiting = WaitingRuns()
        self.wait(start, waiting)
        for moment, rows in moments:
            queue = CandidateQueue()
            self.advance(waiting, moment, rows, queue)
            yield from queue.complete

    # --- arriving in a state ----------------------------------------------------------------------

    def _arrive(
        self, run: Run, waiting: WaitingRuns, moment: MeasuredInstant, queue: CandidateQueue
    ) -> None:
        """Process a run that has reached its state: it may be complete, and it may continue."""
        if run.state.acceptances:
            if run.frame is None:
                queue.complete.append(run)
            else:
                for end in self.ends(run):
                    self._complete_operand(self.ended(run, end.actions), waiting, moment, queue)
        self.wait(run, waiting)

    def ends(self, run: Run) -> Iterator[Acceptance]:
        """The ways in which a run accepts in its state."""
        program = self._machine.program
        for end in run.state.acceptances:
            if not program.bounds or may_follow(program, end.actions, run.groups):
                yield end

    def ended(self, run: Run, actions: Sequence[Action]) -> Run:
        """A run after the actions with which it accepts."""
        if not actions:
            return run
        groups, obligations = follow(
            self._machine.program, self._lists, actions, run.groups, run.obligations, run
        )
        return run.after_actions(groups, obligations)

    def wait(self, run: Run, waiting: WaitingRuns) -> None:
        """Let a run wait at every edge out of its state."""
        program, rivals = self._machine.program, dict[int, Rivals]()
        for edge in run.state.edges:
            actions = edge.actions
            if program.bounds and actions and not may_follow(program, actions, run.groups):
                continue
            candidate = run.candidate if edge.within else None
            if edge.opens is not None:
                candidate = Candidate(rivals.setdefault(edge.opens, Rivals()))
            self.wait_along(edge, run.as_candidate(candidate), waiting)

    def wait_along(
        self, edge: Edge, run: Run, waiting: WaitingRuns, may_leave: bool = False
    ) -> None:
        """Let a run wait at an edge, for a solution or for a match of a bracket.

        `may_leave`: the run may leave its greedy loop in any case.
        """
        groups, obligations = run.groups, run.obligations
        if edge.actions:
            program, lists = self._machine.program, self._lists
            seen = run.seen_by(edge)
            groups, obligations = follow(program, lists, edge.actions, groups, obligations, seen)
        if edge.negations or edge.exits:
            duties = self.duties(run, edge)
            obligations += (
                tuple(d for d in duties if isinstance(d, Obligation)) if may_leave else duties
            )
        if isinstance(edge.label, BracketLabel):
            passed = tuple(o for o in obligations if o.before is None)
            point = choice_point(run, edge, groups, passed)
            settled = tuple(o for o in obligations if o.before is not None)
            self._open(point, settled, waiting)
        else:
            self.wait_at(edge, run, groups, obligations, waiting)

    def duties(self, run: Run, way: Edge | Acceptance) -> tuple[Duty, ...]:
        """The negated steps that a run passes, and the greedy loops that it leaves early."""
        if not way.negations and not way.exits:
            return ()
        program = self._machine.program
        left = (e for e in way.exits if may_follow(program, program.once_more(e), run.groups))
        seen = run.seen_by(way) if isinstance(way, Edge) else run
        return (
            *(Obligation(n, seen.last, None) for n in way.negations),
            *(self._left(e, run if e.forestalls else seen) for e in left),
        )

    def _left(self, left: GreedyExit, run: Run) -> LeftLoop:
        run = run.as_candidate(None)  # it counts whatever its rivals do
        until = self._machine.program.untils.get(left.repeat)
        obligations = [o for o in run.obligations if isinstance(o, Obligation)]
        if left.forestalls:
            known = tuple(o for o in obligations if o.until)
            return LeftLoop(left, run.after_actions(run.groups, ()), None, known)
        untils = [o for o in obligations if o.negation == until]
        return LeftLoop(
            left, run.after_actions(run.groups, ()), None, () if left.first else (*untils[-1:],)
        )

    def wait_at(
        self,
        edge: Edge,
        run: Run,
        groups: Groups | None,
        obligations: tuple[Duty, ...],
        waiting: WaitingRuns,
    ) -> None:
        """Let a run wait at an edge that takes solutions.

        `groups` and `obligations` are the run's after the actions of the edge.
        """
        assert isinstance(edge.label, TakeLabel)
        once = edge.join is not None and edge.join.kind == ";"
        wait = WaitingRun(run, edge, groups, obligations, once)
        if edge.together:
            self._together.append(wait)
        elif edge.join is not None and edge.join.kind == ",":
            waiting.strict.append(wait)
        else:
            key = edge.label.key
            waiting.add(wait, tuple([run.singles.get(v) for v in key]) if key else ())

    # --- brackets ---------------------------------------------------------------------------------

    def _open(
        self, point: ChoicePoint, obligations: tuple[Duty, ...], waiting: WaitingRuns
    ) -> None:
        """Start runs of a bracket's operands (of its first operand, for `&` and AND)."""
        run, edge, label = point.run, point.edge, point.edge.label
        assert isinstance(label, BracketLabel)
        if edge.join is not None and edge.join.kind == ",":
            waiting.points.append(point)
        conjunction = label.kind == "&" or (run.frame is not None and run.frame.conjunction)
        both = label.kind != "|"
        for operand in label.operands[: 1 if both else None]:
            frame = BracketFrame(point, operand, conjunction, awaits_left=both)
            begun = run.in_operand(operand.states[0], frame, point.groups, obligations)
            if self._machine.keeps_paths:
                begun.path = (*run.path, (edge, None))
            self.wait(begun, waiting)

    def _complete_operand(
        self, run: Run, waiting: WaitingRuns, moment: MeasuredInstant, queue: CandidateQueue
    ) -> None:
        """Record that a run has matched an operand of a bracket."""
        frame = run.frame
        assert frame is not None
        if frame.awaits_left:
            self._start_second(run, waiting, moment, queue)
        elif are_disjoint(frame, self._trace, run):
            queue.add(frame.point, run)

    def _start_second(
        self, left: Run, waiting: WaitingRuns, moment: MeasuredInstant, queue: CandidateQueue
    ) -> None:
        """Evaluate the second operand over the event history, with the bindings of the first."""
        frame = left.frame
        assert frame is not None
        point, label = frame.point, frame.point.edge.label
        assert isinstance(label, BracketLabel)
        taken = events_since(self._trace, left, point.run) if label.kind == "AND" else frozenset()
        operand = label.operands[1]
        second = BracketFrame(point, operand, frame.conjunction, left, taken)
        start = left.in_operand(operand.states[0], second, left.groups, left.obligations)
        local, inner = WaitingRuns(), CandidateQueue(point.depth + 1, queue)
        self.wait(start, local)
        tau = left.tau if frame.conjunction else None
        machine, gpms = self._machine, self._machine.gpms_of[operand.id]
        for past, rows in replay(self._history, machine.window, point.after, moment, tau):
            if machine.program.strict or not gpms.isdisjoint(rows):
                self.advance(local, past, rows, inner)
        waiting.merge(local)
