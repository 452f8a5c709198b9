"""Spark sessions, the Java they run on, and the processes they start."""
