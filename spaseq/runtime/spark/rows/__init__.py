"""Rows that travel between Spark stages."""
