"""What users import: `run`, the push engine, matches and options."""
