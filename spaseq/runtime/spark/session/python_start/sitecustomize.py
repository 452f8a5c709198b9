"""Runs first in every Python that Spark starts; see `spark_session`.

Spark puts an archive of PySpark first on the path. Every process would compile its modules again,
which takes most of a second. If PySpark is installed, it is imported from there instead. Another
`sitecustomize`, which this one hides, runs after it.
"""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from os import sep
from pathlib import Path

_HERE = str(Path(__file__).parent)


def _prefer_installed() -> None:
    others = [p for p in sys.path if not p.endswith((f"{sep}pyspark.zip", "-src.zip"))]
    if all(PathFinder.find_spec(name, others) for name in ("pyspark", "py4j")):
        sys.path[:] = others


def _run_hidden() -> None:
    sys.path[:] = [p for p in sys.path if p != _HERE]
    if PathFinder.find_spec("sitecustomize", sys.path) is not None:
        del sys.modules["sitecustomize"]
        import_module("sitecustomize")


_prefer_installed()
_run_hidden()
