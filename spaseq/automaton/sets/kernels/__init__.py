"""Compiled code of the chain and compact evaluators."""
