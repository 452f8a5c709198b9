"""`spaseq run`: queries over stream files, answers out."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from spaseq.cli.checked_options import check_replay, run_options
from spaseq.cli.option_groups import (
    Chosen,
    QuerySet,
    grouped_command,
)
from spaseq.cli.queries import QueryOptions, checked_files, query_files
from spaseq.cli.run_options import RUN_OPTIONS
from spaseq.compile import Checked
from spaseq.errors import UsageError
from spaseq.options import RunOptions, RuntimeOptions
from spaseq.startup import keep_arrow_from_pandas


@grouped_command(*RUN_OPTIONS)
@query_files(required=False)
def run(queries: tuple[Path, ...], chosen: Chosen) -> None:
    """Run queries over streams and print their answers.

    \b
    Bounded input is replayed to its end; with --follow, directories are watched:
      spaseq run congestion.rq --stream S1=s1.nq --stream S2=s2.nq --kb kb.ttl
      spaseq run fraud.rq --stream Cards=incoming/ --follow --checkpoint state/ --out alerts.jsonl
      zcat big.nq.gz | spaseq run query.rq --stream S=- --runtime local --format csv

    A stream that one query registers (REGISTER STREAM <iri> AS CONSTRUCT ...) is read by the other
    queries of the run that say FROM STREAM NAME <iri>; it takes no --stream.

    Only answers go to stdout; progress, warnings and a summary go to stderr.
    """  # fmt: skip
    options = run_options(chosen)
    files = chosen[QuerySet].files()
    if chosen[QuerySet].directory is not None and options.follow is not None:
        from spaseq.cli.run_streams import follow_directory

        follow_directory(queries, files, options, chosen)
        return
    queries = (*queries, *files)
    if chosen[QuerySet].logs is not None:
        from spaseq.cli.run_streams import replay

        check_replay(chosen)
        replay(queries, _loaded(queries, options, chosen) if queries else [], options, chosen)
        return
    if not queries:
        raise UsageError("there is no query: give query files, or --queries DIR with some")
    checked = _loaded(queries, options, chosen)
    with _java_starts(options):
        from spaseq.cli.run_streams import run_streams  # it takes long to import

        run_streams(queries, checked, options, chosen)


def _java_starts(options: RunOptions) -> AbstractContextManager[None]:
    """Lets Java start for a bounded run in a local session of Spark."""
    runtime = options.runtime
    if runtime != RuntimeOptions("spark", runtime.master) or options.follow is not None:
        return nullcontext()
    from spaseq.runtime.spark.session.spark_session import java_starts, local_cores

    cores = local_cores(runtime.master)
    return nullcontext() if cores is None else java_starts(cores)


def _loaded(queries: tuple[Path, ...], options: RunOptions, chosen: Chosen) -> list[Checked]:
    """The checked queries, with the functions that they call."""
    if options.runtime.name == "local":
        keep_arrow_from_pandas()
    chosen[QueryOptions].load()
    return checked_files(queries, options.planning)
