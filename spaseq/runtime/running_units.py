"""The units that run, in reading order: which streams each reads, and how far each may go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from spaseq import thresholds
from spaseq.plan.families import family_key
from spaseq.rdf.terms.term import Triple
from spaseq.runtime.arrivals.passing_time import Watched
from spaseq.runtime.possible_units import PossibleUnits
from spaseq.runtime.pushed_units import PushedUnit


class RunningUnits:
    """What evaluates the queries that have not failed.

    `made` are the streams that queries of each unit register.
    """

    def __init__(
        self, units: Iterable[PushedUnit], made: Mapping[PushedUnit, Sequence[str]]
    ) -> None:
        """`units` are in reading order."""
        self.made = made
        self._units: list[PushedUnit] = []
        self._readers: dict[str, list[PushedUnit]] = {}
        self._possible: dict[str, PossibleUnits] = {}  # by stream, once it is asked for
        self._alone: Counter[object] | None = None  # see `alone`
        self._sources: dict[PushedUnit, frozenset[str]] | None = None  # see `sources`
        self._groups: dict[frozenset[str], list[PushedUnit]] | None = None  # see `groups`
        for unit in units:
            self.add(unit)

    def __len__(self) -> int:
        return len(self._units)

    def __iter__(self) -> Iterator[PushedUnit]:
        return iter(self._units)

    def add(self, unit: PushedUnit) -> None:
        """Take a unit after all others."""
        self._units.append(unit)
        plan = unit.queries[0].plan
        if self._alone is not None and not unit.is_family:
            self._alone[family_key(plan)] += 1
        self._sources = self._groups = None
        for iri in plan.inputs.streams:
            self._readers.setdefault(iri, []).append(unit)
            if iri in self._possible:
                self._possible[iri].add(unit)

    def alone(self, key: object) -> int:
        """How many queries run by themselves that have a `family_key`."""
        if self._alone is None:
            alone = (unit.queries[0].plan for unit in self._units if not unit.is_family)
            self._alone = Counter(map(family_key, alone))
        return self._alone[key]

    def readers(self, iri: str) -> Sequence[PushedUnit]:
        """What reads a stream."""
        return [*self._readers.get(iri, ())]

    def concerned(self, iri: str, triples: Sequence[Triple]) -> Sequence[PushedUnit]:
        """What may have solutions of an event of a stream."""
        units: Sequence[PushedUnit] = self._readers.get(iri, ())
        if len(units) < thresholds.current.template_queries:
            return units
        if iri not in self._possible:
            self._possible[iri] = PossibleUnits(iri, units)
        return self._possible[iri].of(triples)

    # --- time -------------------------------------------------------------------------------------

    def sources(self) -> Mapping[PushedUnit, frozenset[str]]:
        """The streams that each unit reads, or that those read whose streams it reads."""
        if self._sources is None:
            made: dict[str, frozenset[str]] = {}  # of registered streams
            self._sources = {}
            for unit in self._units:
                streams = (made.get(iri, {iri}) for iri in unit.queries[0].plan.inputs.streams)
                self._sources[unit] = streams_read = frozenset(chain.from_iterable(streams))
                for iri in self.made.get(unit, ()):  # several may maintain one graph
                    made[iri] = streams_read | made.get(iri, frozenset())
        return self._sources

    def groups(self) -> Mapping[frozenset[str], Sequence[PushedUnit]]:
        """The units that have the same `sources`, in reading order."""
        if self._groups is None:
            self._groups = {}
            for unit, sources in self.sources().items():
                self._groups.setdefault(sources, []).append(unit)
        return self._groups

    def due(self, marks: Mapping[str, int]) -> dict[PushedUnit, int]:
        """The watermark (ms) of each unit, in reading order.

        A unit waits for the streams that it reads only. A stream that nobody makes any more is
        where the least of all streams is.

        Args:
            marks: by stream IRI the time (ms) at or before which no event follows.
        """
        least = min(marks.values())
        of_sources = {
            sources: min(marks.get(iri, least) for iri in sources) for sources in self.groups()
        }
        return {unit: of_sources[sources] for unit, sources in self.sources().items()}

    def watched(self, marks: Mapping[str, int]) -> Watched:
        """What waits for time, given where streams are; see `due`."""
        due = self.due(marks)
        groups = {
            sources
            for sources, units in self.groups().items()
            if any(unit.sequence.waits_after(due[unit]) for unit in units)
        }
        return Watched(groups, frozenset(chain.from_iterable(groups)))
