"""Followed runs: Structured Streaming over files that keep arriving, with a checkpoint."""
