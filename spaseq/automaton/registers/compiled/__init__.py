"""State and drivers of the compiled register evaluator."""
