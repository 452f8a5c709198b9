"""Reads the pages of a linked data event stream (LDES) that are files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from spaseq.errors import InputError
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.events.instants import InstantCounter
from spaseq.rdf.inputs.files import InputFile, files_at
from spaseq.rdf.inputs.formats import Format
from spaseq.rdf.inputs.stream_options import BadInput, OnBad, StreamOptions
from spaseq.rdf.messages.described_events import FeedDescription, TreePage, described, message_of
from spaseq.rdf.messages.message_lines import MessageLines
from spaseq.rdf.messages.read_messages import events_of_messages
from spaseq.records import record


@record
class FeedPages:
    """The pages of a stream that are given, `paths`; reading them leads to others."""

    options: StreamOptions
    paths: tuple[str, ...]

    @classmethod
    def at(cls, options: StreamOptions) -> FeedPages:
        """The files of the paths of a stream.

        Raises:
            InputError: there are none.
        """
        files = [file.path for path in options.paths for file in files_at(path)]
        if not files:
            raise InputError(f"stream <{options.iri}>: no page is at {', '.join(options.paths)}")
        return cls(options, tuple(files))

    def events(self, on_bad: OnBad) -> Iterator[EventBatch]:
        """The members of the pages, and of the pages that they lead to."""
        messages = self._messages(self.feed(), on_bad)
        return events_of_messages(messages, self._shown, self.options, InstantCounter(), on_bad)

    @property
    def _shown(self) -> str:
        return ", ".join(self.options.paths)

    def feed(self) -> FeedDescription:
        """The description of the feed by its pages, its root first."""
        other: FeedDescription | None = None
        for path in self.paths:
            page = self._page(path, lambda bad: None)
            if page is None:
                continue
            description = page.any_description()
            if description is not None and page.streams():
                return description
            other = other or description
        if other is None:
            raise InputError(
                f"stream <{self.options.iri}>: no page at {self._shown} says what the time of a "
                "member is (ldes:timestampPath)"
            )
        return other

    def _messages(self, feed: FeedDescription, on_bad: OnBad) -> Iterator[MessageLines]:
        directories = {os.path.dirname(path) for path in self.paths}
        waiting, known, seen = list(self.paths), set(self.paths), set[str]()
        for path in waiting:
            page = self._page(path, on_bad)
            if page is None:
                continue
            new = [each.event for each in page.members(feed) if each.event.name not in seen]
            seen.update(event.name for event in new)
            for event in new:
                if not event.triples:
                    on_bad(BadInput(path, None, f"the page has nothing of its member {event.name}"))
            yield message_of(new, self.options.time_predicate, 1)
            for link in page.relations(feed):
                next_path = _path_of(link.node)
                if next_path is None or next_path in known or not os.path.isfile(next_path):
                    continue
                if any(Path(next_path).is_relative_to(directory) for directory in directories):
                    known.add(next_path)
                    waiting.append(next_path)

    def _page(self, path: str, on_bad: OnBad) -> TreePage | None:
        options = self.options
        with InputFile(path, Format.NQUADS).open(options.limits) as data:
            text = b"".join(iter(lambda: data.read(1 << 20), b""))

        def report(line: int | None, reason: str, text: str) -> None:
            on_bad(BadInput(path, line, reason, text))

        base = options.base or Path(path).as_uri()
        description = described(text, report, base, options.limits, options.contexts, united=False)
        return None if description is None else TreePage(base, description)


def _path_of(iri: str) -> str | None:
    """The file that an IRI names, if it is one on this machine."""
    parts = urlsplit(iri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    from urllib.request import url2pathname  # imports all of HTTP

    return os.path.realpath(url2pathname(parts.path))
