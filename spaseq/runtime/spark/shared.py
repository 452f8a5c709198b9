"""Code on Spark's driver that bounded runs, followed runs and DataFrames of events share."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from spaseq.errors import InputError, SpaseqError
from spaseq.expr.extension import modules_from_files
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.runtime.job.job import Job, LateEvent, Stats
from spaseq.runtime.spark.rows.stage_rows import Message
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge

N = TypeVar("N", int, float)

KB_FILE = "spaseq-kb-"
"""The names of stored knowledge bases begin with this; their hash follows."""


def ship_functions() -> None:
    """Send extension functions that were loaded from files to workers by value.

    Workers cannot import such a file.
    """
    from pyspark import cloudpickle

    for module in modules_from_files():
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call,unused-ignore]


def store_knowledge(spark: Any, knowledge: KnowledgeBase, directory: Path) -> StoredKnowledge:
    """Save a knowledge base where workers can open it.

    Locally that is a file in `directory`; a cluster gets the file through Spark. A damaged file
    that is there already is replaced.
    """
    name = f"{KB_FILE}{knowledge.hash}"
    path = directory / name
    if not _is_stored(path):
        # A killed process must not leave half a file under a name that promises its content.
        unfinished = directory / f".{name}.{os.getpid()}"
        _save(knowledge, unfinished)
        unfinished.replace(path)
    endpoints = tuple(sorted(knowledge.endpoints.items()))
    if spark.sparkContext.master.startswith("local"):
        return StoredKnowledge(str(path), name, False, endpoints, knowledge.services)
    spark.sparkContext.addFile(str(path))
    return StoredKnowledge(name, name, True, endpoints, knowledge.services)


def _is_stored(path: Path) -> bool:
    """Whether a whole knowledge base is at a path."""
    try:
        KnowledgeBase.open(path)
    except InputError:
        return False
    return True


def _save(knowledge: KnowledgeBase, path: Path) -> None:
    """Put the compiled form at a path; as a link to the cached file, if possible."""
    if knowledge.file is not None:
        try:
            os.link(knowledge.file, path)
            return
        except OSError:  # the file is on another file system, or gone
            path.unlink(missing_ok=True)
    knowledge.save(path)


def take_message(job: Job, message: Message) -> None:
    """Add a task's counts to the job's, report bad input and late events, raise errors."""
    match message:
        case Stats():
            add_stats(job.stats, message)
        case BadInput():
            job.report_bad(message)
        case LateEvent():
            job.on_late(message)
        case SpaseqError():
            raise message


def add_stats(total: Stats, part: Stats) -> None:
    """Add the counts and stage times of a task."""
    total.events += part.events
    total.triples += part.triples
    total.matches += part.matches
    total.answers = _summed(total.answers, part.answers)
    total.changes = _summed(total.changes, part.changes)
    total.query_seconds = _summed(total.query_seconds, part.query_seconds)
    total.suppressed += part.suppressed
    total.add_muted(part.muted)
    total.bad += part.bad
    total.lost = _summed(total.lost, part.lost)
    total.first_lost = {**part.first_lost, **total.first_lost}
    total.filtered += part.filtered
    total.skipped_groups += part.skipped_groups
    total.late += part.late
    total.repeated += part.repeated
    total.bad_geometries += part.bad_geometries
    total.add_solutions(part.solutions)
    for stage, seconds in part.stages.items():
        total.add(stage, seconds)


def _summed(one: Mapping[str, N], other: Mapping[str, N]) -> dict[str, N]:
    """The sum of two counts, by query."""
    return {**one, **{name: one.get(name, 0) + value for name, value in other.items()}}
