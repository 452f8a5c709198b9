"""Lifts: rows of tables and JSON messages as graph events."""
