"""Checks of negated steps: a search of the event history for a match that must not be there."""

from __future__ import annotations

from spaseq.automaton.registers.python.candidate_queue import CandidateQueue
from spaseq.automaton.registers.python.event_history import EventHistory, between, search_start
from spaseq.automaton.registers.python.run_stepping import RunStepper, start_of
from spaseq.automaton.registers.python.surroundings import surroundings
from spaseq.automaton.run.machine import Machine
from spaseq.automaton.run.partition_evaluator import PartitionMatch
from spaseq.automaton.run.runs import Obligation, Outside, Run
from spaseq.automaton.run.scoping import ListNodes, TraceNodes, trace_of, values_since
from spaseq.automaton.run.waiting_runs import WaitingRuns


class NegationChecks:
    """Checks the obligations of complete matches against the event history."""

    __slots__ = ("_history", "_lists", "_machine", "_stepper", "_trace")

    def __init__(
        self,
        machine: Machine,
        trace: TraceNodes,
        lists: ListNodes,
        history: EventHistory,
        stepper: RunStepper,
    ) -> None:
        self._machine, self._trace, self._lists = machine, trace, lists
        self._history, self._stepper = history, stepper

    def is_violated(
        self, match: PartitionMatch, obligation: Obligation, around: Outside | None = None
    ) -> bool:
        """Whether a negated step matches where it must not.

        `around` is the view of `match` on its surroundings if `match` belongs to a negated step.
        """
        machine = self._machine
        machine.work.searches += 1
        after = search_start(self._history, machine.window, match, obligation)
        singles, outside = surroundings(machine, self._trace, match, obligation, around, after)
        automaton = machine.program.negated[obligation.negation].automaton
        waiting = WaitingRuns()
        self._stepper.wait(start_of(automaton, singles, outside), waiting)
        kept = between(self._history, machine.window, match.origin, after, obligation.before)
        for moment, rows in kept:
            if rows or machine.program.strict:
                queue = CandidateQueue()
                self._stepper.advance(waiting, moment, rows, queue)
                if any(self._stands(run) for run in queue.complete):
                    return True
        return False

    def _stands(self, run: Run) -> bool:
        """Whether a match of a negated step survives the negated steps inside it."""
        for end in self._stepper.ends(run):
            ended = self._stepper.ended(run, end.actions)
            if not ended.obligations:
                return True
            match = self.match_of(ended)
            if not any(self.is_violated(match, o, run.outside) for o in ended.obligations):
                return True
        return False

    def match_of(self, run: Run) -> PartitionMatch:
        """The match that a complete run stands for."""
        assert run.first is not None and run.last is not None and run.origin is not None
        lasts = run.groups.lists if run.groups else {}
        lists = {v: values_since(self._lists, last, 0) for v, last in lasts.items()}
        trace = tuple(reversed([*trace_of(self._trace, run.trace)]))
        return PartitionMatch(run.first, run.last, run.origin, trace, run.singles, lists)
