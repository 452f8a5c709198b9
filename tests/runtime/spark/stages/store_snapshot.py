"""`python -m tests.runtime.spark.stages.store_snapshot`: store a snapshot of each evaluator.

Run it after a change of `STATE_VERSION`. Later versions must continue from the file or refuse its
version number.
"""

from __future__ import annotations

import json
from unittest.mock import patch

from spaseq.runtime.spark.stages import bucket_state
from spaseq.stages.sequence import STATE_VERSION
from tests.runtime.spark.stages.test_bucket_state import EVALUATORS, STORED, evaluator_plan, written

if __name__ == "__main__":
    with patch.multiple(bucket_state, LOG_BYTES=0, LOG_ENTRIES=4, CHUNK_BYTES=384):
        states = {name: written(evaluator_plan(name), [8] * 5) for name in EVALUATORS}
    (STORED / f"snapshot-{STATE_VERSION}.json").write_text(json.dumps(states))
