"""Reloading a knowledge base when its files change."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from spaseq.errors import InputError
from spaseq.kb.cache import KbCache
from spaseq.kb.knowledge import KnowledgeBase
from spaseq.kb.load import load_kb
from spaseq.kb.quads import OxigraphStore, sources_at
from spaseq.kb.service_address import is_url
from spaseq.options import KbInput, ServiceOptions

FileStates: TypeAlias = tuple[tuple[str, int, int, int], ...]
"""(path, modification time in ns, size, inode) of each file."""


class KbWatch:
    """Checks the files of a knowledge base at intervals and loads them again if they have changed.

    It loads a change only if two checks in a row see the same files, so that it does not read a
    file while another program writes it.
    """

    def __init__(
        self,
        sources: Sequence[tuple[str | None, KbInput]],
        services: ServiceOptions,
        cache: KbCache,
        every_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Watch the sources, which `load_kb` has just loaded, every `every_s` seconds."""
        self._sources, self._services, self._cache = sources, services, cache
        self._paths = [s for _, s in sources if isinstance(s, str | PathLike)]
        self._every_s, self._clock = every_s, clock
        self._next = clock() + every_s
        self._known = self._latest = self._state()

    def poll(self) -> KnowledgeBase | None:
        """The new knowledge base if it has changed since the last call, else None.

        Raises:
            InputError: the changed files cannot be loaded; raised once per change.
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
        states = []
        for path in self._paths:
            for file in files_of(path):
                try:
                    status = file.stat()
                except OSError:
                    continue
                states.append((str(file), status.st_mtime_ns, status.st_size, status.st_ino))
        return tuple(states)


def files_of(path: str | PathLike[str]) -> list[Path]:
    """The files at a path, those of a store among them; none at an address."""
    if isinstance(path, str) and is_url(path):
        return []
    try:
        sources = sources_at(path)
    except InputError:  # loading will report it
        return []
    files: list[Path] = []
    for source in sources:
        source_path = Path(source.path)
        files += source_path.iterdir() if isinstance(source, OxigraphStore) else [source_path]
    return files
