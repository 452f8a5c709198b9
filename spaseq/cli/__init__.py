"""The command line: run | check | explain | fmt | warm."""

import gc

gc.disable()  # what is imported stays, so looking through it again and again is a tenth of it
from spaseq.cli.main import main  # noqa: E402

gc.freeze()
gc.enable()

__all__ = ["main"]
