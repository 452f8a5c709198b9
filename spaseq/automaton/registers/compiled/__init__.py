"""The register evaluator, compiled: its arrays, its state, and the sequencer that drives it."""
