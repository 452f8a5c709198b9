"""The command line: run | check | explain | fmt."""

from spaseq.cli.main import main

__all__ = ["main"]
