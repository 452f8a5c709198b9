"""Compiled code over batches that all compiled evaluators use."""
