"""Event batches from a file of messages."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, cast

from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.documents.document_blocks import Report
from spaseq.rdf.documents.event_buffer import EventBuffer
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.events.time_terms import TimeTerms
from spaseq.rdf.inputs.bad_input import BadInput, OnBad
from spaseq.rdf.inputs.files import READ_ERRORS, InputFile
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.rdf.messages.delimiters import line_messages, turtle_messages
from spaseq.rdf.messages.message_assembly import MessageAssembly
from spaseq.rdf.messages.message_block import MessageBlock
from spaseq.rdf.messages.message_quads import LogParser, together
from spaseq.rdf.messages.ndjsonld import JsonLog, json_messages


def message_file_events(
    data: IO[bytes], file: InputFile, options: StreamOptions, counter: InstantCounter, on_bad: OnBad
) -> Iterator[EventBatch]:
    """The events of a file whose format has messages. A malformed message costs only itself."""
    buffer = EventBuffer(options.iri, counter, made_up_labels=True)
    read = TimeTerms.of_file(options.iri, options.time_unit, file.path, on_bad)
    times = options.time_predicate, read, options.default_time
    assembly = MessageAssembly(buffer, file.path, *times, on_bad)

    def report(line: int | None, reason: str, text: str) -> None:
        on_bad(BadInput(file.path, line, reason, text))

    try:
        for block in _blocks(data, file.format, options, report):
            assembly.add(block)
            yield from buffer.take(buffer.rows, options.batch_events)
    except READ_ERRORS as error:
        reason = getattr(error, "strerror", None) or error
        on_bad(BadInput(file.path, None, f"the rest of the file is not read: {reason}"))


def _blocks(
    data: IO[bytes], form: Format, options: StreamOptions, report: Report
) -> Iterator[MessageBlock]:
    limits = options.limits
    if form is Format.JELLY:
        from spaseq.rdf.messages.jelly_frames import jelly_blocks

        yield from jelly_blocks(data, limits, report)
    elif form is Format.NDJSONLD:
        lines = json_messages(_buffered(data), limits)
        yield from JsonLog(options.base, options.contexts, limits, report).blocks(lines)
    else:
        cut = line_messages if form is Format.RDFM else turtle_messages
        parser = LogParser(form, options.base, limits, report)
        for run in together(cut(data, limits)):
            yield parser.block(run)


def _buffered(data: IO[bytes]) -> IO[bytes]:
    return cast(
        "IO[bytes]", data if isinstance(data, io.BufferedIOBase) else io.BufferedReader(data)
    )
