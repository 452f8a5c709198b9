"""The location of the shared test data, and a mark for tests that need it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("SPASEQ_SHARED", Path(__file__).parents[3] / "shared"))

needs_data = pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason="the shared data is not beside the checkout"
)
needs_w3c = pytest.mark.skipif(
    not (SHARED / "w3c" / "rdf11").is_dir(), reason="the W3C suites are not beside the checkout"
)
