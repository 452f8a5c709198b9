"""Run-time state and interfaces that all evaluators share."""
