"""The error that says why a sequence has no compiled evaluator."""

from __future__ import annotations


class NotCompilable(Exception):
    """Integer tables cannot express a sequence. The message gives the reason in words."""
