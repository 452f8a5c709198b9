"""Structured Streaming over input that keeps arriving."""
