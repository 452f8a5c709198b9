"""Partial matches as runs with registers; see the README beside this file."""
