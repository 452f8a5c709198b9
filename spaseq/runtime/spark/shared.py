"""Driver code that bounded runs, followed runs and DataFrames of events share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from spaseq.algebra.answer_batch import AnswerBatch
from spaseq.algebra.answer_blocks import Answers
from spaseq.algebra.answers import PartialAnswer
from spaseq.errors import InputError, SpaseqError
from spaseq.expr.extension import modules_from_files
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.rdf.inputs.stream_options import BadInput
from spaseq.runtime.job.job import Job, LateEvent, Stats
from spaseq.runtime.spark.rows.stage_rows import PARTIAL, Item
from spaseq.runtime.spark.stages.shipped_units import StoredKnowledge

KB_FILE = "spaseq-kb-"
"""Prefix of the names of stored knowledge bases; their hash follows."""


def ship_functions() -> None:
    """Send extension functions that were loaded from files to workers by value.

    Workers cannot import such a file.
    """
    from pyspark import cloudpickle

    for module in modules_from_files():
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call,unused-ignore]


def store_knowledge(spark: Any, knowledge: KnowledgeBase, directory: Path) -> StoredKnowledge:
    """Save a knowledge base where workers can open it.

    Locally that is a file in `directory`; a cluster gets the file through Spark. It replaces a
    damaged file.
    """
    name = f"{KB_FILE}{knowledge.hash}"
    path = directory / name
    if not _is_stored(path):
        # A killed process must not leave an incomplete file under a name that promises its content.
        unfinished = directory / f".{name}.{os.getpid()}"
        _save(knowledge, unfinished)
        unfinished.replace(path)
    endpoints = tuple(sorted(knowledge.endpoints.items()))
    if spark.sparkContext.master.startswith("local"):
        return StoredKnowledge(str(path), name, False, endpoints, knowledge.services)
    spark.sparkContext.addFile(str(path))
    return StoredKnowledge(name, name, True, endpoints, knowledge.services)


def _is_stored(path: Path) -> bool:
    """Whether a complete knowledge base is at a path."""
    try:
        KnowledgeBase.open(path)
    except InputError:
        return False
    return True


def _save(knowledge: KnowledgeBase, path: Path) -> None:
    """Save the compiled form at a path; as a link to the cached file, if possible."""
    if knowledge.file is not None:
        try:
            os.link(knowledge.file, path)
            return
        except OSError:  # the file is on another file system, or gone
            path.unlink(missing_ok=True)
    knowledge.save(path)


def answers_in(job: Job, items: Iterable[tuple[int, Item]]) -> Iterator[tuple[int, Answers]]:
    """(query, answers) among items of rows of `OUTPUT`; the job gets the others.

    Counts of tasks are added to the job's. Errors are raised.
    """
    for query, item in items:
        match item:
            case AnswerBatch() | list():
                yield query, item
            case PartialAnswer():
                job.take_partials(query - PARTIAL, [item])
            case Stats():
                job.stats.add_task(item)
            case BadInput():
                job.report_bad(item)
            case LateEvent():
                job.on_late(item)
            case SpaseqError():
                raise item
