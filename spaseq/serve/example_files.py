"""`spaseq serve --init`: an example that runs as it is."""

from __future__ import annotations

from pathlib import Path

from spaseq.storage.user_files import write_copy

EXAMPLE = Path(__file__).parent / "example"
"""The files of the example."""

CONFIGURATION = "spaseq.toml"


def write_example(directory: Path) -> Path:
    """Write the example into a new or empty directory; returns the path of its configuration.

    Raises:
        UsageError: the directory has files.
        InputError: it cannot be written.
    """
    write_copy(EXAMPLE, directory)
    return directory / CONFIGURATION
