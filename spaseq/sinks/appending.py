"""A document in a file that a resumed run appends to: has it begun, and with these columns?"""

from __future__ import annotations

import os
from collections.abc import Sequence
from io import StringIO

from spaseq.errors import UsageError
from spaseq.sinks import open_sink


def begins_now(path: str, form: str, columns: Sequence[str]) -> bool:
    """Whether the next answer begins a document; otherwise the file has its beginning already.

    A beginning that a killed run left half written is taken away.

    Args:
        path: the file; it need not exist.
        form: the format of the document.
        columns: the columns of a table, as for `open_sink`.

    Raises:
        UsageError: the file is a table with other columns.
    """
    if not os.path.isfile(path):
        return True
    text = StringIO(newline="")
    open_sink(form, text, columns).open()
    beginning = text.getvalue().encode()
    with open(path, "rb") as file:
        start = file.read(len(beginning) + 1)
    if len(start) < len(beginning) and beginning.startswith(start):
        os.truncate(path, 0)
        return True
    if not start.startswith(beginning):
        raise UsageError(f"{path} has other columns; a run that resumes needs the same --columns")
    return not start
