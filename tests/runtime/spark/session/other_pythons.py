"""Commands that look like a Python of workers: another version, or one without this package."""

from __future__ import annotations

import sys
from pathlib import Path

OTHER_VERSION = """
import collections, sys
Version = collections.namedtuple("Version", "major minor micro releaselevel serial")
sys.version_info = Version(3, 99, 0, "final", 0)
"""

WITHOUT_THE_PACKAGE = """
import sys
sys.modules["spaseq"] = None
"""


def python_that_begins_with(lines: str, directory: Path, name: str = "python3") -> Path:
    """A command that runs this Python after some lines."""
    start = directory / "start"
    start.mkdir(parents=True)
    (start / "sitecustomize.py").write_text(lines)
    command = directory / name
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH="{start}:$PYTHONPATH" exec "{sys.executable}" "$@"\n'
    )
    command.chmod(0o755)
    return command
