"""Compiled code that matches graph patterns against the events of a batch."""
