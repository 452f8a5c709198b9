"""The public API: `run`, the push engine, matches and options."""
