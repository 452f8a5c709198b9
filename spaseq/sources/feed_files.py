"""The pages of a linked data event stream (LDES) in files, at `ldes+file:PATH`.

The path is a file, a directory or a glob.
Pages that these lead to (TREE) are read, too, if they are files in the same directories or below.
A member is an event, whichever pages have it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from spaseq.errors import UsageError
from spaseq.rdf.columns.event_batch import EventBatch
from spaseq.rdf.inputs.stream_options import OnBad, StreamOptions
from spaseq.records import record
from spaseq.sources.base import Source, Split
from spaseq.sources.files import PathSource

if TYPE_CHECKING:
    from spaseq.sources.feed_pages import FeedPages

PREFIX = "ldes+file:"
"""How the input of such a stream begins."""


@record
class FeedFiles(PathSource):
    """The members of the pages in `options.paths`. One task reads all of them."""

    not_followed = "pages in files have an end; ldes+http[s]:// follows a feed"

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        if not isinstance(given, tuple) or not all(str(path).startswith(PREFIX) for path in given):
            return None
        if options.live:
            raise UsageError(f"stream <{options.iri}>: {given[0]}: {cls.not_followed}")
        paths = tuple(os.path.abspath(path.removeprefix(PREFIX)) for path in given)
        return cls(replace(options, paths=paths))

    def check(self) -> None:
        self._pages().feed()

    def size(self) -> int | None:
        return None

    def open(self, on_bad: OnBad, split: Split | None = None) -> Iterator[EventBatch]:
        return self._pages().events(on_bad)

    def _pages(self) -> FeedPages:
        """The pages that are there now; InputError if there are none."""
        from spaseq.sources.feed_pages import FeedPages  # reads messages, which few runs have

        return FeedPages.at(self.options)
