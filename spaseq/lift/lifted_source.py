"""What sources of rows have in common: the stream's options and the lift that makes its graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from spaseq.lift.lift_plan import LiftPlan
from spaseq.lift.lifted_events import EventMaker
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.sources.base import Source


@dataclass(frozen=True, slots=True)
class LiftedSource(Source):
    """Rows from somewhere, and the lift that makes events of them.

    `types` are (field, local name of its XSD datatype).
    """

    options: StreamOptions
    plan: LiftPlan
    types: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        return None  # a lift must be given, too

    @property
    def iri(self) -> str:
        return self.options.iri

    def maker(self) -> EventMaker:
        """What makes the events of this stream."""
        limits, asked = self.options.limits, self.options.predicates
        decimal = self.options.csv.decimal
        types = dict(self.types)
        return EventMaker(self.plan, self.iri, types, limits=limits, asked=asked, decimal=decimal)

    def numbered_maker(self) -> EventMaker:
        """A maker whose blank nodes belong to this stream only."""
        maker = self.maker()
        maker.number_after()
        return maker

    def keeping(self, predicates: tuple[str, ...] | None) -> Source:
        return replace(self, options=replace(self.options, predicates=predicates))
