"""The cache of compiled knowledge bases on disk, by the content of their source files.

A file is written under a temporary name and then renamed, so no process sees an incomplete file and
several processes may compile the same knowledge base. Files are memory-mapped: only the parts that
queries use are read.
"""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

from spaseq.compiled.cache import user_cache
from spaseq.errors import InputError
from spaseq.kb.knowledge import FORMAT, KnowledgeBase
from spaseq.kb.quads import OxigraphStore, QuadSource
from spaseq.rdf.inputs.files import InputFile
from spaseq.records import record
from spaseq.storage.directories import NotPrivate, private_directory

_LOGGER = logging.getLogger("spaseq")

MOST = 16
"""Number of compiled knowledge bases that a directory keeps: the most recently used."""

_WORTH = 1 << 20  # bytes of source files below which loading is as fast as the cache
_CHUNK = 1 << 20
_ABANDONED_S = 86_400.0
_SUFFIX = ".kb.arrow"

NamedSources: TypeAlias = Sequence[tuple["str | None", Sequence[QuadSource]]]


@record
class KbCache:
    """A directory of compiled knowledge bases, or none.

    The cache is not used for sources smaller than `smallest` bytes.
    """

    directory: Path | None
    smallest: int = 0

    @classmethod
    def of_user(cls) -> KbCache:
        """The cache in the user's cache directory, for sources of at least 1 MiB."""
        users = user_cache()
        return cls(None if users is None else users / "spaseq" / "kb", _WORTH)

    def knowledge(self, sources: NamedSources, build: Callable[[], KnowledgeBase]) -> KnowledgeBase:
        """The knowledge base of some sources, from the cache if possible, otherwise from `build`.

        Raises:
            InputError: `build` raises it, or the user's choice of directory cannot be written.
        """
        if self.directory is None or _size(sources) < max(self.smallest, 1):
            return build()
        path = self.directory / f"{_key(sources)}{_SUFFIX}"
        usual = self.smallest > 0  # the default directory, so go on without it
        try:
            private_directory(self.directory, 2 if usual else 1)
        except NotPrivate as error:
            if usual:
                _LOGGER.warning("spaseq: %s; the knowledge base is not kept there", error)
                return build()
            raise InputError(f"cannot keep the knowledge base: {error}") from error
        except OSError:  # it is the same when the file is written
            pass
        return _opened(path) or self._built(path, build(), usual)

    def _built(self, path: Path, built: KnowledgeBase, usual: bool) -> KnowledgeBase:
        """The knowledge base, from its new file in the directory if it can be written."""
        try:
            _write(built, path)
            _prune(path.parent)
        except OSError as error:
            if usual:
                return built
            raise InputError(f"cannot keep the knowledge base in {path}: {error}") from error
        return _opened(path) or built


NO_CACHE = KbCache(None)


def cache_at(directory: str | os.PathLike[str] | None) -> KbCache:
    """The cache in a directory; None is the user's cache, "none" is no cache."""
    if directory is None:
        return KbCache.of_user()
    return NO_CACHE if directory == "none" else KbCache(Path(directory).absolute())


def _opened(path: Path) -> KnowledgeBase | None:
    if not path.exists():
        return None
    try:
        knowledge = KnowledgeBase.open(path)
    except (InputError, OSError):  # a damaged file will be replaced
        return None
    with suppress(OSError):  # the directory may be one that is only read
        os.utime(path)
    return knowledge


def _write(knowledge: KnowledgeBase, path: Path) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=_SUFFIX)
    os.close(handle)
    unfinished = Path(name)
    try:
        knowledge.save(unfinished)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _prune(directory: Path) -> None:
    """Remove the least recently used files, and temporary files of killed processes."""
    kept = []
    for path in directory.glob(f"*{_SUFFIX}"):
        try:
            kept.append((path.stat().st_mtime, path))
        except FileNotFoundError:
            continue
    finished = sorted((p for p in kept if p[1].name[0] != "."), reverse=True)
    limit = time.time() - _ABANDONED_S
    abandoned = (p for p in kept if p[1].name[0] == "." and p[0] < limit)
    for _, path in (*finished[MOST:], *abandoned):
        path.unlink(missing_ok=True)


# --- content of sources ---------------------------------------------------------------------------


def _key(sources: NamedSources) -> str:
    """A digest of the content of the sources."""
    digest = blake2b(FORMAT, digest_size=20)
    for iri, of_graph in sources:
        digest.update(f"\0{iri}".encode())
        for source in of_graph:
            digest.update(f"\0{type(source).__name__}\0".encode())
            for part in _content(source):
                digest.update(part)
    return digest.hexdigest()


def _content(source: QuadSource) -> Iterator[bytes]:
    match source:
        case OxigraphStore(path):  # RocksDB replaces files and never changes them
            for file in _store_files(path):
                status = file.stat()
                yield f"{file.name} {status.st_size} {status.st_mtime_ns}\0".encode()
        case InputFile(path, form):
            yield f"{form.value} {path.endswith('.gz')}\0".encode()
            yield from _file_content(path)


def _file_content(path: str) -> Iterator[bytes]:
    digest = blake2b(digest_size=20)
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    yield digest.digest()


def _size(sources: NamedSources) -> int:
    """Bytes of all source files."""
    total = 0
    for _, of_graph in sources:
        for source in of_graph:
            files = (
                _store_files(source.path)
                if isinstance(source, OxigraphStore)
                else [Path(source.path)]
            )
            total += sum(file.stat().st_size for file in files if file.exists())
    return total


def _store_files(path: str) -> list[Path]:
    """The data files of a store, without logs and locks, which a reader may write."""
    files = sorted(Path(path).iterdir())
    return [f for f in files if f.is_file() and not f.name.startswith(("LOG", "LOCK"))]
