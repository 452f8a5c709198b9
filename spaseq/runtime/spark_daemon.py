"""The process from which Spark forks its Python workers, with the package already imported.

Without it every worker imports numpy, pandas, Arrow and this package anew, half a second each.
"""

from __future__ import annotations

from pyspark.daemon import manager

import spaseq.runtime.spark_follow_stages
import spaseq.runtime.spark_sequence
import spaseq.runtime.spark_solve  # noqa: F401

if __name__ == "__main__":
    manager()
