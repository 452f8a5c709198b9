"""The findings of `spaseq check` about lifts of streams, files of streams, and their queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from glob import glob
from itertools import chain
from pathlib import Path

from spaseq.api.prepare import load_knowledge
from spaseq.api.queries import plans_of, read_query
from spaseq.api.why import report_on
from spaseq.cli.checked_options import why_options
from spaseq.cli.option_groups import Chosen, InputTexts
from spaseq.cli.run_inputs import kb_source, lift_plans, named_value, stream_sources
from spaseq.compile import Checked
from spaseq.diagnosis.report import Cause
from spaseq.errors import Diagnostic, InputError, QueryText, Span, SpaseqError
from spaseq.lang import ast
from spaseq.lift.cells import field_types
from spaseq.lift.lift_checks import check_lift
from spaseq.lift.lift_plan import LiftPlan
from spaseq.lift.lift_warnings import uncast_fields, unmatched_patterns
from spaseq.lift.lifted_source import LiftedFiles
from spaseq.lift.table_files import DELIMITED, is_table_input, table_format
from spaseq.options import PlanningOptions, ReadingOptions
from spaseq.rdf.inputs.csv_dialect import DEFAULT_DIALECT, csv_dialect
from spaseq.rdf.inputs.stream_options import BadInput, StreamOptions
from spaseq.runtime.job.binding import split_assignment, stream_names
from spaseq.runtime.job.job import Stats
from spaseq.runtime.job.unit_graph import reading_order
from spaseq.scratch import ScratchDirectory
from spaseq.startup import keep_arrow_from_pandas

_OF_PATTERNS = frozenset(
    {"predicate-never-occurs", "constant-never-occurs", "pattern-never-matches", "kb-empty"}
)


def with_inputs(
    of_lifts: list[Diagnostic], checked: Sequence[Checked], chosen: Chosen
) -> list[Diagnostic]:
    """The findings of lifts and queries, and those about the streams and lifts that options give.

    These are about the queries without errors.
    """
    planned = _with_known_inputs(checked)
    findings = [*of_lifts, *(d for each in checked for d in each.diagnostics)]
    failed = any(d.severity == "error" for d in findings)
    # Options may be for queries, or lifts, with errors, and not fit the others.
    with suppress(SpaseqError) if failed else nullcontext():
        if planned and chosen[InputTexts].streams:
            more = iter(_unmatched(planned, chosen))
            findings = of_lifts
            for each in checked:
                findings += [*each.diagnostics, *(next(more) if each in planned else ())]
        if planned and chosen[InputTexts].lifts:
            # A pattern that has a warning already gets no other one.
            known = {(d.source.name, d.span.start) for d in findings}
            about = [*_lift_errors(planned, chosen)] or [*_unmatched_in_lifts(planned, chosen)]
            findings += (d for d in about if (d.source.name, d.span.start) not in known)
    return findings


def _with_known_inputs(checked: Sequence[Checked]) -> list[Checked]:
    """The queries without errors; none, if the others may affect their inputs.

    A query affects them that makes a stream or graph, or gives another meaning to a name.
    """
    planned = [each for each in checked if each.plan is not None]
    plans = plans_of(planned)
    names, graphs = stream_names(plans), {iri for plan in plans for iri in plan.inputs.kbs}
    for query in (each.query for each in checked if each.plan is None):
        if query is None or query.register or isinstance(query.form, ast.Maintain):
            return []
        if not graphs.issuperset(kb.iri.value for kb in query.kbs):
            return []
        if any(names.get(s.name, s.iri.value) != s.iri.value for s in query.streams):
            return []
    return planned


def _unmatched(checked: Sequence[Checked], chosen: Chosen) -> list[list[Diagnostic]]:
    """The warnings of each query about the streams and knowledge bases that options give.

    The queries have no errors. A query that has answers has no such warnings.
    """
    keep_arrow_from_pandas()
    options = why_options(chosen)
    plans = reading_order(plans_of(checked), options.knowledge.kb_changes)
    sources = [kb_source(text, plans) for text in chosen[InputTexts].kbs]
    with ScratchDirectory("check") as directory:
        streams = stream_sources(plans, chosen[InputTexts], options)
        shared = [stream.shared(Path(directory)) for stream in streams]
        knowledge = load_knowledge(plans, sources, options.knowledge, streams)
        return [
            list(
                _warnings(
                    each.source,
                    report_on(checked, n, shared, knowledge, options.stages).causes,
                )
            )
            for n, each in enumerate(checked)
        ]


def _warnings(source: QueryText, causes: Sequence[Cause]) -> Iterator[Diagnostic]:
    for cause in causes:
        if cause.kind in _OF_PATTERNS and cause.line is not None and cause.column is not None:
            lines = source.text.split("\n")[: cause.line - 1]
            start = sum(len(line) + 1 for line in lines) + cause.column - 1
            span = Span(start, start + max(1, len(cause.shown)))
            yield Diagnostic("warning", cause.kind, cause.text, span, source)


def _lift_errors(checked: Sequence[Checked], chosen: Chosen) -> Iterator[Diagnostic]:
    """The errors in the lifts that options give.

    Raises:
        InputError: a lift cannot be read.
    """
    names = stream_names(plans_of(checked))
    files = {named_value(text, names)[1] for text in chosen[InputTexts].lifts}
    for file in sorted(files):
        text = read_query(Path(file))
        findings = check_lift(text, file, chosen[ReadingOptions].time_predicate).diagnostics
        yield from (finding for finding in findings if finding.severity == "error")


def _unmatched_in_lifts(checked: Sequence[Checked], chosen: Chosen) -> Iterator[Diagnostic]:
    """The warnings about patterns that no graph of the lifts of their streams can match.

    There are none under entailment, because entailed triples are not in the template.
    """
    if chosen[PlanningOptions].entailment is not None:
        return
    plans = plans_of(checked)
    lifts = dict(lift_plans(plans, chosen))
    for iri in _no_tables(chosen, stream_names(plans)):
        lifts.pop(iri, None)
    for each, plan in zip(checked, plans, strict=True):
        query = each.query
        assert query is not None, "it has a plan"
        streams = {
            gpm.name: [plan.inputs.streams[number] for number in gpm.streams]
            for gpm in plan.patterns.gpms
        }
        for gpm in query.gpms:
            of_gpm = [lifts.get(iri) for iri in streams.get(gpm.name, [])]
            known = [lift for lift in of_gpm if lift is not None]
            if of_gpm and len(known) == len(of_gpm):
                yield from unmatched_patterns(gpm, known, each.source)


def _no_tables(chosen: Chosen, names: dict[str, str]) -> set[str]:
    """The streams without tables, for which a lift without NAME is not used."""
    texts = chosen[InputTexts]
    named = {named_value(text, names)[0] for text in texts.lifts}
    pairs = filter(None, (split_assignment(text, names) for text in texts.streams))
    given = {names.get(name, name) for name, path in pairs if not is_table_input(path)}
    return given - named


_SAMPLE = 1000  # rows


def uncast_findings(lifts: Mapping[Path, str], chosen: Chosen) -> list[tuple[Diagnostic, ...]]:
    """The findings for each lift of a stream with files of rows.

    Args:
        lifts: the texts of lifts that are checked by themselves; they are for all streams.
        chosen: the streams, their lifts and their types.

    Raises:
        InputError: a lift cannot be read, or a header lacks a field of its lift.
        UsageError: a type is unknown.
    """
    texts = chosen[InputTexts]
    pairs = filter(None, (split_assignment(text, ()) for text in texts.streams))
    paths = [pair for pair in pairs if _is_delimited(pair[1]) or _is_there(pair[1])]
    streams = {name for name, _ in paths}
    names = {name: name for name in streams}
    typed = [(of, field_types(text)) for of, text in (named_value(t, names) for t in texts.types)]
    dialects = dict(named_value(t, names) for t in texts.csv)
    given = _lifts_given(lifts, texts, names)
    if not streams:
        return []
    reading = chosen[ReadingOptions]
    predicate = reading.time_predicate
    findings = []
    of_streams = [
        (name, path, text)
        for of, path, text in given
        for name in (sorted(streams) if of is None else (of,))
    ]
    for of, path, text in of_streams:
        fitting = [fields for name, fields in typed if None in (name, of) or name == of]
        types = dict(chain.from_iterable(fitting))
        own_paths = [p for n, p in paths if n == of]
        dialect = dialects.get(of, dialects.get(None))
        csv = DEFAULT_DIALECT if dialect is None else csv_dialect(dialect)
        plan = check_lift(text, str(path), predicate, reading.time_unit).plan
        delimited = any(map(_is_delimited, own_paths))
        uncast = uncast_fields(text, str(path), types, predicate) if delimited else ()
        if uncast not in findings:
            findings.append(uncast)
        if plan is not None and own_paths:
            options = StreamOptions("", (), time_predicate=predicate, csv=csv)
            source = _source(own_paths, plan, types, options)
            findings += [] if uncast else [_sample_findings(source, (text, str(path)))]
    return findings


def _lifts_given(
    lifts: Mapping[Path, str], texts: InputTexts, names: Mapping[str, str]
) -> list[tuple[str | None, Path, str]]:
    """(stream, path, text) of each lift; None for a lift of all streams."""
    named = [named_value(text, names) for text in texts.lifts]
    stream_of = {Path(file): of for of, file in named}
    given = [(stream_of.get(path), path, text) for path, text in lifts.items()]
    for text, (of, file) in zip(texts.lifts, named, strict=True):
        known = of is not None or split_assignment(text, ()) is None
        if known and Path(file) not in lifts:
            given.append((of, Path(file), read_query(Path(file))))
    return given


def _source(
    paths: Sequence[str], plan: LiftPlan, types: Mapping[str, str], options: StreamOptions
) -> LiftedFiles:
    """The files of a lift, whose headers have been checked.

    Raises:
        InputError: a header lacks a field of the lift.
    """
    source = LiftedFiles(replace(options, paths=tuple(paths)), plan, tuple(types.items()))
    try:
        source.check()
    except InputError as error:
        raise InputError(str(error).removeprefix("stream <>: ")) from None
    return source


def _sample_findings(source: LiftedFiles, lift: tuple[str, str]) -> tuple[Diagnostic, ...]:
    """Warnings of casts that fail, and of rows that are bad, in the first rows of files."""
    lost, bad = Stats(), list[BadInput]()

    def on_bad(piece: BadInput) -> None:
        lost.count_bad([piece])
        if piece.lost is None:
            bad.append(piece)

    rows = 0
    for batch in source.lifted(on_bad):
        rows += len(batch.events) + batch.events.filtered
        if rows >= _SAMPLE:
            break
    rows += len(bad)
    text = QueryText(*lift)
    messages = [
        f"{count:,} of the first {rows:,} rows lose ?{name} by a cast; {lost.first_lost[name]}"
        for name, count in lost.lost.items()
    ]
    if bad:
        first = f"{bad[0].file}:{bad[0].line}: {bad[0].reason}"
        messages.append(f"{len(bad):,} of the first {rows:,} rows are bad; {first}")
    span = Span(0, 1)
    return tuple(Diagnostic("warning", "sample", m, span, text, (), None) for m in messages)


def _is_there(path: str) -> bool:
    """Whether a stream is rows in files that exist."""
    return is_table_input(path) and Path(path).exists()


def _is_delimited(path: str) -> bool:
    """Whether a stream is CSV or TSV. A directory or a glob is, if one of its files is."""
    given = Path(path)
    inner = [*given.iterdir()] if given.is_dir() else glob(path, recursive=True)
    return any(table_format(str(file)) in DELIMITED for file in (path, *inner))
