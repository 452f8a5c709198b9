"""The places of the values that the FILTERs of a step read, for the register kernels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from spaseq.automaton.program.alternatives import AlternativeEdge
from spaseq.automaton.program.bound_variables import EVENT_TIME, BoundVariables, last_time
from spaseq.automaton.program.nfa import Edge, GpmColumns, NoKernel, Program, TakeLabel
from spaseq.automaton.registers.compiled.edge_tests import (
    Place,
    Read,
    RunningValue,
    RunValue,
    SolutionValue,
)
from spaseq.automaton.registers.loop_tests import running_aggregate
from spaseq.lang import ast


class ReadValues:
    """The places of values: in the solution that is taken, or in registers of the run.

    Args:
        program: the program.
        gpms: its GPMs.
        bound: the variables that runs have bound, by state.
        takes: the edges that take a solution, each with its source.
    """

    def __init__(
        self,
        program: Program,
        gpms: Sequence[GpmColumns],
        bound: BoundVariables,
        takes: Sequence[tuple[int, AlternativeEdge]],
    ) -> None:
        self._program, self._gpms, self._bound, self._takes = program, gpms, bound, takes

    def place(self, variable: Read, source: int, edge: Edge, take: TakeLabel) -> Place:
        """The place of a value in a FILTER of the step that an edge takes; None if it is unbound.

        Raises:
            NoKernel: the kernel has no place for it.
        """
        gpm, owner = self._gpms[take.gpm], self._program.owner
        if isinstance(variable, ast.Timestamp | ast.Call):
            return self._time(variable, source)
        if isinstance(variable, ast.Prev):
            name = variable.var.name
            return RunValue(name) if self.repeats(f"PREV(?{name})", name, edge, take) else None
        if isinstance(variable, ast.Aggregate):
            return self._running(variable, source, edge, take)
        name = variable.name
        if name in gpm.variables:
            if name not in gpm.certain:
                raise NoKernel(f"a FILTER uses ?{name}, which may be unbound")
            return SolutionValue(name)
        if name in owner and take.views[name].kind != "whole":
            raise NoKernel(f"a FILTER uses ?{name} inside its repetition")
        return self._run_value(name, source)

    def _time(self, time: ast.Timestamp | ast.Call, source: int) -> Place:
        """The place of the time of the solution's event, or of the last event of a GPM."""
        if isinstance(time, ast.Call):
            return SolutionValue(EVENT_TIME)
        gpm = time.gpm.name
        if last_time(gpm) not in self._bound.possibly[source]:
            return None
        if last_time(gpm) not in self._bound.certainly[source]:
            raise NoKernel(f"a FILTER uses TIMESTAMP({gpm}), but {gpm} may have no event")
        return RunValue(last_time(gpm))

    def _run_value(self, name: str, source: int) -> Place:
        """The place of a variable that an earlier step may have bound."""
        if name not in self._bound.possibly[source]:
            return None
        if name not in self._bound.certainly[source]:
            raise NoKernel(f"a FILTER uses ?{name}, which may be unbound")
        return RunValue(name)

    def repeats(self, what: str, name: str, edge: Edge, take: TakeLabel) -> bool:
        """Whether an edge repeats the step that binds a group variable, and does not start it.

        `what` uses the variable in a FILTER of that step.
        """
        gpm, owner = self._gpms[take.gpm], self._program.owner.get(name)
        kinds = [action.kind for action in edge.actions if action.repeat == owner]
        if owner is None or name not in gpm.certain or kinds not in (["start"], ["again"]):
            raise NoKernel(f"{what} is not in the step that begins the repetition")
        if self._beginners[owner] != {take.occurrence}:
            raise NoKernel(f"{what} may be of a repetition that begins with another step")
        return kinds == ["again"]

    @cached_property
    def _beginners(self) -> dict[int, set[int]]:
        """By repetition the occurrences of the GPMs that begin one of its rounds."""
        beginners: dict[int, set[int]] = {}
        for _, taking in self._takes:
            for action in taking.edge.actions:
                if action.kind in ("start", "again"):
                    beginners.setdefault(action.repeat, set()).add(taking.take.occurrence)
        return beginners

    def _has_ended(self, name: str, source: int, take: TakeLabel) -> bool:
        """Whether a step follows a loop, each repetition of which begins by binding a variable.

        The loop is in no other loop.
        """
        owner, views = self._program.owner.get(name), take.views
        if owner is None or views[name].kind != "whole" or name in self._gpms[take.gpm].variables:
            return False
        if name not in self._bound.certainly[source]:
            return False
        if any(name in names for r, names in self._program.owned_within.items() if r != owner):
            return False
        return all(
            name in self._gpms[taking.take.gpm].certain
            and [a.kind for a in taking.edge.actions if a.repeat == owner] in (["start"], ["again"])
            for _, taking in self._takes
            if name in self._gpms[taking.take.gpm].variables
        )

    def _running(self, aggregate: ast.Aggregate, source: int, edge: Edge, take: TakeLabel) -> Place:
        """The place of an aggregate in a FILTER of the step that an edge takes."""
        name, function = running_aggregate(aggregate)
        if function is None and name in self._gpms[take.gpm].certain:
            return SolutionValue(name)
        if self._has_ended(name, source, take):
            done = RunningValue(name, function or "FIRST", begins=False, ended=True)
            return RunValue(name) if function is None else done
        again = self.repeats(f"{aggregate.function}(?{name})", name, edge, take)
        return SolutionValue(name) if function is None else RunningValue(name, function, not again)
