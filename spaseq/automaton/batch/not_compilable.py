"""Why a sequence has no compiled evaluator."""

from __future__ import annotations


class NotCompilable(Exception):
    """Integer tables cannot express a sequence; the message says why, in words."""
