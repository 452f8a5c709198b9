"""Compiled code of the register evaluator."""
