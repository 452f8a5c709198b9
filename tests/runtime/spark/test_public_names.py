"""`spaseq.spark` without PySpark: it loads none at import, and says what to install."""

from __future__ import annotations

import spaseq.spark
from tests.hostile import run_bounded

WITHOUT = '''
import sys
sys.modules["pyspark"] = None
import io, pydoc
import spaseq
from contextlib import redirect_stdout
assert "spark" in dir(spaseq)
with redirect_stdout(io.StringIO()) as shown:
    pydoc.help(spaseq)
assert "spark" in shown.getvalue()
query = """SELECT ?x WITHIN 1 MINUTES FROM STREAM S <http://example/s>
WHERE { SEQ (A) DEFINE GPM A ON S { ?x <http://example/t> ?t } }"""
for use in (
    lambda: spaseq.spark.session(),
    lambda: spaseq.spark.answers,
    lambda: list(spaseq.run(query, {"S": []}, runtime="spark")),
):
    try:
        use()
    except spaseq.errors.SpaseqError as error:
        print(type(error).__name__, error)
'''


def test_without_pyspark() -> None:
    done = run_bounded(WITHOUT)
    assert done.stderr == ""
    said = "Spark is not installed: pip install 'pyspark>=4.2,<5', or use the local runtime"
    assert done.stdout.splitlines() == [f"UsageError {said}"] * 3


def test_pyspark_is_loaded_at_the_first_use() -> None:
    done = run_bounded(
        "import sys, spaseq\nfrom spaseq import *\nspark.__all__, dir(spark)\n"
        "print('pyspark' in sys.modules)\nspark.session\nprint('pyspark' in sys.modules)"
    )
    assert done.stdout.splitlines() == ["False", "False"], done.stderr


def test_every_public_name_is_there_and_shown() -> None:
    assert set(spaseq.spark.__all__) <= set(dir(spaseq.spark))
    for name in spaseq.spark.__all__:
        assert getattr(spaseq.spark, name).__doc__
