"""Rare-first evaluation with a Tree NFA; see the README beside this file."""
