#!/usr/bin/env python3
"""A query of `lift.py` in FlinkCEP, by Flink's `MATCH_RECOGNIZE`; a Python with Flink runs it.

    python -m venv flink && flink/bin/pip install apache-flink
    python benchmarks/lift.py --flink flink/bin/python

By itself: `python benchmarks/flink_cep.py EVENTS.csv OUT V-shape`. It needs nothing of spaseq. The
answers are written to the folder OUT as CSV. Printed are their number, and the CPU seconds of
Flink's Java from its start on, in one task.

`A; B; C` takes the next event that matches: the rows between are X and Y, which are not the next
step. So a partial match goes on in one way only, as it does in spaseq. Flink leaves out a match
that is as long as its limit, so the limit is a millisecond more.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

FORMS = {
    "selective": {
        "A": "A.kind = 'T1' AND A.number < 100",
        "X": "NOT (X.kind = 'T2' AND X.number > A.number)",
        "B": "B.kind = 'T2' AND B.number > A.number",
        "Y": "NOT (Y.kind = 'T3' AND Y.number > A.number)",
        "C": "C.kind = 'T3' AND C.number > A.number",
    },
    "V-shape": {
        "A": "A.number < 100",
        "X": "X.number >= A.number",
        "B": "B.number < A.number",
        "Y": "Y.number <= A.number",
        "C": "C.number > A.number",
    },
}

EVENTS = """CREATE TABLE events (
  id BIGINT, kind STRING, company BIGINT, number BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts
) WITH ('connector' = 'filesystem', 'path' = '{events}', 'format' = 'csv')"""

ANSWERS = """CREATE TABLE answers (company BIGINT, v1 BIGINT, v2 BIGINT, v3 BIGINT)
WITH ('connector' = 'filesystem', 'path' = '{answers}', 'format' = 'csv')"""

QUERY = """INSERT INTO answers SELECT company, v1, v2, v3 FROM events MATCH_RECOGNIZE (
  PARTITION BY company ORDER BY ts
  MEASURES A.number AS v1, B.number AS v2, C.number AS v3
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A X*? B Y*? C) WITHIN INTERVAL '1.001' SECOND(1, 3)
  DEFINE {conditions})"""


def run(events: Path, answers: Path, form: str) -> tuple[int, float]:
    """(answers, CPU seconds); `events` is CSV without a header, with times as Flink writes them."""
    # Flink is installed in another Python, as it needs other versions of spaseq's libraries.
    from pyflink.java_gateway import get_gateway
    from pyflink.table import EnvironmentSettings, TableEnvironment

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "1")
    tables.execute_sql(EVENTS.format(events=events.resolve()))
    tables.execute_sql(ANSWERS.format(answers=answers.resolve()))
    conditions = ", ".join(f"{name} AS {test}" for name, test in FORMS[form].items())
    tables.execute_sql(QUERY.format(conditions=conditions)).wait()
    java = get_gateway().jvm.java.lang.ProcessHandle.current().pid()
    fields = Path(f"/proc/{java}/stat").read_text().rpartition(")")[2].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return sum(file.read_bytes().count(b"\n") for file in answers.iterdir()), seconds


if __name__ == "__main__":
    print(*run(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
