"""`python -m tests.runtime.spark.stages.store_snapshot`: store a snapshot of each evaluator.

Run it after a change of `STATE_VERSION`, and keep the file before,
which is refused.
"""

from __future__ import annotations

import json
from unittest.mock import patch

from spaseq.runtime.spark.stages import bucket_state
from spaseq.stages.state_pickles import STATE_VERSION
from tests.runtime.spark.stages.test_bucket_state import EVALUATORS, STORED, evaluator_plan, written
from tests.thresholds import forced

if __name__ == "__main__":
    with forced("log_bytes=0 log_entries=4"), patch.object(bucket_state, "CHUNK_BYTES", 384):
        states = {name: written(evaluator_plan(name), [8] * 5) for name in EVALUATORS}
    (STORED / f"snapshot-{STATE_VERSION}.json").write_text(json.dumps(states))
