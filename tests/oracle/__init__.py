"""A brute-force evaluator of docs/meaning.md#matches to #after-match, as the engine's oracle."""
