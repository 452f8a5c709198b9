"""What a short run does without: libraries that others import in passing."""

from __future__ import annotations

import sys
from collections.abc import Sequence


class _NoPandas:
    """Says that there is no pandas."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> None:
        if name == "pandas":
            raise ImportError(name)


def keep_arrow_from_pandas() -> None:
    """Let pyarrow believe that there is no pandas, which can still be imported.

    pyarrow imports pandas at its first conversion to or from Python, for 0.3 s, only to recognise
    its objects. This is for processes in which nobody gives pyarrow any.
    """
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow

        pyarrow.array([""]).to_numpy(zero_copy_only=False)
    finally:
        sys.meta_path.remove(finder)
