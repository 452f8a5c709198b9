"""A brute-force evaluator of docs/language.md#matches to #after-match, as the engine's oracle."""
