"""The command line: run | check | explain | fmt | warm."""

import gc

gc.disable()  # what is imported stays, so looking through it again and again is a tenth of it
from spaseq.cli.main import main  # noqa: E402

gc.freeze()
gc.set_threshold(100_000)  # answers are many small objects that know no cycles
gc.enable()

__all__ = ["main"]
