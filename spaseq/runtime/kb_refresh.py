"""A changed knowledge base takes the place of the last one between batches of a followed run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaseq.errors import InputError, UsageError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.plan.nodes import QueryPlan
from spaseq.rdf.batches import BadInput
from spaseq.runtime.arrivals import ArrivalLog
from spaseq.runtime.binding import check_kbs
from spaseq.runtime.chaining import registered
from spaseq.runtime.checkpoint import Checkpoint
from spaseq.runtime.job import Job
from spaseq.runtime.spark import KB_FILE, store_knowledge


def refuse_late(plans: tuple[QueryPlan, ...]) -> None:
    """For runs whose knowledge base may change.

    Raises:
        UsageError: a graph pattern is evaluated in stage 2, which keeps the first one.
    """
    made = registered(plans)
    for plan in plans:
        for iri in plan.streams:
            if iri in made and plan.kbs:
                raise UsageError(
                    f"--kb-refresh: query {plan.title} names a knowledge base and reads <{iri}>, "
                    f"which {plans[made[iri]].title} registers; a changed knowledge base does not "
                    "reach the events of registered streams yet"
                )
        for gpm in plan.gpms:
            if gpm.late is not None:
                raise UsageError(
                    f"--kb-refresh: {gpm.name} of query {plan.title} is evaluated for each partial "
                    f"match, which a changed knowledge base does not reach yet: {gpm.late.reason}"
                )


@dataclass(slots=True)
class Refresh:
    """Stores what `job.watch` finds, and has new batches read with it."""

    spark: Any
    job: Job
    checkpoint: Checkpoint

    def poll(self) -> None:
        """Look whether the KB has changed; if it does not load, the last one stays in use."""
        watch, job = self.job.watch, self.job
        if watch is None:
            return
        try:
            changed = watch.poll()
            if changed is None:
                return
            check_kbs(job.plans, changed)
        except InputError as error:
            reason = (
                f"the knowledge base has changed and does not load; the last one stays: {error}"
            )
            job.take_bad(BadInput("--kb", None, reason))
            return
        self._use(changed)
        job.stats.refreshed += 1
        job.on_note(f"the knowledge base has changed: {len(changed):,} triples from the next batch")

    def _use(self, knowledge: KnowledgeBase) -> None:
        directory = Path(self.checkpoint.directory)
        arrivals = ArrivalLog(self.checkpoint.arrivals, self.job.streams)
        first = f"{KB_FILE}{self.job.knowledge.hash}"  # stage 2 has it open
        # What was current until now may be taken for a batch at this very moment.
        needed = {*arrivals.knowledge_in_use(), first}
        stored = store_knowledge(self.spark, knowledge, directory)
        arrivals.use_knowledge(stored.name)
        for path in directory.glob(f"{KB_FILE}*"):
            if path.name not in needed and path.name != stored.name:
                path.unlink(missing_ok=True)
