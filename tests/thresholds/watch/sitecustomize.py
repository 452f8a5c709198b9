"""Python runs this at its start, where this directory is on its path: watches the thresholds."""

import os

from spaseq import thresholds
from tests.thresholds.forcing import CROSSED, watched, written_to

thresholds.use(watched(thresholds.current, written_to(os.environ[CROSSED])))
