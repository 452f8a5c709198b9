"""State and drivers of the compiled chain and compact evaluators."""
