"""The static automaton: compiled from a query, shared by all runs."""
