"""Figures of measurements: their numbers as JSON, their drawings, and timed runs."""
