"""`python -m tests.golden --write`: write the expected files of all cases."""

from __future__ import annotations

import sys

from tests.golden.cases import CASES, rendered

if sys.argv[1:] != ["--write"]:
    sys.exit(__doc__)
for case in CASES:
    for suffix, text in rendered(case).items():
        case.with_suffix(suffix).write_text(text, "utf-8")
