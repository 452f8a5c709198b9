"""A brute-force evaluator of LANGUAGE sections 3 and 5, to hold the engine against."""
