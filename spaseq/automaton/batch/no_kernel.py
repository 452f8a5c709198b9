"""The error that gives the reason why a sequence has no compiled evaluator."""

from __future__ import annotations


class NoKernel(Exception):
    """Integer tables cannot express a sequence. The message is the reason in words."""
