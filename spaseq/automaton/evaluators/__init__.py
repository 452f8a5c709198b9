"""The evaluators of a sequence: different run-time states over one static automaton."""
