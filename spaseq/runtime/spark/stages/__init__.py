"""Stages 1 and 2 on Spark workers."""
