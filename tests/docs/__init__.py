"""Tests of what docs/ says."""
