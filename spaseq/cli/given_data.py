"""Warnings about patterns that nothing in given streams and knowledge bases matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from spaseq.api.prepare import load_knowledge
from spaseq.api.queries import plans_of
from spaseq.api.why import report_on
from spaseq.cli.checked_options import why_options
from spaseq.cli.option_groups import Chosen
from spaseq.cli.run_inputs import kb_source, stream_sources
from spaseq.cli.run_parts import InputTexts
from spaseq.cli.startup import keep_arrow_from_pandas
from spaseq.compile import Checked
from spaseq.diagnosis.report import Cause
from spaseq.errors import Diagnostic, QueryText, Span
from spaseq.runtime.job.chaining import reading_order
from spaseq.scratch import ScratchDirectory

_OF_PATTERNS = frozenset(
    {"predicate-never-occurs", "constant-never-occurs", "pattern-never-matches", "kb-empty"}
)


def unmatched(checked: Sequence[Checked], chosen: Chosen) -> list[list[Diagnostic]]:
    """The warnings of each query about the streams and knowledge bases that options give.

    Without --stream there are none. The queries have no errors. A query that has answers has no
    such warnings.
    """
    if not chosen[InputTexts].streams:
        return [[] for _ in checked]
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
