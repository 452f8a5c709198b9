"""Between batches of a followed run, a changed knowledge base replaces the last one."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaseq.errors import InputError
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.runtime.arrivals.file_source_log import FileSourceLog
from spaseq.runtime.arrivals.topics.topic_batch import RangeEnds
from spaseq.runtime.job.binding import check_kbs
from spaseq.runtime.job.job import Job
from spaseq.runtime.spark.following.checkpoint import Checkpoint
from spaseq.runtime.spark.shared import KB_FILE, store_knowledge
from spaseq.runtime.spark.stages.bucket_state import TOPICS
from spaseq.sources.files import GrowingFiles

_PAUSE_SECONDS = 0.5


@dataclass(slots=True)
class Refresh:
    """Stores the changed knowledge base that `job.watch` finds, for new batches."""

    spark: Any
    job: Job
    checkpoint: Checkpoint

    def poll(self) -> None:
        """Check whether the knowledge base has changed; if it does not load, the last one stays."""
        watch, job = self.job.watch, self.job
        if watch is None:
            return
        try:
            changed = watch.poll()
            if changed is None:
                return
            check_kbs(job.plans, changed)
            self._use(changed)
        except (InputError, OSError) as error:
            reason = (
                f"the knowledge base has changed and does not load; the last one stays: {error}"
            )
            job.take_bad(BadInput("--kb", None, reason))
            return
        job.stats.refreshed += 1
        job.on_note(f"the knowledge base has changed: {len(changed):,} triples from the next batch")

    def keep(self) -> None:
        """Poll from now on in another thread, as long as the session lives."""

        def poll() -> None:
            while self.spark.sparkContext._jsc is not None:  # None after the session has stopped
                self.poll()
                time.sleep(_PAUSE_SECONDS)

        threading.Thread(target=poll, name="spaseq-kb-refresh", daemon=True).start()

    def _use(self, knowledge: KnowledgeBase) -> None:
        directory = Path(self.checkpoint.directory)
        streams = [stream.followed() for stream in self.job.streams]
        files = [stream for stream in streams if isinstance(stream, GrowingFiles)]
        arrivals = FileSourceLog(self.checkpoint.arrivals, files)
        first = f"{KB_FILE}{self.job.knowledge.hash}"  # stage 2 starts with it
        # A batch may be planned at this moment with the knowledge base that was current so far.
        topics = RangeEnds(directory / TOPICS)
        needed = {*arrivals.knowledge_in_use(), *topics.knowledge_in_use(), first}
        stored = store_knowledge(self.spark, knowledge, directory)
        arrivals.use_knowledge(stored.name)
        for path in directory.glob(f"{KB_FILE}*"):
            if path.name not in needed and path.name != stored.name:
                path.unlink(missing_ok=True)
