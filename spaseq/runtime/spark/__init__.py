"""The Spark runtime.

Raises:
    UsageError: PySpark is not installed.
"""

from importlib.util import find_spec

from spaseq.errors import UsageError

if find_spec("pyspark") is None:
    raise UsageError(
        "Spark is not installed: pip install 'pyspark>=4.2,<5', or use the local runtime"
    )
