"""Turns the chosen options of `spaseq run` into the options of the runtimes and the output files.

Each function checks that its options go together.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from spaseq.cli.option_groups import (
    Chosen,
    FollowFlags,
    InputTexts,
    OutputOptions,
    QuerySet,
    SideOptions,
)
from spaseq.cli.output_files import STDOUT, NamedPath
from spaseq.connectors import is_sink
from spaseq.connectors.address import Address
from spaseq.errors import UsageError
from spaseq.limits import Limits
from spaseq.options import (
    FileSourceSettings,
    FollowOptions,
    KnowledgeOptions,
    PlanningOptions,
    ReadingOptions,
    RunOptions,
    RuntimeOptions,
    ServiceOptions,
    StageOptions,
    StateLimits,
)
from spaseq.rdf.inputs.stream_options import MessageOptions


def run_options(chosen: Chosen) -> RunOptions:
    """The options that go to the runtimes.

    Raises:
        UsageError: options that do not go together.
    """
    runtime, knowledge = chosen[RuntimeOptions].name, chosen[KnowledgeOptions]
    if runtime == "spark" and chosen[ReadingOptions].threads is not None:
        raise UsageError("--threads goes with --runtime local; on Spark tasks read side by side")
    _check_time_predicate(chosen[ReadingOptions].time_predicate)
    follow = _follow_options(chosen, runtime)
    if knowledge.kb_changes and follow is not None:
        raise UsageError("--kb-change goes with runs that end; leave --follow out")
    if chosen[OutputOptions].dumps and follow is not None:
        raise UsageError("--dump-graph goes with runs that end; leave --follow out")
    if knowledge.kb_refresh and follow is None:
        raise UsageError("--kb-refresh goes with --follow")
    if chosen[OutputOptions].why is not None and follow is not None:
        raise UsageError(
            "--why reads streams that have ended, so it does not go with --follow; run spaseq why "
            "on the files that have arrived"
        )
    return RunOptions(
        planning=replace(chosen[PlanningOptions], partial=chosen[SideOptions].partial is not None),
        knowledge=replace(knowledge, services=chosen[ServiceOptions]),
        reading=chosen[ReadingOptions],
        stages=replace(chosen[StageOptions], limits=chosen[Limits]),
        runtime=chosen[RuntimeOptions],
        limits=chosen[Limits],
        follow=follow,
    )


def why_options(chosen: Chosen) -> RunOptions:
    """The options of a run in this process whose streams end."""
    return RunOptions(
        planning=chosen[PlanningOptions],
        knowledge=replace(chosen[KnowledgeOptions], services=chosen[ServiceOptions]),
        reading=chosen[ReadingOptions],
        stages=replace(chosen[StageOptions], limits=chosen[Limits]),
        runtime=RuntimeOptions("local"),
        limits=chosen[Limits],
    )


def _check_time_predicate(iri: str) -> None:
    if re.fullmatch(r"(?!urn:|tag:)[\w-]*:[\w-]+", iri):
        raise UsageError(
            f"--time-predicate {iri}: write the whole IRI, such as "
            "http://www.w3.org/ns/prov#generatedAtTime"
        )


def given_outputs(chosen: Chosen) -> list[NamedPath]:
    """The files that a run writes, each with its option.

    Raises:
        UsageError: something that is no answer would go to standard output.
    """
    output, sides = chosen[OutputOptions], chosen[SideOptions]
    side_files = (
        ("--bad", sides.bad),
        ("--late", sides.late),
        ("--partial", sides.partial),
        ("--why", output.why),
    )
    for option, path in side_files:
        if path == STDOUT:
            raise UsageError(f"{option} -: give a file; only answers go to standard output")
    given = (
        ("--out", None if is_sink(output.out) else output.out),
        *side_files,
        ("--stats", output.stats),
    )
    return [NamedPath(f"{option} {path}", path) for option, path in given if path is not None]


def given_checkpoint(chosen: Chosen) -> NamedPath | None:
    """The directory of a followed run's state."""
    path = chosen[FollowFlags].checkpoint
    return None if path is None else NamedPath(f"--checkpoint {path}", path)


def _follow_options(chosen: Chosen, runtime: str) -> FollowOptions | None:
    """How the run follows its streams; None if it does not."""
    flags, arrivals = chosen[FollowFlags], chosen[FileSourceSettings]
    if not flags.follow:
        for given, option in (
            (flags.checkpoint, "--checkpoint"),
            (flags.rebuild, "--rebuild"),
            (arrivals.idle_ms, "--idle"),
            (arrivals.growing, "--growing"),
        ):
            if given:
                raise UsageError(f"{option} goes with --follow")
        check_messages(chosen[MessageOptions], "it is for messages, which are read with --follow")
        return None
    if chosen[StageOptions].open_end:
        raise UsageError("--open-end is for input that ends; --follow has no end")
    if runtime == "local" or chosen[QuerySet].directory is not None:
        check_logged(chosen)
    if not flags.checkpoint:
        raise UsageError("--follow needs --checkpoint DIR, where it keeps its state")
    return FollowOptions(
        Path(flags.checkpoint),
        arrivals,
        limits=chosen[StateLimits],
        buckets=flags.buckets,
        rebuild=flags.rebuild,
        messages=chosen[MessageOptions],
    )


def check_logged(chosen: Chosen) -> None:
    """Refuse options of `--follow` that a run through logs does not have."""
    flags, arrivals = chosen[FollowFlags], chosen[FileSourceSettings]
    for given, option in (
        (flags.buckets, "--buckets"),
        (arrivals.growing, "--growing"),
    ):
        if given:
            raise UsageError(
                f"{option} goes with --follow on Spark, fixed queries, and files or Kafka: leave "
                "--runtime local, --queries and other brokers out"
            )


def check_messages(given: MessageOptions, reason: str) -> None:
    """UsageError if there are options for messages, and the run reads none."""
    for value, option in (
        (given.format, "--message-format"),
        (given.time, "--message-time"),
        (given.max_bytes, "--max-message"),
        (given.dedup_ms, "--dedup"),
    ):
        if value is not None:
            raise UsageError(f"{option}: {reason}")


def check_output_place(chosen: Chosen) -> None:
    """UsageError if answers go to a broker without --follow, or to a compressed file with it."""
    out, follow = chosen[OutputOptions].out, chosen[FollowFlags].follow
    if is_sink(out) and not follow:
        raise UsageError(f"--out {Address.of(out)}: answers go there with --follow only")
    for given in given_outputs(chosen) if follow else ():
        if given.path.endswith(".gz"):
            raise UsageError(f"{given.option}: a compressed file cannot grow; leave .gz out")


def check_replay(chosen: Chosen) -> None:
    """Refuse options that a run over logs does not have."""
    output, texts = chosen[OutputOptions], chosen[InputTexts]
    for given, option in (
        (chosen[FollowFlags].follow, "--follow"),
        (texts.streams, "--stream"),
        (texts.lifts, "--lift"),
        (texts.contexts, "--context"),
        (output.why, "--why"),
        (output.stats, "--stats"),
        (output.metrics_port is not None, "--metrics-port"),
    ):
        if given:
            raise UsageError(f"{option} does not go with --logs, which says what the streams are")
