"""DataFrames of rows among the streams of a call, and their lifts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from spaseq.api.streams import stream_options
from spaseq.errors import UsageError
from spaseq.lang.spelling import suggested
from spaseq.lift.lift_checks import compiled_lift
from spaseq.lift.lifted import text_of
from spaseq.options import RunOptions
from spaseq.plan.predicates import stream_predicates
from spaseq.plan.query_plan import QueryPlan
from spaseq.runtime.job.binding import bind_streams, stream_names
from spaseq.runtime.spark.lifted_frames import FrameRows, LiftedFrame


def is_frame(given: object) -> bool:
    """Whether the input of a stream is a DataFrame of Spark."""
    return hasattr(given, "mapInArrow")


@dataclass(frozen=True, slots=True)
class LiftedInputs:
    """The lifts of a call, and the columns that order rows of equal time, by stream."""

    lifts: Mapping[str, str | Path]
    order: Mapping[str, str]

    def by_iri(self, plans: Sequence[QueryPlan]) -> dict[str, str | Path]:
        """The lifts by IRI.

        Raises:
            UsageError: a name is no stream's.
        """
        return {_iri(plans, name, "lifts"): lift for name, lift in self.lifts.items()}

    def frames(
        self, plans: Sequence[QueryPlan], streams: Mapping[str, Any], options: RunOptions
    ) -> list[LiftedFrame]:
        """The DataFrames of rows among the streams.

        Raises:
            QueryError, InputError: a lift has errors, or cannot be read.
            UsageError: a DataFrame has no lift, or an order is for something else.
        """
        lifts = self.by_iri(plans)
        order = {_iri(plans, name, "order"): column for name, column in self.order.items()}
        lifted = []
        for iri, frame in bind_streams(plans, streams).items():
            if not is_frame(frame):
                if iri in order:
                    raise UsageError(f"order is for DataFrames, and <{iri}> is none")
                continue
            if iri not in lifts:
                raise UsageError(
                    f"stream <{iri}> is a DataFrame of rows and needs a lift in lifts=; "
                    "a DataFrame of events is given alone"
                )
            how = replace(stream_options(iri, options), predicates=stream_predicates(plans, iri))
            text, name = text_of(lifts[iri])
            plan = compiled_lift(text, name, how.time_predicate, how.time_unit)
            lifted.append(LiftedFrame(frame, FrameRows(how, plan), order.get(iri), text))
        return lifted


def _iri(plans: Sequence[QueryPlan], name: str, what: str) -> str:
    names = stream_names(plans)
    if name not in names:
        near = suggested(name, names)
        hint = f"; did you mean {near}?" if near else ""
        raise UsageError(f"{what} names {name}, which is no stream of the query{hint}")
    return names[name]
