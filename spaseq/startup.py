"""Keep a short run from importing and starting modules that it does not need."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

_MESSAGES = {signal.SIGINT: b"spaseq: interrupted\n", signal.SIGTERM: b"spaseq: terminated\n"}


def end_at_once(number: int, _frame: object) -> None:
    """End the process, which has nothing to clean up yet. An import would not survive an error."""
    try:
        os.write(2, _MESSAGES[signal.Signals(number)])
    finally:
        os._exit(128 + number)


def end_at_signals() -> None:
    """Let SIGINT and SIGTERM end the process at once, unless they are ignored or handled."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, end_at_once)


class _NoPandas:
    """An import hook that reports pandas as missing."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> None:
        if name == "pandas":
            raise ImportError(name)


def keep_arrow_from_pandas() -> None:
    """Make pyarrow work without pandas; other code can still import pandas.

    At its first conversion to or from Python, pyarrow imports pandas, which takes 0.3 s, only to
    recognise pandas objects. A local run gives pyarrow none.
    """
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow

        pyarrow.array([""]).to_numpy(zero_copy_only=False)
    finally:
        sys.meta_path.remove(finder)


def keep_blas_from_threads() -> None:
    """Keep numpy, before its import, from starting threads for linear algebra.

    The threads take processor time as soon as they start, here and in Spark's workers, and this
    package needs none. A number that the user has set stays.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
