"""A knowledge base whose files may change while it is in use."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from spaseq.errors import InputError
from spaseq.kb.cache import KbCache
from spaseq.kb.endpoint import is_url
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.kb.quads import OxigraphStore, sources_at
from spaseq.options import KbInput, ServiceOptions

FileStates: TypeAlias = tuple[tuple[str, int, int, int], ...]
"""(path, modification time in ns, size, inode) of each file."""


class KbWatch:
    """Looks at the files of a knowledge base now and then, and loads them again if they changed.

    A change counts once the files have stayed as they are from one look to the next, so that a file
    that is still being written is waited for.
    """

    def __init__(
        self,
        sources: Sequence[tuple[str | None, KbInput]],
        services: ServiceOptions,
        cache: KbCache,
        every_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The sources as `load_kb` takes them, which has loaded them just before."""
        self._sources, self._services, self._cache = sources, services, cache
        self._paths = [s for _, s in sources if isinstance(s, str | PathLike)]
        self._every_s, self._clock = every_s, clock
        self._next = clock() + every_s
        self._known = self._latest = self._state()

    def poll(self) -> KnowledgeBase | None:
        """The knowledge base, if it has changed since the last call.

        Raises:
            InputError: the files have changed and cannot be loaded; said once for each change.
        """
        if self._clock() < self._next:
            return None
        self._next = self._clock() + self._every_s
        before, self._latest = self._latest, self._state()
        if self._latest == self._known or self._latest != before:
            return None
        self._known = self._latest
        return load_kb(self._sources, self._services, self._cache)

    def _state(self) -> FileStates:
        found = []
        for path in self._paths:
            for file in _files(path):
                try:
                    status = file.stat()
                except OSError:
                    continue
                found.append((str(file), status.st_mtime_ns, status.st_size, status.st_ino))
        return tuple(found)


def _files(path: str | PathLike[str]) -> list[Path]:
    if isinstance(path, str) and is_url(path):
        return []
    try:
        sources = sources_at(path)
    except InputError:  # which loading will report
        return []
    found: list[Path] = []
    for source in sources:
        place = Path(source.path)
        found += place.iterdir() if isinstance(source, OxigraphStore) else [place]
    return found
