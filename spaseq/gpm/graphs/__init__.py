"""Triples to match against: event batches and knowledge bases, triple patterns and paths."""
