"""The compact set evaluator in Python."""
