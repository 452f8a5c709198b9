"""Checksums of Spark's offset files, which say where a run resumes.

Spark checks the files of its state store itself, but believes whatever an offset file says.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from spaseq.records import record
from spaseq.runtime.arrivals.checked_json import damaged, read_json, write_json

_READ_BACK = 2  # Spark reads the offsets of the last batch and of the one before


@record
class OffsetChecks:
    """The checksums, in a file of the checkpoint.

    Attributes:
        path: the file.
        offsets: the directory of Spark's offset files, whose names are the numbers of batches.
    """

    path: Path
    offsets: Path

    def note(self, batch: int) -> None:
        """Store the checksums when a batch has begun."""
        numbers = range(max(batch - _READ_BACK + 1, 0), batch + 1)
        found = {str(n): _checksum(self.offsets / str(n)) for n in numbers}
        write_json(self.path, {name: known for name, known in found.items() if known is not None})

    def check(self) -> None:
        """Check the files before Spark reads them.

        Raises:
            RunError: one of them is damaged.
        """
        if not self.path.exists():
            return
        for name, known in read_json(self.path, lambda value: dict(value.items())).items():
            file = self.offsets / name
            if _checksum(file) not in (known, None):
                raise damaged(file, "its checksum is wrong")


def _checksum(file: Path) -> int | None:
    """The CRC-32 of a file, None if it is missing."""
    try:
        return zlib.crc32(file.read_bytes())
    except FileNotFoundError:
        return None
