"""`spaseq run`: queries over stream files, answers out."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import click

from spaseq.algebra.answers import Answer
from spaseq.cli.durations import DURATION
from spaseq.cli.formats import check_format
from spaseq.cli.progress import ProgressLine, summary
from spaseq.cli.queries import FUNCTIONS, QUERY_FILES, RULE_SWITCHES, entailing, plan_files
from spaseq.cli.services import service_options
from spaseq.cli.side_outputs import SideOutputs
from spaseq.cli.startup import keep_arrow_from_pandas
from spaseq.errors import InputError, UsageError
from spaseq.kb.cache import cache_at
from spaseq.kb.endpoint import is_url
from spaseq.kb.load import load_kb
from spaseq.kb.ontology import entailing_schema
from spaseq.kb.quads import keeps_graphs
from spaseq.kb.refresh import KbWatch
from spaseq.options import (
    MAX_BATCH_BYTES,
    FileSourceSettings,
    FollowOptions,
    ServiceOptions,
    StageOptions,
    StateLimits,
)
from spaseq.plan.query_plan import QueryPlan
from spaseq.rdf.readers import StreamOptions, reading_threads, resolve_paths
from spaseq.rdf.terms.vocabulary import GENERATED_AT_TIME
from spaseq.runtime.job.binding import bind_streams, check_kbs, split_assignment, stream_names
from spaseq.runtime.job.chaining import reading_order
from spaseq.runtime.job.job import Job
from spaseq.runtime.job.metrics import metrics_served
from spaseq.sinks import FORMATS, open_sink


@dataclass(frozen=True, slots=True)
class Follow:
    """What `--follow` needs."""

    checkpoint: str
    watermark_ms: int
    idle_ms: int | None
    growing: bool
    max_bytes: int
    buckets: int | None


@click.command(context_settings={"max_content_width": 100})
@QUERY_FILES
@FUNCTIONS
@click.option(
    "--stream",
    "streams",
    multiple=True,
    metavar="NAME=PATH",
    help="A stream's input: file, directory, glob, or - for N-Quads on stdin; .gz is "
    "unpacked. NAME is the query's name for it, its IRI, or <IRI>. Repeatable, also for "
    "several paths of one stream.",
)
@click.option(
    "--kb",
    "kbs",
    multiple=True,
    metavar="[IRI=]PATH|URL",
    help="Background knowledge: a file loaded as the graph IRI, or the address of a SPARQL "
    "endpoint that holds it; a quad format without IRI keeps its graph names; with one FROM NAMED "
    "in the queries IRI may be left out.",
)
@entailing
@RULE_SWITCHES
@click.option(
    "--runtime",
    type=click.Choice(["spark", "local"]),
    default="spark",
    show_default=True,
    help="spark: PySpark, no Java needed; local: in this process.",
)
@click.option(
    "--master",
    metavar="URL",
    help="The Spark cluster to run on, such as spark://host:7077; this package travels with the "
    "run. A local session if not given.",
)
@click.option("--out", default="-", show_default=True, metavar="FILE|-", help="Where answers go.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="jsonl",
    show_default=True,
    help="jsonl: one answer a line, with its trace. json, csv, tsv: the W3C SPARQL 1.1 result "
    "formats, of one SELECT query. nquads, trig: the graphs of CONSTRUCT queries, each with its "
    "time, so that they can be read as a stream.",
)
@click.option("--bad", metavar="FILE", help="Malformed input, as JSON lines (file, line, reason).")
@click.option(
    "--late",
    metavar="FILE",
    help="Events behind their stream's watermark, as JSON "
    "lines (only with --follow; a bounded run sorts everything).",
)
@click.option("--strict", is_flag=True, help="Stop with status 3 at the first bad or late event.")
@click.option(
    "--follow",
    is_flag=True,
    help="Go on with files that keep arriving in the streams' "
    "directories, until interrupted (Spark).",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="Where --follow keeps its state; a later run with the same directory resumes.",
)
@click.option(
    "--watermark",
    type=DURATION,
    default="0 SECONDS",
    show_default=True,
    help="How late an event may be with --follow, for example '5 SECONDS'.",
)
@click.option(
    "--idle",
    type=DURATION,
    help="With --follow: a stream without new input for so long no longer holds the others back; "
    "what it brings later counts as late behind them. Off by default.",
)
@click.option(
    "--growing",
    is_flag=True,
    help="With --follow: files may be appended to. The last event of a file is taken when "
    "something follows it, or after 10 seconds without a change.",
)
@click.option(
    "--max-bytes-per-batch",
    type=click.IntRange(1),
    default=MAX_BATCH_BYTES,
    show_default=True,
    metavar="N",
    help="With --follow: about how many bytes of each stream a batch takes at most. It takes fewer "
    "where that keeps it below some seconds.",
)
@click.option(
    "--buckets",
    type=click.IntRange(1),
    metavar="N",
    help="With --follow: into how many parts, at most, a query with a key is split [default: 8]. "
    "A checkpoint fixes it.",
)
@click.option(
    "--max-state-rows",
    type=click.IntRange(1),
    default=StateLimits().rows,
    show_default=True,
    metavar="N",
    help="With --follow: the partial matches that one of a query's buckets may keep waiting.",
)
@click.option(
    "--max-state-bytes",
    type=click.IntRange(1),
    default=StateLimits().bytes,
    show_default=True,
    metavar="N",
    help="With --follow: the bytes of state that one of a query's buckets may have.",
)
@click.option(
    "--time-predicate",
    default=GENERATED_AT_TIME,
    show_default=True,
    metavar="IRI",
    help="The predicate whose object is an event's time.",
)
@click.option(
    "--triples-per-event",
    type=click.IntRange(1),
    metavar="N",
    help="For N-Triples and Turtle, which have no graphs: N triples are one event.",
)
@click.option(
    "--base",
    metavar="IRI",
    help="What relative IRIs in Turtle, TriG, RDF/XML and JSON-LD streams are relative to.",
)
@click.option(
    "--limit-per-event",
    type=click.IntRange(1),
    metavar="N",
    help="At most N answers of one query that end at the same instant (and lie in the same "
    "partition); the summary and --stats say how many others there are.",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    metavar="N",
    help="Threads that read N-Quads and N-Triples in the local runtime; by default two, or one "
    "where there is one core.",
)
@click.option("--stats", metavar="FILE", help="Counts and seconds per stage, as JSON.")
@click.option(
    "--kb-cache",
    metavar="DIR",
    help="Where compiled knowledge bases are kept for the next run, or 'none'.  [default: the "
    "user's cache, for files of 1 MiB and more]",
)
@click.option(
    "--kb-refresh",
    is_flag=True,
    help="With --follow, take up changed files of the knowledge base between batches; if they do "
    "not load, the last ones stay in use.",
)
@service_options
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve counts as Prometheus text at http://127.0.0.1:PORT/metrics while the run lasts.",
)
@click.option("-v", "--verbose", is_flag=True, help="Show Spark's own log and warnings.")
def run(
    queries: tuple[Path, ...],
    streams: tuple[str, ...],
    kbs: tuple[str, ...],
    ontologies: tuple[str, ...],
    entailment: str | None,
    disable: tuple[str, ...],
    runtime: str,
    master: str | None,
    out: str,
    form: str,
    bad: str | None,
    late: str | None,
    strict: bool,
    follow: bool,
    checkpoint: str | None,
    watermark: int,
    idle: int | None,
    growing: bool,
    max_bytes_per_batch: int,
    buckets: int | None,
    max_state_rows: int,
    max_state_bytes: int,
    time_predicate: str,
    triples_per_event: int | None,
    base: str | None,
    limit_per_event: int | None,
    threads: int | None,
    stats: str | None,
    metrics_port: int | None,
    verbose: bool,
    services: ServiceOptions,
    kb_cache: str | None,
    kb_refresh: bool,
) -> None:
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
    if runtime == "local":
        keep_arrow_from_pandas()
    plans = reading_order(plan_files(queries, entailing_schema(ontologies, entailment), disable))
    check_format(form, plans)
    if master is not None and runtime == "local":
        raise UsageError("--master goes with --runtime spark")
    following = _following(
        follow, checkpoint, watermark, idle, growing, max_bytes_per_batch, buckets, runtime
    )
    limits = StateLimits(max_state_rows, max_state_bytes)
    if kb_refresh and not follow:
        raise UsageError("--kb-refresh goes with --follow")
    with ExitStack() as stack:
        sources, cache = [_kb(text, plans) for text in kbs], cache_at(kb_cache)
        sides = stack.enter_context(SideOutputs(bad, late, strict, append=follow))
        progress = ProgressLine()
        job = Job(
            plans=plans,
            streams=_streams(
                plans,
                streams,
                time_predicate,
                triples_per_event,
                base,
                runtime,
                follow,
                stack,
                threads,
            ),
            knowledge=load_kb(sources, services, cache),
            watch=KbWatch(sources, services, cache) if kb_refresh else None,
            options=StageOptions(limit_per_event),
            on_bad=sides.on_bad,
            on_late=sides.on_late,
            on_note=progress.note,
            on_progress=progress,
        )
        check_kbs(plans, job.knowledge)
        if metrics_port is not None:
            stack.enter_context(metrics_served(job.stats, metrics_port))
        try:
            if following is not None:
                _follow(job, following, limits, sides, out, form, master, verbose)
            else:
                with closing(_answers(job, runtime, master, verbose)) as answers:
                    _write(job, answers, stack.enter_context(_output(out)), form)
        finally:
            progress.clear()
            if stats:
                _write_stats(job, stats)
        click.echo(summary(job.stats), err=True)
        sides.report()


def _answers(job: Job, runtime: str, master: str | None, verbose: bool) -> Any:
    if runtime == "local":
        from spaseq.runtime import local

        return local.run(job)
    from spaseq.runtime.spark import bounded

    return bounded.run(job, master=master, verbose=verbose)


def _follow(
    job: Job,
    follow: Follow,
    limits: StateLimits,
    sides: SideOutputs,
    out: str,
    form: str,
    master: str | None,
    verbose: bool,
) -> None:
    from spaseq.runtime.spark.following import follow as followed

    settings = FileSourceSettings(
        max_bytes=follow.max_bytes,
        delay_ms=follow.watermark_ms,
        idle_ms=follow.idle_ms,
        growing=follow.growing,
    )
    options = FollowOptions(
        Path(follow.checkpoint), settings, limits=limits, buckets=follow.buckets
    )
    followed.run(
        job, options, out=out, form=form, master=master, verbose=verbose, sides=sides.files()
    )


def _following(
    follow: bool,
    checkpoint: str | None,
    watermark: int,
    idle: int | None,
    growing: bool,
    max_bytes: int,
    buckets: int | None,
    runtime: str,
) -> Follow | None:
    if not follow:
        for given, option in (
            (checkpoint, "--checkpoint"),
            (idle, "--idle"),
            (growing, "--growing"),
        ):
            if given:
                raise UsageError(f"{option} goes with --follow")
        return None
    if runtime == "local":
        raise UsageError("--follow runs on Spark; leave --runtime local out")
    if not checkpoint:
        raise UsageError("--follow needs --checkpoint DIR, where it keeps its state")
    return Follow(checkpoint, watermark, idle, growing, max_bytes, buckets)


def _streams(
    plans: Sequence[QueryPlan],
    given: Sequence[str],
    time_predicate: str,
    triples_per_event: int | None,
    base: str | None,
    runtime: str,
    follow: bool,
    stack: ExitStack,
    threads: int | None,
) -> tuple[StreamOptions, ...]:
    if threads is not None and runtime == "spark":
        raise UsageError("--threads goes with --runtime local; on Spark tasks read side by side")
    names = stream_names(plans)
    paths: dict[str, list[str]] = {}
    for text in given:
        pair = split_assignment(text, names)
        if pair is None:
            raise UsageError(f"--stream {text}: expected NAME=PATH")
        paths.setdefault(names.get(pair[0], pair[0]), []).append(pair[1])
    if sum(p == "-" for ps in paths.values() for p in ps) > 1:
        raise UsageError("only one stream can be read from standard input")
    bound = bind_streams(plans, paths)
    options = []
    for iri, files in bound.items():
        if follow and "-" in files:
            raise UsageError("--follow watches files; standard input has an end")
        if runtime == "spark":
            files = [_spooled(stack) if f == "-" else f for f in files]
        option = StreamOptions(
            iri,
            tuple(files),
            time_predicate=time_predicate,
            triples_per_event=triples_per_event,
            base=base,
            threads=(threads or reading_threads()) if runtime == "local" else 1,
        )
        if not follow:  # what is followed may still have to arrive
            resolve_paths(option)
        options.append(option)
    return tuple(options)


def _spooled(stack: ExitStack) -> str:
    """Standard input in a file, for workers that cannot read it themselves."""
    handle, path = tempfile.mkstemp(prefix="spaseq-stdin-", suffix=".nq")
    stack.callback(Path(path).unlink)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


def _kb(text: str, plans: Sequence[QueryPlan]) -> tuple[str | None, str]:
    """(graph IRI or None, path) of a --kb option."""
    iris = sorted({iri for plan in plans for iri in plan.kbs})
    pair = None if os.path.exists(text) else split_assignment(text, iris)
    named = text.startswith("<") or any(text.startswith(f"{iri}=") for iri in iris)
    if pair is not None and is_url(text) and not named:
        # Both the graph and an endpoint's address may hold an `=`.
        found = re.fullmatch("(.+?)=(https?://.*)", text)
        pair = (found[1], found[2]) if found else None
    if pair is not None:
        return pair
    if not is_url(text) and keeps_graphs(text):
        return None, text
    if len(iris) == 1:
        return iris[0], text
    if not iris:
        raise UsageError(f"--kb {text}: no query names a graph with FROM NAMED")
    raise UsageError(
        f"--kb {text}: say which graph it is, --kb IRI={text} (the queries name "
        f"{', '.join(f'<{i}>' for i in iris)})"
    )


def _output(out: str) -> Any:
    try:
        return click.open_file(out, "w", encoding="utf-8", atomic=False)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from None


def _write(job: Job, answers: Iterator[tuple[int, Answer]], out: TextIO, form: str) -> None:
    variables = [p.name for p in job.plans[0].projection]
    with open_sink(form, out, variables) as sink:
        for query, answer in answers:
            sink.write(job.plans[query].name, answer)


def _write_stats(job: Job, path: str) -> None:
    with _output(path) as file:
        json.dump(asdict(job.stats), file, indent=2)
        file.write("\n")
