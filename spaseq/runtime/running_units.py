"""The graph of the units that run, over streams that go on: which may have answers, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from spaseq import thresholds
from spaseq.plan.families import family_key
from spaseq.rdf.terms.term import Triple
from spaseq.runtime.arrivals.passing_time import Watched
from spaseq.runtime.job.unit_graph import UnitGraph
from spaseq.runtime.possible_units import PossibleUnits
from spaseq.runtime.pushed_units import PushedUnit


class RunningUnits(UnitGraph[PushedUnit]):
    """What evaluates the queries that have not failed."""

    def __init__(self, units: Iterable[PushedUnit]) -> None:
        self._possible: dict[str, PossibleUnits] = {}  # by stream, once it is asked for
        self._alone: Counter[object] | None = None  # see `alone`
        super().__init__(units)

    def add(self, unit: PushedUnit) -> None:
        super().add(unit)
        if self._alone is not None and not unit.is_family:
            self._alone[family_key(unit.plan)] += 1
        for iri in unit.plan.inputs.streams:
            if iri in self._possible:
                self._possible[iri].add(unit)

    def alone(self, key: object) -> int:
        """How many queries run by themselves that have a `family_key`."""
        if self._alone is None:
            alone = (unit.plan for unit in self if not unit.is_family)
            self._alone = Counter(map(family_key, alone))
        return self._alone[key]

    def concerned(self, iri: str, triples: Sequence[Triple]) -> Sequence[PushedUnit]:
        """What may have solutions of an event of a stream."""
        units: Sequence[PushedUnit] = self._readers.get(iri, ())
        if len(units) < thresholds.current.template_queries:
            return units
        if iri not in self._possible:
            self._possible[iri] = PossibleUnits(iri, units)
        return self._possible[iri].of(triples)

    def watched(self, marks: Mapping[str, int]) -> Watched:
        """What waits for time, given where streams are; see `due`."""
        due = self.due(marks)
        groups = {
            sources
            for sources, units in self.groups().items()
            if any(unit.sequence.waits_after(due[unit]) for unit in units)
        }
        return Watched(groups, frozenset(chain.from_iterable(groups)))
