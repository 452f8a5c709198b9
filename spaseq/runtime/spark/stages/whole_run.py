"""Both stages of a bounded run in one task, which is the local runtime's work.

Nothing is shuffled: where few tasks run side by side, that would only cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

import pyarrow as pa

from spaseq.algebra.answers import PartialAnswer
from spaseq.errors import SpaseqError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.lang.depth import make_room_for_any
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.inputs.bad_input import BadInput
from spaseq.records import record
from spaseq.runtime.arrivals.input_splits import paths_from
from spaseq.runtime.job.job import Job
from spaseq.runtime.local import run_batches
from spaseq.runtime.spark.rows.stage_rows import OUTPUT, SideRows, answer_rows, partial_rows
from spaseq.runtime.spark.stages.pattern_stage import BoundedSolve


@record
class WholeRun:
    """A bounded run of queries over the streams of `solve`."""

    solve: BoundedSolve
    plans: tuple[QueryPlan, ...]

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """For `mapInArrow`: rows of `OUTPUT`, in the one task that has a row."""
        self.solve.kernels.take()
        make_room_for_any()
        knowledge = self.solve.knowledge.open()
        with paths_from(self.solve.directory):
            for batch in batches:
                if len(batch):
                    yield from self._rows(knowledge)

    def _rows(self, knowledge: KnowledgeBase) -> Iterator[pa.RecordBatch]:
        solve, bad, partials = self.solve, list[BadInput](), list[tuple[str, PartialAnswer]]()
        job = Job(
            self.plans,
            solve.streams,
            knowledge,
            solve.options,
            on_bad=bad.append,
            on_partial=lambda name, partial: partials.append((name, partial)),
        )
        numbers = {plan.identity.name: number for number, plan in enumerate(job.plans)}
        side = SideRows(OUTPUT, 0)
        try:
            for number, answers in run_batches(job):
                if answers:
                    yield answer_rows(number, answers)
                for name, own in groupby(partials, itemgetter(0)):
                    yield partial_rows(numbers[name], [partial for _, partial in own])
                partials.clear()
                if bad:
                    yield side.batch(bad)
                    bad.clear()
        except SpaseqError as error:
            yield side.batch([*bad, error])
            return
        yield side.batch([*bad, job.stats])
