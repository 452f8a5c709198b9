"""The directory of a live run: its logs, its state, and how far its answers have gone.

`live.json` has the settings that stay the same. `streams/` has a log for each stream, `answers/`
the log of answers, `queries/` that of queries that come and go, `endpoints/` that of
what SPARQL endpoints have answered. `state` is the last snapshot of the
engine. `sent/` says which answers each output has, and `failed/` what it did not take. `.lock` is
locked by the run that uses the directory.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaseq.errors import RunError, UsageError
from spaseq.runtime.arrivals.checked_json import damaged, read_json
from spaseq.storage import directory_lock
from spaseq.storage.checksums import with_checksum_line
from spaseq.storage.durable_files import write_durably
from spaseq.storage.safe_pickles import BROKEN, dump_plain, load_plain

FORMAT_VERSION = 4

_MANIFEST = "live.json"


@dataclass(frozen=True, slots=True)
class LiveDirectory:
    """A directory that this process has locked; `release` it when the run ends."""

    path: Path
    resumed: bool

    @classmethod
    def open(cls, path: Path, wanted: Mapping[str, Any]) -> LiveDirectory:
        """Make a directory, or resume from one.

        Args:
            path: the directory.
            wanted: the settings that must be those of the run that made the directory, as JSON
                values under the names that messages use.

        Raises:
            UsageError: it has other settings; the message says which.
            RunError: it cannot be read or written, or another run uses it.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            if not (path / _MANIFEST).exists() and any(p.name[0] != "." for p in path.iterdir()):
                raise UsageError(f"{path} is not empty and no checkpoint of a run on brokers")
            directory_lock.hold(path)
            try:
                return cls(path, _resumed(path / _MANIFEST, {"version": FORMAT_VERSION, **wanted}))
            except BaseException:
                directory_lock.release(path)
                raise
        except OSError as error:
            raise RunError(f"checkpoint {path}: {error}") from error

    def release(self) -> None:
        """Let other processes use the directory."""
        directory_lock.release(self.path)

    def stream(self, iri: str) -> Path:
        """The directory of a stream's log."""
        return self.path / "streams" / hashlib.sha256(iri.encode()).hexdigest()[:16]

    @property
    def answers(self) -> Path:
        """The directory of the answer log."""
        return self.path / "answers"

    @property
    def changes(self) -> Path:
        """The directory of the log of queries that came, changed and went."""
        return self.path / "queries"

    @property
    def endpoints(self) -> Path:
        """The directory of the log of what endpoints have answered."""
        return self.path / "endpoints"

    def state(self) -> Any:
        """The value that `save_state` saved last; None if there is none.

        Raises:
            RunError: it is damaged.
        """
        path = self.path / "state"
        if not path.exists():
            return None
        try:
            return load_plain(path.read_bytes())
        except BROKEN as error:
            raise damaged(path, error) from error

    def save_state(self, value: object) -> None:
        """Save a value of numbers, texts, bytes, lists and dicts; RunError if the disk is full."""
        _write(self.path / "state", dump_plain(value))


def _write(path: Path, data: bytes) -> None:
    try:
        write_durably(path, data)
    except OSError as error:
        raise RunError(f"cannot write {path}: {error.strerror}") from error


def _resumed(manifest: Path, wanted: Mapping[str, Any]) -> bool:
    """Whether a run is resumed; UsageError if it is another one."""
    if not manifest.exists():
        _write(manifest, with_checksum_line(json.dumps(wanted, indent=2)).encode())
        return False
    found = read_json(manifest, dict)
    if found.get("version") != wanted["version"]:
        raise UsageError(
            f"{manifest} has format version {found.get('version')}; this version of spaseq reads "
            f"{wanted['version']}"
        )
    changes = [name for name in wanted if found.get(name) != wanted[name]]
    if changes:
        raise UsageError(
            f"checkpoint {manifest.parent} cannot be resumed: other than at its start are the "
            f"{', the '.join(changes)}. Use what it was started with, or an empty directory"
        )
    return True
