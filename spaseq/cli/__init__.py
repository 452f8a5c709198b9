"""The command line: run | check | explain | fmt | warm."""

import atexit
import gc

atexit.register(gc.freeze)  # Python would visit every object again before the process ends
gc.disable()  # imported objects stay; scanning them repeatedly takes a tenth of the import time
from spaseq.cli.main import main, program  # noqa: E402
from spaseq.memory import keep_for_good  # noqa: E402

keep_for_good()
gc.set_threshold(100_000)  # answers are many small objects that know no cycles
gc.enable()

__all__ = ["main", "program"]
