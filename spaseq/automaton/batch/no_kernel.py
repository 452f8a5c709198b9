"""The error that says why a sequence has no compiled evaluator."""

from __future__ import annotations


class NoKernel(Exception):
    """Integer tables cannot express a sequence. The message gives the reason in words."""
