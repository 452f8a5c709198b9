"""Runs a job of bounded streams on the chosen runtime."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from spaseq.algebra.answers import Answer
from spaseq.options import RuntimeOptions
from spaseq.runtime.job.job import Job


def batches_of(job: Job, runtime: RuntimeOptions) -> Generator[tuple[int, Sequence[Answer]]]:
    """(number of the query, some answers) of a job of bounded streams."""
    if runtime.name == "local":
        from spaseq.runtime import local

        yield from local.run_batches(job)
    else:
        from spaseq.runtime.spark import bounded

        yield from bounded.run_batches(job, master=runtime.master, verbose=runtime.verbose)
    if job.dumps is not None:
        job.dumps.write(job.knowledge)
