"""Standard input as a source: N-Quads that another program writes."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from spaseq.errors import UsageError
from spaseq.rdf.inputs.files import STDIN
from spaseq.rdf.inputs.stream_options import StreamOptions
from spaseq.records import record
from spaseq.sources.base import Source, Split
from spaseq.sources.files import FileSource

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from spaseq.sources.files import GrowingFiles


@record
class StdinSource(FileSource):
    """Paths with `-` among them, which is read where it stands.

    Standard input can be read once, and by this process only.
    """

    @classmethod
    def of(cls, given: object, options: StreamOptions) -> Source | None:
        if not isinstance(given, tuple) or STDIN not in given:
            return None
        return cls(replace(options, paths=given))

    def describe(self) -> str:
        return "standard input"

    def size(self) -> int | None:
        return None

    def splits(
        self, pool: Executor, *, split_bytes: int | None = None, time_scan: bool = True
    ) -> Iterable[Split] | None:
        return None

    def shared(self, directory: Path) -> Source:
        """Files only: standard input is copied to one."""
        paths = [_copied(directory) if p == STDIN else p for p in self.options.paths]
        return FileSource(replace(self.options, paths=tuple(paths)))

    def followed(self) -> GrowingFiles:
        what = f"stream <{self.iri}>: {self.describe()}"
        raise UsageError(f"{what} cannot be followed on Spark: {self.not_followed}")


def _copied(directory: Path) -> str:
    """Standard input in a new file."""
    handle, path = tempfile.mkstemp(prefix="spaseq-stdin-", suffix=".nq", dir=directory)
    with os.fdopen(handle, "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path
