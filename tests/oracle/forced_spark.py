"""Cases of the oracle on Spark, in this process: `python -m tests.oracle.forced_spark FIRST CASES`.

The environment forces thresholds, in this process and in Spark's workers.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from spaseq.runtime.spark.session.spark_session import session
from tests.oracle.test_spark import check_bounded, check_followed


def main(first: int, cases: int) -> None:
    """Run all cases as a bounded run, and half of them as a followed run, in turns."""
    spark = session()
    try:
        with tempfile.TemporaryDirectory() as directory:
            place = Path(directory)
            check_bounded(spark, place / "bounded", cases, f"forced:{first}", 2)
            check_followed(spark, place / "followed", -(-cases // 2), f"forced:{first}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
